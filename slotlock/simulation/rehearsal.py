"""A rehearsal: the copy of an organizer's campaign, and its removal after the rush."""

import itertools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from slotlock.simulation.client.concurrency import gather_limited
from slotlock.simulation.client.documents import (
    CAMPAIGN,
    CANCEL_SLOT,
    COPY_CAMPAIGN,
    DELETE_CAMPAIGN,
    DELETE_SLOT,
    ERASE_USER,
    PUBLISH_CAMPAIGN,
    SET_GROUPS,
    SLOTS_OF_CAMPAIGN,
    UNPUBLISH_CAMPAIGN,
    UPDATE_CAMPAIGN,
    VOUCH_FOR_USER,
)
from slotlock.simulation.client.http import GraphQLClient
from slotlock.simulation.model.attempts import SimulatedSlot, SimulatedUser
from slotlock.simulation.model.plan import BookingMode, SimulationConfig, SimulationError
from slotlock.simulation.setup import require_type

# As late as a copy may be: its slots use the resources of the originals, at times that are free.
WEEKS = 200
MAX_GROUP_SETS = 10
MAX_GROUPS = 20
# The rest of the name of a campaign, which has at most 200 characters.
MAX_NAME_LENGTH = 160


@dataclass(frozen=True, slots=True)
class RehearsedCampaign:
    """The copy of a campaign; drafts are no part of the rush."""

    id: str
    slots: Sequence[SimulatedSlot]
    draft_ids: Sequence[str]
    groups_of_slots: Sequence[tuple[str, ...]]


async def load_original(
    client: GraphQLClient, config: SimulationConfig, token: str
) -> Mapping[str, Any]:
    """Return the name and the groups of the campaign; raises SimulationError without it."""
    original: Mapping[str, Any] | None = await client.query(CAMPAIGN, token, id=config.campaign)
    if original is None:
        raise SimulationError(f"there is no campaign {config.campaign}")
    if original["admission"] == "QUEUE_ONLY" and config.mode is not BookingMode.QUEUE:
        raise SimulationError("the campaign takes requests through the queue only: --mode queue")
    return original


async def copy_campaign(
    client: GraphQLClient, token: str, original: Mapping[str, Any]
) -> RehearsedCampaign:
    """Copy a campaign with its slots; the copy is not published."""
    name = f"Rehearsal of {original['name'][:MAX_NAME_LENGTH]}, {datetime.now(UTC):%Y-%m-%d %H:%M}"
    copy = {"campaignId": original["id"], "name": name, "weeks": WEEKS, "dryRun": False}
    response = require_type(await client.query(COPY_CAMPAIGN, token, input=copy), "CampaignCopy")
    campaign_id = str(response["campaign"]["id"])

    async def load_slots(status: str) -> list[Mapping[str, Any]]:
        pages = client.paginate(SLOTS_OF_CAMPAIGN, token, campaign=campaign_id, status=status)
        return [node async for node in pages]

    slots, drafts = await load_slots("PUBLISHED"), await load_slots("DRAFT")
    return RehearsedCampaign(
        campaign_id,
        [SimulatedSlot(slot["id"], slot["title"]) for slot in slots],
        [draft["id"] for draft in drafts],
        sorted({tuple(slot["onlyForGroups"]) for slot in slots} - {()}),
    )


async def publish(
    client: GraphQLClient,
    token: str,
    campaign: RehearsedCampaign,
    original: Mapping[str, Any],
    users: Sequence[SimulatedUser],
) -> None:
    """Publish a copy in which only the simulated users may book.

    Each of them gets one group of every set, one that nobody else has and that all must have, and
    one of those that each slot is for. There are `MAX_GROUPS` of a user at most.
    """
    own_group = f"rehearsal-{secrets.token_hex(6)}"
    group_sets = [*original["eligibleGroups"][: MAX_GROUP_SETS - 1], [own_group]]
    sets_of_user = [*group_sets, *campaign.groups_of_slots][:MAX_GROUPS]

    async def set_groups(numbered: tuple[int, SimulatedUser]) -> None:
        number, user = numbered
        names = [groups[number % len(groups)] for groups in sets_of_user]
        groups = list(dict.fromkeys(name.replace("*", own_group) for name in names))
        require_type(await client.query(VOUCH_FOR_USER, token, id=user.user_id), "User")
        change = {"userId": user.user_id, "groups": groups}
        require_type(await client.query(SET_GROUPS, token, input=change), "User")

    await gather_limited(set_groups, list(enumerate(users)))
    change = {"campaignId": campaign.id, "eligibleGroups": group_sets}
    require_type(await client.query(UPDATE_CAMPAIGN, token, input=change), "Campaign")
    require_type(await client.query(PUBLISH_CAMPAIGN, token, id=campaign.id), "Campaign")


async def remove(
    client: GraphQLClient, token: str, campaign: RehearsedCampaign, users: Sequence[SimulatedUser]
) -> None:
    """Hide a copy, cancel its bookings and erase the users; print what cannot be deleted.

    A slot that users have booked can be cancelled, but not deleted.
    """
    require_type(await client.query(UNPUBLISH_CAMPAIGN, token, id=campaign.id), "Campaign")

    async def remove_slot(slot_id: str) -> bool:
        deleted = await client.query_with_retry(DELETE_SLOT, token, id=slot_id)
        if deleted["__typename"] != "SlotHasBookings":
            return False
        require_type(await client.query_with_retry(CANCEL_SLOT, token, id=slot_id), "Slot")
        return True

    slot_ids = itertools.chain((slot.id for slot in campaign.slots), campaign.draft_ids)
    cancelled_count = sum(await gather_limited(remove_slot, list(slot_ids)))
    try:
        await gather_limited(
            lambda user: client.query_with_retry(ERASE_USER, token, id=user.user_id), list(users)
        )
    except SimulationError as error:
        print(f"the simulated users stay ({error})", flush=True)
    await client.query_with_retry(DELETE_CAMPAIGN, token, id=campaign.id)
    if cancelled_count:
        print(
            f"what stays of the copy, for organizers only: {campaign.id} with "
            f"{cancelled_count:,} cancelled slots, which have had bookings",
            flush=True,
        )
