"""Organizers can list the users of a campaign without a place and their waiting-list entries."""

import secrets
from typing import Any

import httpx
import pytest

from tests.support.apps.deployment import object_id
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json
from tests.support.scenarios.campaign_activity import (
    CampaignFixture,
    create_campaign_fixture,
    run_random_actions,
)

UNPLACED = """query($campaign: ID!, $group: String, $first: Int! = 100, $after: String) {
  unplaced(campaignId: $campaign, group: $group, first: $first, after: $after) {
    edges { cursor }
    nodes { user { id email groups } waiting { id since position slot { id } } }
    pageInfo { hasNextPage endCursor }
  } }"""


async def fetch_unplaced(
    organizer: BookingClient, campaign: str, first: int = 100, **variables: Any
) -> list[Json]:
    """Return all unplaced users, fetched in pages of `first` users."""
    nodes: list[Json] = []
    after, has_next = None, True
    while has_next:
        page = await organizer.execute(
            UNPLACED, campaign=campaign, first=first, after=after, **variables
        )
        assert len(page["nodes"]) == len(page["edges"]) <= first
        nodes += page["nodes"]
        after, has_next = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    return nodes


async def fetch_unplaced_ids(organizer: BookingClient, campaign: str, **variables: Any) -> set[str]:
    """Return the ids of the unplaced users."""
    return {node["user"]["id"] for node in await fetch_unplaced(organizer, campaign, **variables)}


def expected_waiting(fixture: CampaignFixture) -> dict[str, set[str]]:
    """Return the waitlisted slots of each unplaced user, computed from the documents."""
    (campaign,) = fixture.documents("campaigns", _id=object_id(fixture.campaign_id))
    (eligible,) = campaign["terms"]["eligibleGroups"]
    slots = fixture.slot_documents()
    placed = {
        booking["user"]
        for slot in slots
        if slot["status"] == "published"
        for booking in slot["bookings"]
    }
    return {
        f"user_{user['_id']}": {
            f"slot_{slot['_id']}"
            for slot in slots
            if user["_id"] in [entry["user"] for entry in slot["waitlist"]]
        }
        for user in fixture.documents("users", groups={"$in": eligible})
        if user["_id"] not in placed
    }


@pytest.mark.parametrize("seed", [1, 2])
async def test_eligible_users_without_a_place_are_listed_with_their_waiting_lists(
    two_apps: Pair, http: httpx.AsyncClient, seed: int
) -> None:
    fixture = await create_campaign_fixture(
        http, two_apps, secrets.token_hex(4), member_count=16, slot_count=4
    )
    await run_random_actions(fixture, 40, seed)
    await fixture.organizer.cancel_slot(fixture.slot_ids[2])  # 3 users lose their places
    nodes = await fetch_unplaced(fixture.organizer, fixture.campaign_id, first=3)
    waitlisted_slots = {
        node["user"]["id"]: {entry["slot"]["id"] for entry in node["waiting"]} for node in nodes
    }
    assert waitlisted_slots == expected_waiting(fixture)
    assert len(nodes) == len(waitlisted_slots)
    emails = [node["user"]["email"] for node in nodes]
    assert emails == sorted(emails)
    for node in nodes:
        for entry in node["waiting"]:
            assert entry["position"] >= 1
            assert entry["since"]


