"""What a page of those without a place reads, when nearly everybody has one."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient, monitoring

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.infrastructure.mongo.campaigns import unplaced
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.stores.campaigns import insert_open_campaign

PEOPLE, UNPLACED = 40, (7, 8, 35)


class Read(monitoring.CommandListener):
    """How many people were read."""

    def __init__(self) -> None:
        self.people = 0

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Of no interest."""

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        cursor = event.reply.get("cursor", {})
        if cursor.get("ns", "").endswith(".users"):
            self.people += len(cursor.get("firstBatch", cursor.get("nextBatch", ())))

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Of no interest."""


@pytest.fixture
async def crowded(servers: EmbeddedServers) -> AsyncIterator[tuple[Database, Read, Campaign]]:
    """A campaign in which all but three of forty people have a place."""
    read, name = Read(), f"unplaced_{ObjectId()}"
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        database_url(servers, name), tz_aware=True, w="majority", event_listeners=[read]
    )
    try:
        database = client.get_default_database()
        for store in (
            SlotRepository(database),
            CampaignRepository(database),
            UserRepository(database),
        ):
            await store.create_indexes()
        campaign = await insert_open_campaign(database, (("5a",),))
        people = [person(number) for number in range(PEOPLE)]
        await database["users"].insert_many(people)
        bookings = [
            {"id": ObjectId(), "user": each["_id"], "at": utc_now()}
            for number, each in enumerate(people)
            if number not in UNPLACED
        ]
        await database["slots"].update_one({}, {"$set": {"bookings": bookings}})
        yield database, read, campaign
        await client.drop_database(name)
    finally:
        await client.close()


def person(number: int) -> Document:
    """Somebody of class 5a."""
    email = f"{number:03}@slotlock.test"
    known = {"name": email, "email": email, "role": "member", "searchWords": [email]}
    return {"_id": ObjectId(), **known, "createdAt": utc_now(), "groups": ["5a"]}


async def test_a_page_looks_at_so_many_people_and_tells_how_far_it_came(
    crowded: tuple[Database, Read, Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unplaced, "SCAN_BATCH_SIZE", 5)
    monkeypatch.setattr(unplaced, "MAX_SCANNED", 15)
    database, read, campaign = crowded
    store, now = CampaignRepository(database).unplaced_users, utc_now() + timedelta(seconds=1)
    found: list[list[str]] = []
    after, more = None, True
    while more:
        read.people = 0
        page = await store.page(campaign, None, 2, after, now)
        assert read.people <= 15
        found.append([each.user.email[:3] for each in page.items])
        after, more = page.searched_until, page.has_more
    # The third page came to the end; the second found nobody, and said that more follow.
    assert found == [["007", "008"], [], ["035"]]


async def test_a_page_that_is_full_ends_at_its_last_person(
    crowded: tuple[Database, Read, Campaign],
) -> None:
    database, _, campaign = crowded
    store = CampaignRepository(database).unplaced_users
    page = await store.page(campaign, None, 1, None, utc_now())
    assert ([each.user.email for each in page.items], page.has_more) == (
        ["007@slotlock.test"],
        True,
    )
    assert page.searched_until == "007@slotlock.test"
    page = await store.page(campaign, None, 2, page.searched_until, utc_now())
    assert ([each.user.email[:3] for each in page.items], page.has_more) == (["008", "035"], False)
