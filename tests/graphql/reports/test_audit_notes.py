"""What organisers do leaves notes: who, when, what, and the fields before and after."""

import secrets
from typing import Any

import httpx
import pytest

from slotlock.auth import accounts
from slotlock.domain.users.user import Role
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json, hours_from_now
from tests.support.stores.users import auth_for_database

Pair = tuple[AppProcess, AppProcess]
LOG = """query($filter: AuditLogFilter!, $first: Int! = 100, $after: String) {
  auditLog(filter: $filter, first: $first, after: $after) {
    nodes {
      at action bookingId by { id } user { id } slot { id } campaign { id }
      edits { field before after user { email } }
    }
    pageInfo { hasNextPage endCursor }
  } }"""
SERIES = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  ... on SlotSeriesCreated { slots { id } } } }"""
PUBLISH = "mutation($slot: ID!) { publishSlot(slotId: $slot) { __typename } }"
UPDATE_CAMPAIGN = """mutation($input: UpdateCampaignInput!) { updateCampaign(input: $input) {
  __typename } }"""
HIDE = "mutation($id: ID!) { unpublishCampaign(campaignId: $id) { __typename } }"
SHOW = "mutation($id: ID!) { publishCampaign(campaignId: $id) { __typename } }"
BAN = """mutation($user: ID!, $reason: String) {
  banUser(userId: $user, reason: $reason) { __typename } }"""
UNBAN = "mutation($user: ID!) { unbanUser(userId: $user) { __typename } }"


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> tuple[BookingClient, BookingClient]:
    """A member and an organiser."""
    (member,), organizer = await create_booking_clients(http, 1, *two_apps)
    return member, organizer


async def log(organizer: BookingClient, first: int = 100, **filter_: Any) -> list[Json]:
    """The entries, the oldest first."""
    nodes: list[Json] = []
    after, more = None, True
    while more:
        page = await organizer.execute(LOG, filter=filter_, first=first, after=after)
        nodes += page["nodes"]
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    return nodes[::-1]


def edits(entry: Json) -> dict[str, tuple[str | None, str | None]]:
    """The fields that an entry tells of."""
    return {edit["field"]: (edit["before"], edit["after"]) for edit in entry["edits"]}


async def test_acts_on_slots_are_noted(clients: tuple[BookingClient, BookingClient]) -> None:
    _, organizer = clients
    slot = await organizer.add_slot(title="Yoga", capacity=2, draft=True)
    await organizer.update_slot(slot, capacity=3, location="Gym")
    await organizer.update_slot(slot, capacity=3)  # which changes nothing
    await organizer.execute(PUBLISH, slot=slot)
    await organizer.execute(PUBLISH, slot=slot)
    await organizer.cancel_slot(slot)
    found = await log(organizer, slotId=slot)
    assert [entry["action"] for entry in found] == [
        "SLOT_CREATED",
        "SLOT_EDITED",
        "SLOT_PUBLISHED",
        "SLOT_CANCELLED",
    ]
    boss = await organizer.fetch_user_id()
    assert {(entry["by"]["id"], entry["slot"]["id"]) for entry in found} == {(boss, slot)}
    assert edits(found[0])["title"] == (None, "Yoga")
    assert edits(found[1]) == {"capacity": ("2", "3"), "location": (None, "Gym")}
    assert edits(found[2]) == {"status": ("DRAFT", "PUBLISHED")}
    assert edits(found[3]) == {"status": ("PUBLISHED", "CANCELLED")}


async def test_a_refused_act_leaves_no_note(clients: tuple[BookingClient, BookingClient]) -> None:
    member, organizer = clients
    slot = await organizer.add_slot(capacity=2)
    await member.book_slot(slot)
    assert (await organizer.update_slot(slot, capacity=0))["__typename"] == "InvalidInput"
    assert [entry["action"] for entry in await log(organizer, slotId=slot)] == [
        "SLOT_CREATED",
        "BOOKED",
    ]


async def test_each_slot_of_a_series_is_noted_and_in_the_log_of_its_campaign(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organizer = clients
    campaign = await create_campaign(organizer)
    times = {"startTime": hours_from_now(24), "endTime": hours_from_now(25), "campaignId": campaign}
    asked = {"slot": {"title": "Yoga", **times}, "rrule": "FREQ=DAILY;COUNT=3"}
    slots = [slot["id"] for slot in (await organizer.execute(SERIES, input=asked))["slots"]]
    found = await log(organizer, campaignId=campaign, first=2)
    assert [entry["action"] for entry in found] == ["CAMPAIGN_CREATED", *["SLOT_CREATED"] * 3]
    assert {entry["slot"]["id"] for entry in found[1:]} == set(slots)


async def test_acts_on_campaigns_are_noted(clients: tuple[BookingClient, BookingClient]) -> None:
    _, organizer = clients
    campaign = await create_campaign(organizer, published=False, eligibleGroups=[["5b", "5a"]])
    changes = {"maxBookings": 2, "eligibleGroups": [["5a"], ["choir"]]}
    for _ in range(2):  # the second time changes nothing
        await organizer.execute(UPDATE_CAMPAIGN, input={"campaignId": campaign, **changes})
    await organizer.execute(SHOW, id=campaign)
    await organizer.execute(HIDE, id=campaign)
    created, edited, shown, hidden = await log(organizer, campaignId=campaign)
    assert created["action"] == "CAMPAIGN_CREATED"
    assert edits(created)["eligibleGroups"] == (None, "5a, 5b")
    assert edits(edited) == {
        "maxBookings": (None, "2"),
        "eligibleGroups": ("5a, 5b", "5a; choir"),
    }
    assert (shown["action"], edits(shown)) == (
        "CAMPAIGN_PUBLISHED",
        {"published": ("false", "true")},
    )
    assert hidden["action"] == "CAMPAIGN_UNPUBLISHED"
    assert hidden["campaign"]["id"] == campaign
    assert hidden["by"]["id"] == await organizer.fetch_user_id()


async def test_acts_on_people_are_noted(
    clients: tuple[BookingClient, BookingClient], two_apps: Pair
) -> None:
    member, organizer = clients
    ada = await member.fetch_user_id()
    email = (await member.execute("{ me { email } }"))["email"]
    await set_groups(organizer, member, "5a", "choir")
    await set_groups(organizer, member, "5a", "choir")
    await organizer.execute(BAN, user=ada, reason="Loud")
    await organizer.execute(UNBAN, user=ada)
    async with auth_for_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as auth:
        await accounts.set_role(auth, email, Role.ORGANIZER)
    grouped, banned, unbanned, promoted = await log(organizer, userId=ada)
    assert (grouped["action"], edits(grouped)) == ("GROUPS_SET", {"groups": (None, "5a, choir")})
    assert (banned["action"], edits(banned)) == (
        "BANNED",
        {"banned": ("false", "true"), "banReason": (None, "Loud")},
    )
    assert (unbanned["action"], edits(unbanned)["banned"]) == ("UNBANNED", ("true", "false"))
    assert (promoted["action"], promoted["by"]) == ("ROLE_SET", None)
    assert edits(promoted) == {"role": ("MEMBER", "ORGANIZER")}
    assert {entry["user"]["id"] for entry in (grouped, banned, unbanned, promoted)} == {ada}


async def test_imports_and_invitations_are_noted_for_each_of_their_people(
    clients: tuple[BookingClient, BookingClient], two_apps: Pair
) -> None:
    _, organizer = clients
    school = f"{secrets.token_hex(6)}.test"
    headers = {"Authorization": f"Bearer {organizer.token}", "Content-Type": "text/csv"}
    for groups in ("5a", "5b"):
        rows = f"email,name,groups\nada@{school},Ada,{groups}\nben@{school},Ben,{school}\n"
        sent = await organizer.http.post(
            f"{organizer.url}/users/import", content=rows, headers=headers
        )
        assert sent.status_code == 200, sent.text
    invited = await organizer.http.post(
        f"{organizer.url}/users/invitations?group={school}", headers=headers
    )
    assert invited.status_code == 200
    boss = await organizer.fetch_user_id()
    created, changed, invitation = await log(organizer, by=boss)
    assert [entry["action"] for entry in (created, changed, invitation)] == [
        "USERS_IMPORTED",
        "USERS_IMPORTED",
        "USERS_INVITED",
    ]
    told = {(e["user"]["email"], e["field"]): (e["before"], e["after"]) for e in changed["edits"]}
    assert told == {(f"ada@{school}", "groups"): ("5a", "5b")}
    assert len(created["edits"]) == 6
    assert edits(invitation) == {"users": (None, "1"), "group": (None, school)}


async def test_what_organisers_did_can_be_read_without_naming_anything(
    clients: tuple[BookingClient, BookingClient],
) -> None:
    _, organizer = clients
    campaign = await create_campaign(organizer)
    page = await organizer.execute(LOG, filter={"actions": ["CAMPAIGN_CREATED", "BANNED"]}, first=1)
    assert [node["campaign"]["id"] for node in page["nodes"]] == [campaign]
    mixed = {"actions": ["CAMPAIGN_CREATED", "BOOKED"]}
    assert await organizer.error_code(LOG, filter=mixed) == "BAD_USER_INPUT"
