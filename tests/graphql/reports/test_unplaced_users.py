"""Who did not get a place, and where they wait: as anybody finds who looks through everything."""

import secrets
from typing import Any

import httpx
import pytest

from tests.support.apps.deployment import object_id
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json, hours_from_now
from tests.support.scenarios.campaign_activity import (
    CampaignFixture,
    create_campaign_fixture,
    run_random_actions,
)

Pair = tuple[AppProcess, AppProcess]
UNPLACED = """query($campaign: ID!, $group: String, $first: Int! = 100, $after: String) {
  unplaced(campaignId: $campaign, group: $group, first: $first, after: $after) {
    edges { cursor }
    nodes { user { id email groups } waiting { id since position slot { id } } }
    pageInfo { hasNextPage endCursor }
  } }"""


async def unplaced(
    organizer: BookingClient, campaign: str, first: int = 100, **more: Any
) -> list[Json]:
    """All of them, page by page."""
    nodes: list[Json] = []
    after, follow = None, True
    while follow:
        page = await organizer.execute(
            UNPLACED, campaign=campaign, first=first, after=after, **more
        )
        assert len(page["nodes"]) == len(page["edges"]) <= first
        nodes += page["nodes"]
        after, follow = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    return nodes


async def who(organizer: BookingClient, campaign: str, **more: Any) -> set[str]:
    """The ids of those who have no place."""
    return {node["user"]["id"] for node in await unplaced(organizer, campaign, **more)}


def expected(at: CampaignFixture) -> dict[str, set[str]]:
    """Who has no place, and in which slots they wait, from the documents."""
    (campaign,) = at.documents("campaigns", _id=object_id(at.campaign_id))
    (eligible,) = campaign["terms"]["eligibleGroups"]
    slots = at.slot_documents()
    placed = {b["user"] for s in slots if s["status"] == "published" for b in s["bookings"]}
    return {
        f"user_{user['_id']}": {
            f"slot_{slot['_id']}"
            for slot in slots
            if user["_id"] in [turn["user"] for turn in slot["waitlist"]]
        }
        for user in at.documents("users", groups={"$in": eligible})
        if user["_id"] not in placed
    }


@pytest.mark.parametrize("seed", [1, 2])
async def test_those_who_may_take_part_and_have_no_place_are_listed_with_where_they_wait(
    two_apps: Pair, http: httpx.AsyncClient, seed: int
) -> None:
    at = await create_campaign_fixture(
        http, two_apps, secrets.token_hex(4), member_count=16, slot_count=4
    )
    await run_random_actions(at, 40, seed)
    await at.organizer.cancel_slot(at.slot_ids[2])  # 3 places, which nobody has any more
    found = await unplaced(at.organizer, at.campaign_id, first=3)
    told = {n["user"]["id"]: {turn["slot"]["id"] for turn in n["waiting"]} for n in found}
    assert told == expected(at)
    assert len(found) == len(told)
    emails = [node["user"]["email"] for node in found]
    assert emails == sorted(emails)
    for node in found:
        for turn in node["waiting"]:
            assert turn["position"] >= 1
            assert turn["since"]


