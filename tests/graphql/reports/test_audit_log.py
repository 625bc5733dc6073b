"""The log tells everything that happened to bookings and in waiting lists, the newest first."""

import asyncio
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx
import pytest

from slotlock.domain.booking.history import BookingAction
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now
from tests.support.model.stored_state import booking_history
from tests.support.scenarios.campaign_activity import (
    CampaignFixture,
    create_campaign_fixture,
    run_random_actions,
)

Told = tuple[Any, ...]
Pair = tuple[AppProcess, AppProcess]
AUDIT = """query($filter: AuditLogFilter!, $first: Int! = 100, $after: String) {
  auditLog(filter: $filter, first: $first, after: $after) {
    nodes {
      at action bookingId before after heldUntil overriddenLimits by { id } user { id } slot { id }
    }
    pageInfo { hasNextPage endCursor }
  } }"""
# What organisers do besides has a test of its own.
ROSTERS = [*BookingAction.__members__, "WAITLIST_JOINED", "WAITLIST_LEFT"]


def name() -> str:
    """A name that no other test gives."""
    return secrets.token_hex(4)


async def entries(organizer: BookingClient, filter_: Json, first: int = 100) -> list[Json]:
    """All entries, page by page."""
    nodes: list[Json] = []
    after, more = None, True
    while more:
        asked = {"actions": ROSTERS, **filter_}
        page = await organizer.execute(AUDIT, filter=asked, first=first, after=after)
        nodes += page["nodes"]
        assert len(page["nodes"]) <= first
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    return nodes


def told(entry: Json) -> Told:
    """An entry as it is compared."""
    by = entry["by"] and entry["by"]["id"][-24:]
    whose, slot = entry["user"]["id"][-24:], entry["slot"]["id"][-24:]
    booking = entry["bookingId"] and entry["bookingId"][-24:]
    at = datetime.fromisoformat(entry["at"])
    states = tuple(entry[state] and entry[state].lower() for state in ("before", "after"))
    return at, entry["action"].lower(), by, whose, slot, booking, *states


def logged(booking: Json, slot: Any, booking_id: Any) -> list[Told]:
    """The entries of a booking's document."""
    user, before = str(booking["user"]), ""
    found: list[Told] = []
    if booking.get("waitedSince"):
        found.append(
            (booking["waitedSince"], "waitlist_joined", user, user, str(slot), None, None, None)
        )
    for entry in booking_history(booking):
        states = (before or None, entry.status)
        whose = (entry.by, user, str(slot), str(booking_id))
        found.append((entry.at, entry.action, *whose, *states))
        before = entry.status
    return found


def documented(at: CampaignFixture) -> list[Told]:
    """Everything that happened in a campaign, put together by hand."""
    slots = {slot["_id"]: slot for slot in at.slot_documents()}
    among = {"slot": {"$in": list(slots)}}
    found = []
    for slot_id, slot in slots.items():
        for booking in slot["bookings"]:
            log = logged(booking, slot_id, booking["id"])
            if off := slot["cancellation"]:
                ends = ("cancelled", str(off["by"]), *log[-1][3:6], log[-1][-1], "cancelled")
                log.append((off["at"], *ends))
            found += log
        for turn in slot["waitlist"]:
            found.append(joined(turn, turn["since"], slot_id))
    for booking in at.documents("ended_bookings", **among):
        found += logged(booking, booking["slot"], booking["_id"])
    for turn in at.documents("ended_waitlist_entries", **among):
        found.append(joined(turn, turn["since"], turn["slot"]))
        by = turn["by"] and str(turn["by"])
        whose = (by, str(turn["user"]), str(turn["slot"]), None)
        found.append((turn["at"], "waitlist_left", *whose, None, None))
    return found


def joined(turn: Json, at: datetime, slot: Any) -> Told:
    """That somebody began to wait."""
    return (
        at,
        "waitlist_joined",
        str(turn["user"]),
        str(turn["user"]),
        str(slot),
        None,
        None,
        None,
    )


