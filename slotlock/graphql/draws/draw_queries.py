"""Queries about the draw of a campaign."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws import draw
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import ReadForArgument
from slotlock.graphql.core.connections import MAX_LIST_SIZE
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.draws.draw_types import (
    Draw,
    DrawPreview,
    DrawResult,
    SlotDemand,
    UserWishes,
    Wishes,
)
from slotlock.infrastructure.mongo.draws.draw_repository import MAX_DRAWS
from slotlock.services.campaigns import campaigns
from slotlock.services.draws import draws, public_records, wishes

CampaignIdArgument = Annotated[strawberry.ID, argument(description="The id of the campaign.")]
DrawIdArgument = Annotated[strawberry.ID, argument(description="The `recordId` of the draw.")]
MAX_CAPACITY = 1_000_000


@strawberry.input(description="Another number of places in a slot, for a preview.")
class WhatIfCapacity:
    slot_id: strawberry.ID = field(description="The slot.")
    capacity: int = field(description="How many places it would have.")


async def _visible_campaign(
    info: Info, campaign_id: str, viewer: Caller | None
) -> CampaignId | None:
    """Return the id of a campaign if the viewer may see it."""
    parsed = ids.parse_campaign_id(campaign_id)
    if parsed is None:
        return None
    found = await campaigns.find(info.context.services, parsed, viewer)
    return parsed if found else None


def _to_capacities(inputs: list[WhatIfCapacity]) -> dict[SlotId, int]:
    """Return the capacities by slot. Errors: BAD_USER_INPUT."""
    if len(inputs) > MAX_LIST_SIZE:
        raise bad_input("capacities", f"`capacities` must have at most {MAX_LIST_SIZE} items.")
    capacities: dict[SlotId, int] = {}
    for each in inputs:
        slot_id = ids.parse_slot_id(each.slot_id)
        if slot_id is None or not 0 <= each.capacity <= MAX_CAPACITY:
            raise bad_input("capacities", "`capacities` must have ids of slots and numbers from 0.")
        capacities[slot_id] = each.capacity
    return capacities


async def _find_result(
    info: Info, campaign_id: str, user_id: UserId, viewer: Caller | None = None
) -> DrawResult | None:
    parsed = ids.parse_campaign_id(campaign_id)
    found = parsed and await draws.find_draw_result(info.context.services, user_id, parsed)
    return DrawResult.from_domain(found, viewer) if found else None


async def _find_draw(info: Info, draw_id: str) -> draw.Draw | None:
    """Return a draw if the viewer may see it."""
    services, parsed = info.context.services, ids.parse_draw_id(draw_id)
    return await draws.find_visible(services, parsed, info.context.viewer) if parsed else None


@strawberry.type
class DrawQueries:
    @field(
        description="The draw of a campaign: the one that goes on, or else the latest. Null "
        "without one, or if the caller cannot see the campaign."
    )
    async def draw(self, info: Info, campaign_id: CampaignIdArgument) -> Draw | None:
        found_id = await _visible_campaign(info, campaign_id, info.context.viewer)
        found = await info.context.services.draws.find_latest(found_id) if found_id else None
        return Draw(found) if found else None

    @field(
        description="The draws of a campaign, the newest first, at most 100. Organizers, and users "
        "with an entry and their guardians, see a draw also if its campaign is not published any "
        "more, or deleted."
    )
    async def draws(self, info: Info, campaign_id: CampaignIdArgument) -> list[Draw]:
        services, parsed = info.context.services, ids.parse_campaign_id(campaign_id)
        found = await services.draws.find_all(parsed) if parsed else ()
        visible = await draws.only_visible(services, found, info.context.viewer)
        return [Draw(each) for each in visible]

    @field(
        description="A draw by its `recordId`, which `draws` lists as well. Null if the caller "
        "cannot see it."
    )
    async def draw_by_id(self, info: Info, draw_id: DrawIdArgument) -> Draw | None:
        found = await _find_draw(info, draw_id)
        return Draw(found) if found else None

    @field(description="The caller's wishes in a campaign, alone or with a team; null without any.")
    async def my_wishes(
        self, info: Info, campaign_id: CampaignIdArgument, user_id: ReadForArgument = None
    ) -> Wishes | None:
        caller = info.context.caller if user_id is None else await info.context.caller_for(user_id)
        found_id = await _visible_campaign(info, campaign_id, caller)
        if found_id is None:
            return None
        found = await wishes.my_wishes(info.context.services, caller, found_id)
        return Wishes.of(found, caller, salt=found.salt) if found else None

    @field(
        description="The wishes of a user in each draw, the newest draw first, at most 100, for "
        "organizers who are asked about them. Organizers only."
    )
    async def user_wishes(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The id of the user.")],
    ) -> list[UserWishes]:
        info.context.require_organizer()
        parsed = ids.parse_user_id(user_id)
        found = await wishes.wishes_of(info.context.services, parsed) if parsed else ()
        return [UserWishes.of(own, draw=Draw(of_draw)) for of_draw, own in found[:MAX_DRAWS]]

    @field(
        description="How often each slot of a campaign is wished for, as of some seconds ago: the "
        "most wanted first, and also open ones that nobody wishes for. Null without a draw, and "
        "for members unless `showsDemand` is on."
    )
    async def wish_statistics(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> list[SlotDemand] | None:
        found_id = await _visible_campaign(info, campaign_id, info.context.caller)
        if found_id is None:
            return None
        found = await wishes.wish_statistics(info.context.services, info.context.caller, found_id)
        return None if found is None else [SlotDemand.of(each) for each in found]

    @field(
        description="What the draw would lead to, with the wishes as they are now or were closed. "
        "Before the seed is fixed, the lots are others than those of the draw. Nothing is written. "
        "Null without a draw. Organizers only."
    )
    async def preview_draw(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        capacities: Annotated[
            list[WhatIfCapacity] | None,
            argument(description="What if slots had as many places? At most 100."),
        ] = None,
        max_bookings: Annotated[
            int | None, argument(description="What if each user got at most as many places?")
        ] = None,
    ) -> DrawPreview | None:
        info.context.require_organizer()
        if max_bookings is not None and max_bookings < 0:
            raise bad_input("maxBookings", "`maxBookings` must be a number from 0.")
        parsed = ids.parse_campaign_id(campaign_id)
        found = parsed and await draws.preview_draw(
            info.context.services, parsed, _to_capacities(capacities or []), max_bookings
        )
        return DrawPreview.from_domain(found) if isinstance(found, draws.DrawPreview) else None

    @field(
        description="The caller's entry in a draw and, once it is published, what became of each "
        "wish and why. It is that of the latest draw with closed wishes in which the caller has an "
        "entry, unless another one replaced it; `myResult` of each draw has them all. Null without "
        "an entry: before the wishes are closed, for a caller without wishes, and for one who was "
        "banned when they were closed."
    )
    async def my_draw_result(
        self, info: Info, campaign_id: CampaignIdArgument, user_id: ReadForArgument = None
    ) -> DrawResult | None:
        caller = info.context.caller if user_id is None else await info.context.caller_for(user_id)
        return await _find_result(info, campaign_id, caller.user_id, caller)

    @field(
        description="The same as `myDrawResult` about any user, for organizers who are asked why. "
        "Organizers only."
    )
    async def draw_result(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        user_id: Annotated[strawberry.ID, argument(description="The id of the user.")],
    ) -> DrawResult | None:
        info.context.require_organizer()
        user = ids.parse_user_id(user_id)
        return await _find_result(info, campaign_id, user) if user else None

    @field(
        description="The public record of a draw as a JSON document, which anybody can verify, "
        "with `slotlock draw verify` or a program of their own. From the root on, everybody reads "
        "the rules and the leaves. Organizers and those named by `recordFor` read the result when "
        "the draw is over. Null before the root. A record of more than 2,000 users is too large "
        "for a response: `GET /draws/{recordId}/record` has each."
    )
    async def draw_record(self, info: Info, draw_id: DrawIdArgument) -> str | None:
        found = await _find_draw(info, draw_id)
        if found is None:
            return None
        services, viewer = info.context.services, info.context.viewer
        return await public_records.draw_record(services, found, viewer)
