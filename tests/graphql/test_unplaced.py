"""Who did not get a place, and where they wait: as anybody finds who looks through everything."""

import secrets
from typing import Any

import httpx
import pytest

from tests.support.client import Json, in_hours
from tests.support.desk import Person, staffed
from tests.support.processes import AppProcess
from tests.support.view import School, happen, make_campaign, oid, put_in, school

Pair = tuple[AppProcess, AppProcess]
UNPLACED = """query($campaign: ID!, $group: String, $first: Int! = 100, $after: String) {
  unplaced(campaignId: $campaign, group: $group, first: $first, after: $after) {
    edges { cursor }
    nodes { user { id email groups } waiting { id since position slot { id } } }
    pageInfo { hasNextPage endCursor }
  } }"""


async def unplaced(organiser: Person, campaign: str, first: int = 100, **more: Any) -> list[Json]:
    """All of them, page by page."""
    nodes: list[Json] = []
    after, follow = None, True
    while follow:
        page = await organiser.ask(UNPLACED, campaign=campaign, first=first, after=after, **more)
        assert len(page["nodes"]) == len(page["edges"]) <= first
        nodes += page["nodes"]
        after, follow = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    return nodes


async def who(organiser: Person, campaign: str, **more: Any) -> set[str]:
    """The ids of those who have no place."""
    return {node["user"]["id"] for node in await unplaced(organiser, campaign, **more)}


def expected(at: School) -> dict[str, set[str]]:
    """Who has no place, and in which slots they wait, from the documents."""
    (campaign,) = at.documents("campaigns", _id=oid(at.campaign))
    (eligible,) = campaign["terms"]["eligible"]
    slots = at.own_slots()
    placed = {b["user"] for s in slots if s["status"] == "published" for b in s["bookings"]}
    return {
        f"user_{user['_id']}": {
            f"slot_{slot['_id']}"
            for slot in slots
            if user["_id"] in [turn["user"] for turn in slot["waiting"]]
        }
        for user in at.documents("users", groups={"$in": eligible})
        if user["_id"] not in placed
    }


@pytest.mark.parametrize("seed", [1, 2])
async def test_those_who_may_take_part_and_have_no_place_are_listed_with_where_they_wait(
    two_apps: Pair, http: httpx.AsyncClient, seed: int
) -> None:
    at = await school(http, two_apps, secrets.token_hex(4), people=16, slots=4)
    await happen(at, 40, seed)
    await at.organiser.call_off(at.slots[2])  # 3 places, which nobody has any more
    found = await unplaced(at.organiser, at.campaign, first=3)
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
    at = await school(http, two_apps, secrets.token_hex(4), people=2, slots=1)
    ada, ben = [await person.id() for person in at.people]
    await at.people[0].hold(at.slots[0])
    assert await who(at.organiser, at.campaign) == {ben}
    at.let_some_holds_run_out()
    assert await who(at.organiser, at.campaign) == {ada, ben}


async def test_a_group_narrows_the_list(two_apps: Pair, http: httpx.AsyncClient) -> None:
    name = secrets.token_hex(4)
    at = await school(http, two_apps, name, people=6, slots=1)
    people = [await person.id() for person in at.people]
    assert await who(at.organiser, at.campaign, group=f"{name} choir") == {people[0], people[3]}
    assert await who(at.organiser, at.campaign, group=f"{name} b") == set(people[1::2])
    assert await who(at.organiser, at.campaign, group="elsewhere") == set()


async def test_a_person_needs_one_group_of_every_set(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    members, organiser = await staffed(http, 3, *two_apps)
    class_, choir = secrets.token_hex(4), secrets.token_hex(4)
    await put_in(organiser, members[0], class_)
    await put_in(organiser, members[1], class_, choir)
    await put_in(organiser, members[2], choir)
    campaign = await make_campaign(organiser, eligibleGroups=[[class_, "5z"], [choir]])
    assert await who(organiser, campaign) == {await members[1].id()}


async def test_of_a_campaign_for_everybody_those_who_tried_are_listed(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (waits, left, gave_back, called_off, placed, again, _), organiser = await staffed(
        http, 7, *two_apps
    )
    await put_in(organiser, waits, "5a")
    campaign = await make_campaign(organiser)
    full, other, off = [await organiser.slot(campaignId=campaign) for _ in range(3)]
    await placed.wish(full)
    await waits.join(full)
    await left.join(full)
    await left.leave(full)
    for person in (gave_back, again):
        booked = await person.wish(other)
        await person.give_back(booked["booking"]["id"])
    await again.wish(other)
    await called_off.wish(off)
    await organiser.call_off(off)
    tried = {await person.id() for person in (waits, left, gave_back, called_off)}
    assert await who(organiser, campaign, first=2) == tried
    assert await who(organiser, campaign, group="5a") == {await waits.id()}


async def test_pages_stay_small_and_end_where_nearly_everybody_has_a_place(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    at = await school(http, two_apps, secrets.token_hex(4), people=5, slots=6)
    for person in at.people[:3]:
        await at.organiser.wish(at.slots[5], userId=await person.id())
    await at.organiser.wish(at.slots[2], userId=await at.people[3].id())
    last = await at.people[4].id()
    page = await at.organiser.ask(UNPLACED, campaign=at.campaign, first=1)
    assert [node["user"]["id"] for node in page["nodes"]] == [last]
    assert page["pageInfo"]["hasNextPage"] is False
    after = page["edges"][0]["cursor"]
    rest = await at.organiser.ask(UNPLACED, campaign=at.campaign, first=1, after=after)
    assert (rest["nodes"], rest["pageInfo"]["hasNextPage"]) == ([], False)


async def test_the_list_is_for_organisers(two_apps: Pair, http: httpx.AsyncClient) -> None:
    (ada,), organiser = await staffed(http, 1, *two_apps)
    campaign = await make_campaign(organiser, opensAt=in_hours(1))
    assert await ada.error_code(UNPLACED, campaign=campaign) == "FORBIDDEN"
    nobody = Person(http, two_apps[0].url)
    assert await nobody.error_code(UNPLACED, campaign=campaign) == "UNAUTHENTICATED"
    assert await unplaced(organiser, campaign) == []
    assert await organiser.ask(UNPLACED, campaign="campaign_" + "0" * 24) is None


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
    _, organiser = await staffed(http, 0, *two_apps)
    asked = {"campaign": await make_campaign(organiser), **wrong}
    assert await organiser.error_code(UNPLACED, **asked) == "BAD_USER_INPUT"