def ordered(found: list[Told]) -> list[Told]:
    """The same in one order, whatever happened in the same millisecond."""
    return sorted(found, key=str)


@pytest.fixture
async def story(two_apps: Pair, http: httpx.AsyncClient) -> CampaignFixture:
    """A campaign in which much has happened, and a slot was called off."""
    at = await create_campaign_fixture(http, two_apps, name(), member_count=8, slot_count=4)
    await run_random_actions(at, 60, 11)
    await at.organizer.cancel_slot(at.slot_ids[2])
    await run_random_actions(at, 20, 12)
    return at


async def test_the_log_of_a_campaign_is_all_that_its_documents_tell(story: CampaignFixture) -> None:
    found = await entries(story.organizer, {"campaignId": story.campaign_id}, first=7)
    times = [entry["at"] for entry in found]
    assert times == sorted(times, reverse=True)
    assert ordered([told(entry) for entry in found]) == ordered(documented(story))


async def test_each_filter_keeps_what_it_names_and_nothing_else(story: CampaignFixture) -> None:
    organizer, campaign = story.organizer, story.campaign_id
    everything = [told(entry) for entry in await entries(organizer, {"campaignId": campaign})]
    ada, boss = await story.members[0].fetch_user_id(), await organizer.fetch_user_id()
    middle = everything[len(everything) // 2][0]
    time = middle.isoformat()
    asked: list[tuple[Json, Callable[[Told], bool]]] = [
        ({"slotId": story.slot_ids[2]}, lambda e: bool(e[4] == story.slot_ids[2][-24:])),
        ({"userId": ada}, lambda e: bool(e[3] == ada[-24:])),
        ({"by": boss}, lambda e: bool(e[2] == boss[-24:])),
        ({"by": ada}, lambda e: bool(e[2] == ada[-24:])),
        ({"byNobody": True}, lambda e: e[2] is None),
        ({"actions": ["CANCELLED", "MOVED"]}, lambda e: e[1] in ("cancelled", "moved")),
        ({"actions": ["WAITLIST_JOINED"]}, lambda e: bool(e[1] == "waitlist_joined")),
        ({"actions": []}, lambda _: False),
        ({"from": time}, lambda e: bool(e[0] >= middle)),
        ({"until": time}, lambda e: bool(e[0] < middle)),
        (
            {"by": boss, "userId": ada, "until": time},
            lambda e: e[2:4] == (boss[-24:], ada[-24:]) and bool(e[0] < middle),
        ),
    ]
    for filter_, kept in asked:
        found = await entries(organizer, {"campaignId": campaign, **filter_})
        expected = [entry for entry in everything if kept(entry)]
        assert ordered([told(entry) for entry in found]) == ordered(expected), filter_
    # Alone, too: of these people nothing is known elsewhere.
    for alone, place in (({"userId": ada}, 3), ({"by": ada}, 2), ({"by": boss}, 2)):
        found = await entries(organizer, alone)
        (whom,) = alone.values()
        assert ordered([told(entry) for entry in found]) == ordered(
            [entry for entry in everything if entry[place] == whom[-24:]]
        )


async def test_what_was_overridden_is_told(two_apps: Pair, http: httpx.AsyncClient) -> None:
    (ada,), organizer = await create_booking_clients(http, 1, *two_apps)
    campaign = await create_campaign(organizer, opensAt=hours_from_now(1), eligibleGroups=[["5a"]])
    slot = await organizer.add_slot(campaignId=campaign)
    await organizer.book_slot(slot, userId=await ada.fetch_user_id())
    (entry,) = await entries(organizer, {"slotId": slot})
    assert set(entry["overriddenLimits"]) == {"NOT_YET_OPEN", "NOT_ELIGIBLE"}
    assert (entry["action"], entry["by"]["id"]) == ("BOOKED", await organizer.fetch_user_id())
    assert entry["user"]["id"] == await ada.fetch_user_id()


async def test_a_hold_that_ran_out_is_told_once_whether_or_not_it_was_swept(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    at = await create_campaign_fixture(http, two_apps, name(), member_count=2, slot_count=1)
    booking = await at.members[0].hold(at.slot_ids[0])
    at.expire_every_second_hold()  # and nobody sweeps
    unswept = await entries(at.organizer, {"slotId": at.slot_ids[0]})
    assert [entry["action"] for entry in unswept] == ["EXPIRED", "HELD"]
    assert [entry["bookingId"] for entry in unswept] == [booking["id"]] * 2
    page = await at.organizer.execute(
        AUDIT, filter={"slotId": at.slot_ids[0], "actions": ROSTERS}, first=1
    )
    await at.members[1].book_slot(at.slot_ids[0])
    swept = await entries(at.organizer, {"slotId": at.slot_ids[0]})
    assert swept[1:] == unswept
    after = page["pageInfo"]["endCursor"]
    rest = await at.organizer.execute(
        AUDIT, filter={"slotId": at.slot_ids[0], "actions": ROSTERS}, after=after
    )
    assert rest["nodes"] == unswept[1:]


async def test_pages_neither_skip_nor_repeat_while_more_happens(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    at = await create_campaign_fixture(http, two_apps, name(), member_count=6, slot_count=3)
    await run_random_actions(at, 30, 3)
    before = await entries(at.organizer, {"campaignId": at.campaign_id})
    going_on = asyncio.create_task(run_random_actions(at, 40, 4))
    walked: list[Json] = []
    after, more = None, True
    while more:
        page = await at.organizer.execute(
            AUDIT, filter={"campaignId": at.campaign_id, "actions": ROSTERS}, first=3, after=after
        )
        walked += page["nodes"]
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    await going_on
    steps = [(e["at"], e["action"], e["bookingId"], e["user"]["id"]) for e in walked]
    assert len(set(steps)) == len(steps)
    assert walked[-len(before) :] == before


async def test_the_log_is_for_organisers(two_apps: Pair, http: httpx.AsyncClient) -> None:
    (ada,), organizer = await create_booking_clients(http, 1, *two_apps)
    filter_ = {"userId": await ada.fetch_user_id()}
    assert await ada.error_code(AUDIT, filter=filter_) == "FORBIDDEN"
    nobody = BookingClient(http, two_apps[0].url)
    assert await nobody.error_code(AUDIT, filter=filter_) == "UNAUTHENTICATED"
    assert await entries(organizer, filter_) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"filter": {}},
        {"filter": {"actions": ["BOOKED"], "from": "2030-01-01T00:00:00Z"}},
        {"filter": {"byNobody": True}},
        {"filter": {"campaignId": "nonsense"}},
        {"filter": {"slotId": "user_" + "0" * 24}},
        {"filter": {"by": ""}},
        {"after": "nonsense"},
        {"after": "WzEsMiwzXQ=="},
        {"after": "WzFlOTksIjAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMCIsMF0="},
        {"after": "WzEsIjAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMCIsLTFd"},
        {"first": 0},
        {"first": 101},
    ],
)
async def test_what_cannot_be_is_bad_user_input(
    two_apps: Pair, http: httpx.AsyncClient, wrong: Json
) -> None:
    _, organizer = await create_booking_clients(http, 0, *two_apps)
    asked = {"filter": {"userId": await organizer.fetch_user_id()}, **wrong}
    assert await organizer.error_code(AUDIT, **asked) == "BAD_USER_INPUT"


@pytest.mark.parametrize("kind", ["campaign", "slot", "user", "by"])
async def test_nothing_happened_to_what_there_is_not(
    two_apps: Pair, http: httpx.AsyncClient, kind: str
) -> None:
    _, organizer = await create_booking_clients(http, 0, *two_apps)
    known = "user" if kind == "by" else kind
    field = kind if kind == "by" else f"{kind}Id"
    far = {"from": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"}
    assert await entries(organizer, {field: f"{known}_{'0' * 24}", **far}) == []