async def test_who_has_a_hold_is_placed_until_it_runs_out(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    at = await create_campaign_fixture(
        http, two_apps, secrets.token_hex(4), member_count=2, slot_count=1
    )
    ada, ben = [await person.fetch_user_id() for person in at.members]
    await at.members[0].hold(at.slot_ids[0])
    assert await who(at.organizer, at.campaign_id) == {ben}
    at.expire_every_second_hold()
    assert await who(at.organizer, at.campaign_id) == {ada, ben}


async def test_a_group_narrows_the_list(two_apps: Pair, http: httpx.AsyncClient) -> None:
    name = secrets.token_hex(4)
    at = await create_campaign_fixture(http, two_apps, name, member_count=6, slot_count=1)
    people = [await person.fetch_user_id() for person in at.members]
    assert await who(at.organizer, at.campaign_id, group=f"{name} choir") == {people[0], people[3]}
    assert await who(at.organizer, at.campaign_id, group=f"{name} b") == set(people[1::2])
    assert await who(at.organizer, at.campaign_id, group="elsewhere") == set()


async def test_a_person_needs_one_group_of_every_set(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    members, organizer = await create_booking_clients(http, 3, *two_apps)
    class_, choir = secrets.token_hex(4), secrets.token_hex(4)
    await set_groups(organizer, members[0], class_)
    await set_groups(organizer, members[1], class_, choir)
    await set_groups(organizer, members[2], choir)
    campaign = await create_campaign(organizer, eligibleGroups=[[class_, "5z"], [choir]])
    assert await who(organizer, campaign) == {await members[1].fetch_user_id()}


async def test_of_a_campaign_for_everybody_those_who_tried_are_listed(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (
        (waits, left, gave_back, called_off, placed, again, _),
        organizer,
    ) = await create_booking_clients(http, 7, *two_apps)
    await set_groups(organizer, waits, "5a")
    campaign = await create_campaign(organizer)
    full, other, off = [await organizer.add_slot(campaignId=campaign) for _ in range(3)]
    await placed.book_slot(full)
    await waits.join(full)
    await left.join(full)
    await left.leave(full)
    for person in (gave_back, again):
        booked = await person.book_slot(other)
        await person.cancel_booking(booked["booking"]["id"])
    await again.book_slot(other)
    await called_off.book_slot(off)
    await organizer.cancel_slot(off)
    tried = {await person.fetch_user_id() for person in (waits, left, gave_back, called_off)}
    assert await who(organizer, campaign, first=2) == tried
    assert await who(organizer, campaign, group="5a") == {await waits.fetch_user_id()}


async def test_pages_stay_small_and_end_where_nearly_everybody_has_a_place(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    at = await create_campaign_fixture(
        http, two_apps, secrets.token_hex(4), member_count=5, slot_count=6
    )
    for person in at.members[:3]:
        await at.organizer.book_slot(at.slot_ids[5], userId=await person.fetch_user_id())
    await at.organizer.book_slot(at.slot_ids[2], userId=await at.members[3].fetch_user_id())
    last = await at.members[4].fetch_user_id()
    page = await at.organizer.execute(UNPLACED, campaign=at.campaign_id, first=1)
    assert [node["user"]["id"] for node in page["nodes"]] == [last]
    assert page["pageInfo"]["hasNextPage"] is False
    after = page["edges"][0]["cursor"]
    rest = await at.organizer.execute(UNPLACED, campaign=at.campaign_id, first=1, after=after)
    assert (rest["nodes"], rest["pageInfo"]["hasNextPage"]) == ([], False)


async def test_the_list_is_for_organisers(two_apps: Pair, http: httpx.AsyncClient) -> None:
    (ada,), organizer = await create_booking_clients(http, 1, *two_apps)
    campaign = await create_campaign(organizer, opensAt=hours_from_now(1))
    assert await ada.error_code(UNPLACED, campaign=campaign) == "FORBIDDEN"
    nobody = BookingClient(http, two_apps[0].url)
    assert await nobody.error_code(UNPLACED, campaign=campaign) == "UNAUTHENTICATED"
    assert await unplaced(organizer, campaign) == []
    assert await organizer.execute(UNPLACED, campaign="campaign_" + "0" * 24) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"campaign": "nonsense"},
        {"group": "a,b"},
        {"group": "x" * 51},
        {"after": "nonsense"},
        {"after": "WyJhIl0="},
        {"first": 0},
        {"first": 101},
    ],
)
async def test_what_cannot_be_is_bad_user_input(
    two_apps: Pair, http: httpx.AsyncClient, wrong: Json
) -> None:
    _, organizer = await create_booking_clients(http, 0, *two_apps)
    asked = {"campaign": await create_campaign(organizer), **wrong}
    assert await organizer.error_code(UNPLACED, **asked) == "BAD_USER_INPUT"
