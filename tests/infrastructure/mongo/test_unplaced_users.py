"""The number of users that a page of unplaced users reads if nearly all have a place."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient, monitoring

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.reports.campaign_reports import UnplacedUserPage
from slotlock.infrastructure.mongo.campaigns import unplaced
from slotlock.infrastructure.mongo.campaigns.unplaced import UnplacedUserQueries
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.services.container import utc_now
from tests.support.stores.empty_database import build_indexes, empty_database
from tests.support.stores.slots import insert_open_campaign

USER_COUNT, UNPLACED = 40, (7, 8, 35)


class UserReadCounter(monitoring.CommandListener):
    """Counts the user documents that were read."""

    def __init__(self) -> None:
        self.count = 0

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Ignore the command."""

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        cursor = event.reply.get("cursor", {})
        if cursor.get("ns", "").endswith(".users"):
            self.count += len(cursor.get("firstBatch", cursor.get("nextBatch", ())))

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Ignore the failure."""


@dataclass(frozen=True)
class CrowdedCampaign:
    """A campaign in which all but three of forty users have a place."""

    unplaced_users: UnplacedUserQueries
    campaign: Campaign
    reads: UserReadCounter

    async def page(self, first: int, after: str | None) -> UnplacedUserPage:
        """Return the next users without a place."""
        now = utc_now() + timedelta(seconds=1)
        return await self.unplaced_users.page(self.campaign, None, first, after, now)


@pytest.fixture
async def crowded(servers: EmbeddedServers) -> AsyncIterator[CrowdedCampaign]:
    """Yield a campaign with many users and bookings."""
    reads = UserReadCounter()
    with empty_database(servers) as url:
        client: AsyncMongoClient[Document] = AsyncMongoClient(
            url, tz_aware=True, w="majority", event_listeners=[reads]
        )
        database = client.get_default_database()
        repositories = Repositories(database)
        await build_indexes(url, repositories.indexes)
        campaign = await insert_open_campaign(database, (("5a",),))
        users = [user_document(number) for number in range(USER_COUNT)]
        await database["users"].insert_many(users)
        bookings = [
            {"id": ObjectId(), "user": user["_id"], "at": utc_now()}
            for number, user in enumerate(users)
            if number not in UNPLACED
        ]
        await database["slots"].update_one({}, {"$set": {"bookings": bookings}})
        async with client:
            yield CrowdedCampaign(repositories.unplaced_users, campaign, reads)


def user_document(number: int) -> Document:
    """Return the document of a user in class 5a."""
    email = f"{number:03}@slotlock.test"
    account = {"name": email, "email": email, "role": "member", "searchWords": [email]}
    return {"_id": ObjectId(), **account, "createdAt": utc_now(), "groups": ["5a"]}


def numbers_of(page: UnplacedUserPage) -> list[str]:
    """Return the numbers of a page's users."""
    return [item.user.login_name[:3] for item in page.items]


async def test_a_page_reads_a_limited_number_of_users_and_says_how_far_it_got(
    crowded: CrowdedCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unplaced, "SCAN_BATCH_SIZE", 5)
    monkeypatch.setattr(unplaced, "MAX_SCANNED", 15)
    pages: list[list[str]] = []
    after, has_more = None, True
    while has_more:
        crowded.reads.count = 0
        page = await crowded.page(2, after)
        assert crowded.reads.count <= 15
        pages.append(numbers_of(page))
        after, has_more = page.searched_until, page.has_more
    # The second page is empty and says that more may follow. The third one reaches the end.
    assert pages == [["007", "008"], [], ["035"]]


async def test_a_full_page_ends_at_its_last_user(crowded: CrowdedCampaign) -> None:
    page = await crowded.page(1, None)
    assert (numbers_of(page), page.has_more) == (["007"], True)
    assert page.searched_until == "007@slotlock.test"
    page = await crowded.page(2, page.searched_until)
    assert (numbers_of(page), page.has_more) == (["008", "035"], False)
