"""A creation whose commit MongoDB does not confirm in time, and its repetition with the same key.

The route to MongoDB holds the commit until the caller has its answer. Then it delivers it.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from pymongo.errors import PyMongoError

from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaign_copies.campaign_copy_outcomes import CampaignCopy
from slotlock.domain.campaign_copies.copying import CopyRequest
from slotlock.domain.campaigns.campaign import Campaign, CampaignDraft, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.resources.resource import Resource
from slotlock.domain.slots.series import OnConflict, SeriesCreated
from slotlock.domain.slots.slot_outcomes import SlotSaved
from slotlock.domain.slots.slot_patch import SlotDraft
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import CommitUnknownError, is_unavailable
from slotlock.infrastructure.mongo.document_parts import campaign_to_document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.slot_documents import to_document
from slotlock.services import teams
from slotlock.services.campaigns import campaign_copies, campaigns
from slotlock.services.container import Services
from slotlock.services.slots import editing, series_creation
from tests.support.domain.builders import NOW, build_draft, build_slot
from tests.support.stores.late_store import LateStore, is_commit, short_timeouts, store

__all__ = ["short_timeouts", "store"]

Create = Callable[[Services, UserId, str | None], Awaitable[object]]


def draft(resource: str | None = None) -> SlotDraft:
    """Return a slot of one hour."""
    start = NOW + timedelta(days=1)
    return build_draft(
        "Late",
        start,
        start + timedelta(hours=1),
        "UTC",
        1,
        None,
        SlotKind.MEETING,
        True,
        resource=resource,
    )


async def create_slot(services: Services, user_id: UserId, key: str | None) -> object:
    """Create a slot and return its id."""
    outcome = (await editing.create(services, draft(), user_id, None, key)).outcome
    assert isinstance(outcome, SlotSaved), outcome
    return outcome.slot_id


async def create_slot_with_resource(services: Services, user_id: UserId, key: str | None) -> object:
    """Create a slot that occupies a resource of the user and return its id."""
    await services.resources.insert(Resource(f"Room {user_id}"))
    outcome = (await editing.create(services, draft(f"Room {user_id}"), user_id, None, key)).outcome
    assert isinstance(outcome, SlotSaved), outcome
    return outcome.slot_id


async def create_series(services: Services, user_id: UserId, key: str | None) -> object:
    """Create a series and return its id with those of its slots."""
    rule = "FREQ=WEEKLY;COUNT=3"
    outcome = await series_creation.create(
        services, draft(), rule, [], OnConflict.STRICT, user_id, None, key
    )
    assert isinstance(outcome, SeriesCreated), outcome
    return outcome.series_id, [slot.id for slot in outcome.slots]


async def create_campaign(services: Services, user_id: UserId, key: str | None) -> object:
    """Create a campaign and return it."""
    campaign = CampaignDraft("Late", NOW, NOW + timedelta(days=1))
    outcome = await campaigns.create(services, campaign, user_id, key)
    assert isinstance(outcome, CampaignSaved), outcome
    return outcome.campaign


async def copy_campaign(services: Services, user_id: UserId, key: str | None) -> object:
    """Copy a campaign of the user with one slot, which exists from the first call on."""
    campaign_id = CampaignId(user_id)
    if await services.campaigns.find(campaign_id) is None:
        terms = CampaignTerms(campaign_id, 1, True, NOW, NOW + timedelta(days=1))
        stored = campaign_to_document(Campaign(campaign_id, "Late", terms), NOW)
        database = services.slot_writer._database
        await database["campaigns"].insert_one(stored)
        await database["slots"].insert_one(to_document(build_slot(id=user_id, terms=terms)))
    outcome = await campaign_copies.copy(
        services, CopyRequest(campaign_id, "Copy", 52), user_id, key
    )
    assert isinstance(outcome, CampaignCopy), outcome
    return outcome


async def create_team(services: Services, user_id: UserId, key: str | None) -> object:
    """Create a team and return it."""
    outcome = await teams.create(services, "Late", user_id, key)
    assert isinstance(outcome, TeamSaved), outcome
    return outcome.team


CREATIONS: dict[str, tuple[Create, str, int]] = {
    "slot": (create_slot, "slots", 1),
    "slot with a resource": (create_slot_with_resource, "slots", 1),
    "series": (create_series, "slots", 3),
    "campaign": (create_campaign, "campaigns", 1),
    "campaign copy": (copy_campaign, "slots", 2),  # the original and the copy
    "team": (create_team, "teams", 1),
}


async def create_late(store: LateStore, create: Create, user_id: UserId, key: str | None) -> None:
    """Create something whose commit arrives after its result was unknown to the caller."""
    store.route.is_held = is_commit
    with pytest.raises((CommitUnknownError, PyMongoError)) as unknown:
        await create(store.services, user_id, key)
    assert is_unavailable(unknown.value)
    await store.deliver_held()


async def count(store: LateStore, collection: str) -> int:
    """Return how many documents there are."""
    return await store.services.slot_writer._database[collection].count_documents({})


@pytest.mark.parametrize("name", CREATIONS)
async def test_a_creation_that_arrives_late_is_returned_to_the_repeated_request(
    store: LateStore, name: str
) -> None:
    create, collection, size = CREATIONS[name]
    user_id, before = UserId(str(new_slot_id())), await count(store, collection)
    await create_late(store, create, user_id, "key")
    created = await create(store.services, user_id, "key")
    assert await create(store.services, user_id, "key") == created
    assert await count(store, collection) == before + size


@pytest.mark.parametrize("name", ["slot", "series", "campaign"])
async def test_control_without_a_key_a_late_creation_is_made_twice(
    store: LateStore, name: str
) -> None:
    create, collection, size = CREATIONS[name]
    user_id, before = UserId(str(new_slot_id())), await count(store, collection)
    await create_late(store, create, user_id, None)
    await create(store.services, user_id, None)
    assert await count(store, collection) == before + 2 * size
