"""Draws, wishes and results as clients see them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self, cast

import strawberry
from strawberry import Parent, Private, argument, field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.draws import draw, drawing, measures, wish_closing
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.campaigns.campaign_queries import Campaign, load_campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core.arguments import ReadForArgument
from slotlock.graphql.core.enums import DrawMethod, DrawRecordReaders, DrawState, WishResult
from slotlock.graphql.core.ids import (
    draw_global_id,
    parse_user_id,
    slot_global_id,
    user_global_id,
)
from slotlock.graphql.core.node import attribute_field
from slotlock.graphql.slots.slot_types import Slot, load_slot
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.infrastructure.mongo.draws import wish_repository
from slotlock.infrastructure.mongo.draws.draw_repository import OwnResult
from slotlock.services.draws import draws


@strawberry.type(description="The public randomness of a draw.")
class DrawSeed:
    text: str = field(description="The seed, a text of one line.")
    source: str = field(description="Where it is from, so that others can look it up.")
    by_server: bool = field(
        description="Whether the server made it, which nobody outside can check."
    )


@strawberry.type(description="The randomness from which a draw will give the places.")
class DrawAnnouncement:
    source: str | None = field(
        description="The public source, and how it is written. Null if the server made the seed."
    )
    at: datetime | None = field(
        description="When the source is public. Nobody draws before. Null for a seed of the server."
    )
    commitment: str | None = field(
        description="The hash of the seed that the server made when the draw opened: SHA-256 of "
        "the JSON list of the draw's id and the seed. Null if a source was announced."
    )


@strawberry.type(description="One step of a draw.")
class DrawAct:
    at: datetime = field(description="When it happened.")
    state: DrawState = field(description="The state that it led to.")
    reason: str | None = field(
        description="Why a draw was replaced, or opened after another one; null for other steps."
    )
    wishes_until: datetime | None = field(
        description="Until when wishes are entered since then; null for steps that do not set it."
    )
    seed_source: str | None = field(
        description="The source of the seed since then; null for a seed of the server."
    )
    seed_at: datetime | None = field(description="When that source is public; null without one.")

    @field(
        description="The organizer who did it. Null for members, and if the time closed the wishes."
    )
    async def by(found: Parent[draw.DrawAct], info: Info) -> User | None:
        viewer = info.context.viewer
        if found.by is None or viewer is None or not viewer.is_organizer:
            return None
        return await load_referenced_user(info, found.by)


@strawberry.type(
    description="The draw of a campaign: users rank slots, and places are given by lot."
)
class Draw:
    def __init__(self, draw: draw.Draw) -> None:
        self._draw = draw

    @field(description="The id of the draw, for `drawById` and `drawRecord`.")
    def record_id(self) -> strawberry.ID:
        return draw_global_id(self._draw.id)

    state = attribute_field("_draw.state", DrawState, "The state after the last step.")
    method = attribute_field("_draw.settings.method", DrawMethod, "How places are given.")
    wishes_until = attribute_field(
        "_draw.settings.wishes_until", datetime, "Users enter wishes until this time."
    )
    shows_demand = attribute_field(
        "_draw.settings.shows_demand",
        bool,
        "Whether members see how often each slot is wished for.",
    )
    leftovers_open_at = attribute_field(
        "_draw.settings.leftovers_open_at",
        datetime | None,
        "From when on everybody books what is left; null for as soon as places are booked and the "
        "campaign is open.",
    )
    joins_waitlists = attribute_field(
        "_draw.settings.joins_waitlists",
        bool,
        "Whether users without a place in a full slot join its waiting list, in the order of the "
        "draw.",
    )
    root = attribute_field(
        "_draw.root",
        str | None,
        "The hash over rules, slots and wishes, which is public before the seed; null until the "
        "wishes are closed and stored.",
    )
    root_at = attribute_field(
        "_draw.root_at", datetime | None, "When the root became public; null before."
    )

    @field(
        description="How many users and teams have wishes that count. Only organizers see it "
        "before the wishes are closed; null then for members."
    )
    async def entry_count(self, info: Info) -> int | None:
        counted, viewer = self._draw.entry_count, info.context.viewer
        if counted is not None or viewer is None or not viewer.is_organizer:
            return counted
        return await info.context.services.wishes.count(self._draw.id)

    is_written = attribute_field(
        "_draw.is_written",
        bool,
        "Whether all that follows the publication is done: bookings, waiting lists, mails and the "
        "opening of the campaign. It takes some seconds.",
    )

    announcement = attribute_field(
        "_draw.announcement", DrawAnnouncement, "From which randomness the places will be drawn."
    )
    record_for = attribute_field(
        "_draw.settings.record_for", DrawRecordReaders, "Who reads the result in the record."
    )
    record_hash = attribute_field(
        "_draw.record_hash",
        str | None,
        "The SHA-256 of the record with the result; null until the draw is over and it is stored. "
        "Every later draw of the campaign has it in its root.",
    )

    @field(description="The earlier draws of the campaign, the first one first, at most 100.")
    async def former(self, info: Info) -> "list[Draw]":
        found = await info.context.services.draws.find_all(self._draw.campaign_id)
        return [Draw(each) for each in reversed(found) if each.id < self._draw.id]

    @field(description="Whether users can enter wishes at the moment.")
    def accepts_wishes(self, info: Info) -> bool:
        return self._draw.accepts_wishes_at(info.context.services.now())

    @field(description="The seed; null before it is fixed, and for members before publication.")
    def seed(self, info: Info) -> DrawSeed | None:
        viewer, seed = info.context.viewer, self._draw.seed
        is_shown = self._draw.is_public or (viewer is not None and viewer.is_organizer)
        return cast("DrawSeed", seed) if is_shown else None

    @field(
        description="Why the server cannot go on with the draw, after it has failed three times: "
        "the name of a refusal or error. It tries again every 10 minutes at least. Null otherwise, "
        "and for members."
    )
    def problem(self, info: Info) -> str | None:
        viewer = info.context.viewer
        return self._draw.shown_problem if viewer and viewer.is_organizer else None

    acts = attribute_field(
        "_draw.acts",
        list[DrawAct],
        "The steps of the draw and the changes of its settings, the first one first.",
    )

    @field(
        description="The draw before this one, which was replaced or published, and whose record "
        "stays public."
    )
    def supersedes_id(self) -> strawberry.ID | None:
        return draw_global_id(self._draw.supersedes) if self._draw.supersedes else None

    @field(description="The campaign whose places are drawn.")
    async def campaign(self, info: Info) -> Campaign | None:
        return await load_campaign(info, self._draw.campaign_id)

    @field(
        description="The caller's entry in this draw and, once it is published, what became of "
        "each wish and why. Null before the wishes are closed, and without an entry."
    )
    async def my_result(self, info: Info, user_id: ReadForArgument = None) -> "DrawResult | None":
        context = info.context
        viewer = context.viewer if user_id is None else await context.caller_for(user_id)
        return await self._result_of(info, viewer.user_id, viewer) if viewer else None

    @field(
        description="The same as `myResult` about any user, for organizers who are asked why. "
        "Organizers only."
    )
    async def result(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The id of the user.")],
    ) -> "DrawResult | None":
        info.context.require_organizer()
        parsed = parse_user_id(user_id)
        return await self._result_of(info, parsed) if parsed else None

    async def _result_of(
        self, info: Info, user_id: UserId, viewer: Caller | None = None
    ) -> "DrawResult | None":
        found = await draws.explain_result(info.context.services, self._draw, user_id)
        return DrawResult.from_domain(found, viewer) if found else None


@strawberry.type(description="A slot that somebody wishes for.")
class WishedSlot:
    own_id: Private[SlotId]
    viewer: Private[Caller | None] = None

    @field(description="The id of the slot.")
    def slot_id(self) -> strawberry.ID:
        return slot_global_id(self.own_id)

    @field(description="The slot; null if it is hidden now.")
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.own_id, self.viewer)


@strawberry.type
class _RankedWishes:
    ranked: list[WishedSlot] = field(description="The slots, the best wish first.")
    user_ids: list[strawberry.ID] = field(
        description="The users who wish together; one, if no team does."
    )
    changed_at: datetime = field(description="When they were changed last.")

    @classmethod
    def of(cls, own: wish_closing.Wishes, viewer: Caller | None = None, **more: Any) -> Self:
        """Return these wishes, as the caller reads them or as this viewer does."""
        return cls(
            ranked=[WishedSlot(own_id=slot_id, viewer=viewer) for slot_id in own.slot_ids],
            user_ids=[user_global_id(user_id) for user_id in own.user_ids],
            changed_at=own.at,
            **more,
        )


@strawberry.type(description="The ranked wishes of a user, or of a team together.")
class Wishes(_RankedWishes):
    salt: str = field(
        description="What makes the hash of a user's id secret. With it, users find their entry in "
        "the public record."
    )


@strawberry.type(description="The ranked wishes of a user in a draw, alone or with a team.")
class UserWishes(_RankedWishes):
    draw: Draw = field(description="The draw. Its `result` has what became of the wishes.")


@strawberry.type(description="The wishes are stored, and count when the wishes are closed.")
class WishesSaved:
    wishes: Wishes | None = field(description="The wishes; null if they were removed.")


@strawberry.type(description="How often a slot is wished for.")
class SlotDemand(WishedSlot):
    wishes: int = field(description="How many users wish for it.")
    first_wishes: int = field(description="How many of them wish for it most.")

    @classmethod
    def of(cls, demand: wish_repository.SlotDemand) -> Self:
        """Return the demand for a slot."""
        wishes, first_wishes = demand.wishes, demand.first_wishes
        return cls(own_id=demand.slot_id, wishes=wishes, first_wishes=first_wishes)


@strawberry.type(description="What became of a wish, and why.")
class WishOutcome(WishedSlot):
    rank: int = field(description="The rank of the wish, from 1.")
    result: WishResult = field(description="What became of it.")
    round: int | None = field(description="The round in which the place was given, from 1.")
    last_number_served: int | None = field(
        description="The lottery number that got a place in the slot last, if the wish found too "
        "few; null if nobody got one in the draw before."
    )
    group: str | None = field(description="The group whose places were taken.")
    not_booked: str | None = field(
        description="The code of the refusal if a place was given and could not be booked for this "
        "user, such as SLOT_CANCELLED. Null otherwise."
    )
    conflict_id: Private[SlotId | None]

    @field(
        description="The booked slot that rules the wish out: it overlaps, or has the same "
        "`choiceGroup`. Null for the limit of the campaign, and if the slot is hidden now."
    )
    async def conflict(self, info: Info) -> Slot | None:
        return await load_slot(info, self.conflict_id, self.viewer) if self.conflict_id else None

    @classmethod
    def of(
        cls,
        rank: int,
        outcome: drawing.WishOutcome,
        not_booked: str | None,
        viewer: Caller | None,
    ) -> Self:
        """Return the outcome of the wish with this rank."""
        return cls(
            own_id=outcome.slot_id,
            rank=rank,
            result=outcome.result,
            round=outcome.round,
            last_number_served=outcome.last_number,
            group=outcome.group,
            not_booked=not_booked,
            conflict_id=outcome.conflict,
            viewer=viewer,
        )


@strawberry.type(description="What the caller got in a draw, and why.")
class DrawResult:
    salt: str = field(description="The salt of the caller's wishes.")
    leaf: str = field(description="The hash of the caller's entry, by which the record names it.")
    member_count: int = field(
        description="How many users the entry has. A team gets places for all of them or none, so "
        "that a wish fails if it does for one of them."
    )
    not_eligible: str | None = field(
        description="The code of the refusal if one of them could not book in the campaign when "
        "the wishes were closed, such as NOT_ELIGIBLE or EMAIL_NOT_VERIFIED. Null otherwise."
    )
    blocked: list[WishOutcome] = field(
        description="The wishes that no lot can give, and why: the user may not have them, or an "
        "earlier booking rules them out. They are known when the wishes are closed."
    )
    lot: str | None = field(description="The lot of the entry; null before the publication.")
    lottery_number: int | None = field(
        description="The place of the lot among all, from 1; null before the publication."
    )
    wishes: list[WishOutcome] = field(
        description="The wishes with their results, the best wish first; none before publication."
    )

    @classmethod
    def from_domain(cls, own: OwnResult, viewer: Caller | None = None) -> Self:
        """Return the result, as the caller reads it or as this viewer does."""
        ranks = {slot_id: rank for rank, slot_id in enumerate(own.wishes, start=1)}

        def show(outcomes: Iterable[drawing.WishOutcome]) -> list[WishOutcome]:
            return [
                WishOutcome.of(ranks[each.slot_id], each, own.not_booked.get(each.slot_id), viewer)
                for each in outcomes
            ]

        return cls(
            salt=own.salt,
            leaf=own.leaf,
            member_count=own.member_count,
            not_eligible=own.ruled_out,
            blocked=show(own.blocked),
            lot=own.drawn.lot if own.drawn else None,
            lottery_number=own.drawn.number if own.drawn else None,
            wishes=show(own.drawn.outcomes if own.drawn else ()),
        )


@strawberry.type(description="How good a result is for all users.")
class DrawMeasures:
    method: DrawMethod = field(description="The method that gives this result.")
    users: int = field(description="How many users have wishes.")
    without_place: int = field(description="How many of them get no place.")
    places: int = field(description="How many places are given.")
    average_rank: float | None = field(
        description="The mean rank of the wishes that are granted, from 1."
    )
    envious: int = field(
        description="How many users would have liked to have what another user has, even without "
        "that one's best place."
    )

    @classmethod
    def of(cls, method: DrawMethod, found: measures.DrawMeasures) -> Self:
        """Return the measures of a method."""
        return cls(method=method, **asdict(found))


@strawberry.type(description="How full a slot would be.")
class PreviewedSlot:
    slot_id: strawberry.ID = field(description="The id of the slot.")
    title: str = field(description="The title of the slot.")
    capacity: int = field(description="Its places, as the preview counts them.")
    booked: int = field(description="How many places were taken before the draw.")
    granted: int = field(description="How many places the draw gives.")
    refused: int = field(description="How many wishes fail because the slot or a group is full.")


@strawberry.type(description="What the draw would lead to. Nothing is written.")
class DrawPreview:
    measures: list[DrawMeasures] = field(
        description="The measures of each method, with the same seed and wishes."
    )
    slots: list[PreviewedSlot] = field(
        description="The slots of the campaign, by title, as the method of the draw fills them."
    )

    @classmethod
    def from_domain(cls, preview: draws.DrawPreview) -> Self:
        counts, results = Counter[tuple[SlotId, WishResult]](), drawing.WishResult
        for each in preview.drawn:
            for outcome in each.outcomes:
                counts[outcome.slot_id, outcome.result] += len(each.entry.members)
        return cls(
            measures=[DrawMeasures.of(*each) for each in preview.measures.items()],
            slots=[
                PreviewedSlot(
                    slot_id=slot_global_id(slot.id),
                    title=slot.title,
                    capacity=slot.capacity,
                    booked=slot.booked,
                    granted=counts[slot.id, results.GRANTED],
                    refused=counts[slot.id, results.FULL] + counts[slot.id, results.GROUP_FULL],
                )
                for slot in sorted(preview.basis.slots, key=lambda each: (each.title, each.id))
            ],
        )