async def test_a_user_with_a_hold_is_placed_until_the_hold_expires(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    fixture = await create_campaign_fixture(
        http, two_apps, secrets.token_hex(4), member_count=2, slot_count=1
    )
    ada, ben = [await member.fetch_user_id() for member in fixture.members]
    await fixture.members[0].hold(fixture.slot_ids[0])
    assert await fetch_unplaced_ids(fixture.organizer, fixture.campaign_id) == {ben}
    fixture.expire_every_second_hold()
    assert await fetch_unplaced_ids(fixture.organizer, fixture.campaign_id) == {ada, ben}


async def test_a_group_filter_narrows_the_list(two_apps: Pair, http: httpx.AsyncClient) -> None:
    name = secrets.token_hex(4)
    fixture = await create_campaign_fixture(http, two_apps, name, member_count=6, slot_count=1)
    user_ids = [await member.fetch_user_id() for member in fixture.members]
    assert await fetch_unplaced_ids(
        fixture.organizer, fixture.campaign_id, group=f"{name} choir"
    ) == {user_ids[0], user_ids[3]}
    assert await fetch_unplaced_ids(
        fixture.organizer, fixture.campaign_id, group=f"{name} b"
    ) == set(user_ids[1::2])
    assert (
        await fetch_unplaced_ids(fixture.organizer, fixture.campaign_id, group="elsewhere") == set()
    )


async def test_eligible_users_match_every_set(two_apps: Pair, http: httpx.AsyncClient) -> None:
    members, organizer = create_booking_clients(http, 3, *two_apps)
    class_group, choir_group = secrets.token_hex(4), secrets.token_hex(4)
    await set_groups(organizer, members[0], class_group)
    await set_groups(organizer, members[1], class_group, choir_group)
    await set_groups(organizer, members[2], choir_group)
    campaign = await create_campaign(organizer, eligibleGroups=[[class_group, "5z"], [choir_group]])
    assert await fetch_unplaced_ids(organizer, campaign) == {await members[1].fetch_user_id()}


async def test_a_campaign_for_everyone_lists_the_users_who_tried_to_book(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    ((waiting, left, returned, cancelled, placed, rebooked, _), organizer) = create_booking_clients(
        http, 7, *two_apps
    )
    await set_groups(organizer, waiting, "5a")
    campaign = await create_campaign(organizer)
    full, other, cancelled_slot = [await organizer.add_slot(campaignId=campaign) for _ in range(3)]
    await placed.book_slot(full)
    await waiting.join(full)
    await left.join(full)
    await left.leave(full)
    for client in (returned, rebooked):
        booked = await client.book_slot(other)
        await client.cancel_booking(booked["booking"]["id"])
    await rebooked.book_slot(other)
    await cancelled.book_slot(cancelled_slot)
    await organizer.cancel_slot(cancelled_slot)
    tried_to_book = {
        await client.fetch_user_id() for client in (waiting, left, returned, cancelled)
    }
    assert await fetch_unplaced_ids(organizer, campaign, first=2) == tried_to_book
    assert await fetch_unplaced_ids(organizer, campaign, group="5a") == {
        await waiting.fetch_user_id()
    }


async def test_pagination_ends_when_nearly_every_user_has_a_place(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    fixture = await create_campaign_fixture(
        http, two_apps, secrets.token_hex(4), member_count=5, slot_count=6
    )
    for member in fixture.members[:3]:
        await fixture.organizer.book_slot(fixture.slot_ids[5], userId=await member.fetch_user_id())
    await fixture.organizer.book_slot(
        fixture.slot_ids[2], userId=await fixture.members[3].fetch_user_id()
    )
    last = await fixture.members[4].fetch_user_id()
    page = await fixture.organizer.execute(UNPLACED, campaign=fixture.campaign_id, first=1)
    assert [node["user"]["id"] for node in page["nodes"]] == [last]
    assert page["pageInfo"]["hasNextPage"] is False
    after = page["edges"][0]["cursor"]
    rest = await fixture.organizer.execute(
        UNPLACED, campaign=fixture.campaign_id, first=1, after=after
    )
    assert (rest["nodes"], rest["pageInfo"]["hasNextPage"]) == ([], False)


async def test_an_unknown_campaign_has_no_list(organizer: BookingClient) -> None:
    assert await organizer.execute(UNPLACED, campaign="campaign_" + "0" * 24) is None


@pytest.mark.parametrize(
    "invalid", [{"campaign": "nonsense"}, {"group": "a,b"}, {"group": "x" * 51}]
)
async def test_invalid_unplaced_arguments_are_bad_user_input(
    organizer: BookingClient, invalid: Json
) -> None:
    variables = {"campaign": await create_campaign(organizer), **invalid}
    assert await organizer.error_code(UNPLACED, **variables) == "BAD_USER_INPUT"


RECIPIENTS = """query($campaignId: ID, $slotId: ID, $includeWaiting: Boolean! = false) {
  announcementRecipientCount(
    campaignId: $campaignId, slotId: $slotId, includeWaiting: $includeWaiting, unplaced: true
  )
}"""


async def test_an_announcement_can_go_to_those_without_a_place(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    campaign = await create_campaign(organizer)
    slot = await organizer.add_slot(campaignId=campaign)
    await ada.book_slot(slot)
    await ben.join(slot)
    assert await organizer.execute(RECIPIENTS, campaignId=campaign) == 1
    for wrong in ({"slotId": slot}, {"campaignId": campaign, "includeWaiting": True}):
        assert await organizer.error_code(RECIPIENTS, **wrong) == "BAD_USER_INPUT"
