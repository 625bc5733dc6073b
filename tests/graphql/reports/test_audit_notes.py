"""The audit log records organizer actions: the actor, time, action and changed fields."""

import secrets
from typing import Any

from slotlock.auth.admin import account_admin
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Role, UserId
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json, times_in
from tests.support.clients.fixtures import Two

MEMBER_COUNT = 1

AUDIT_LOG = """query($filter: AuditLogFilter!, $first: Int! = 100, $after: String) {
  auditLog(filter: $filter, first: $first, after: $after) {
    nodes {
      at action bookingId by { id } user { id } slot { id } campaign { id }
      edits { field before after user { email } }
    }
    pageInfo { hasNextPage endCursor }
  } }"""
CREATE_SERIES = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  ... on SlotSeriesCreated { slots { id } } } }"""
CREATE_ROOM = """mutation($name: String!) { createResource(input: {name: $name, kind: ROOM}) {
  ... on Resource { id } } }"""
DELETE_SLOT = "mutation($slot: ID!) { deleteSlot(slotId: $slot) { __typename } }"
PUBLISH_SLOT = "mutation($slot: ID!) { publishSlot(slotId: $slot) { __typename } }"
UPDATE_CAMPAIGN = """mutation($input: UpdateCampaignInput!) { updateCampaign(input: $input) {
  __typename } }"""
UNPUBLISH_CAMPAIGN = "mutation($id: ID!) { unpublishCampaign(campaignId: $id) { __typename } }"
PUBLISH_CAMPAIGN = "mutation($id: ID!) { publishCampaign(campaignId: $id) { __typename } }"
BAN = """mutation($user: ID!, $reason: String) {
  banUser(userId: $user, reason: $reason) { __typename } }"""
UNBAN = "mutation($user: ID!) { unbanUser(userId: $user) { __typename } }"


async def fetch_log(organizer: BookingClient, first: int = 100, **filter_: Any) -> list[Json]:
    """Return all matching entries, oldest first, fetched in pages of `first` entries."""
    return (await organizer.all_nodes(AUDIT_LOG, filter=filter_, first=first))[::-1]


def edited_fields(entry: Json) -> dict[str, tuple[str | None, str | None]]:
    """Return the changed fields of an entry with their values before and after."""
    return {edit["field"]: (edit["before"], edit["after"]) for edit in entry["edits"]}


async def test_slot_changes_are_logged(clients: Two) -> None:
    _, organizer = clients
    slot = await organizer.add_slot(title="Yoga", capacity=2, draft=True)
    await organizer.update_slot(slot, capacity=3, location="Gym")
    await organizer.update_slot(slot, capacity=3)  # changes nothing
    await organizer.execute(PUBLISH_SLOT, slot=slot)
    await organizer.execute(PUBLISH_SLOT, slot=slot)
    await organizer.cancel_slot(slot)
    entries = await fetch_log(organizer, slotId=slot)
    assert [entry["action"] for entry in entries] == [
        "SLOT_CREATED",
        "SLOT_EDITED",
        "SLOT_PUBLISHED",
        "SLOT_CANCELLED",
    ]
    organizer_id = await organizer.fetch_user_id()
    assert {(entry["by"]["id"], entry["slot"]["id"]) for entry in entries} == {(organizer_id, slot)}
    assert edited_fields(entries[0])["title"] == (None, "Yoga")
    assert edited_fields(entries[1]) == {"capacity": ("2", "3"), "location": (None, "Gym")}
    assert edited_fields(entries[2]) == {"status": ("DRAFT", "PUBLISHED")}
    assert edited_fields(entries[3]) == {"status": ("PUBLISHED", "CANCELLED")}


async def test_one_edit_has_all_rooms_before_and_after_however_many_there_are(clients: Two) -> None:
    _, organizer = clients
    art, gym = f"Art room {secrets.token_hex(4)}", f"Gym {secrets.token_hex(4)}"
    ids = [(await organizer.execute(CREATE_ROOM, name=name))["id"] for name in (art, gym)]
    slot = await organizer.add_slot(resourceIds=ids[:1])
    for rooms in (ids, ids[1:], [], ids):
        assert (await organizer.update_slot(slot, resourceIds=rooms))["__typename"] == "Slot"
    await organizer.execute(DELETE_SLOT, slot=slot)
    created, *entries, deleted = await fetch_log(organizer, slotId=slot)
    assert edited_fields(created)["resources"] == (None, art)
    assert [edited_fields(entry) for entry in entries] == [
        {"resources": (art, f"{art}, {gym}")},
        {"resources": (f"{art}, {gym}", gym)},
        {"resources": (gym, None)},
        {"resources": (None, f"{art}, {gym}")},
    ]
    assert edited_fields(deleted)["resources"] == (f"{art}, {gym}", None)
    named = {edit["field"] for entry in (created, deleted) for edit in entry["edits"]}
    assert "resource" not in named


async def test_a_refused_change_is_not_logged(clients: Two) -> None:
    member, organizer = clients
    slot = await organizer.add_slot(capacity=2)
    await member.book_slot(slot)
    assert (await organizer.update_slot(slot, capacity=0))["__typename"] == "InvalidInput"
    assert [entry["action"] for entry in await fetch_log(organizer, slotId=slot)] == [
        "SLOT_CREATED",
        "BOOKED",
    ]


async def test_each_slot_of_a_series_is_in_the_log_of_its_campaign(clients: Two) -> None:
    _, organizer = clients
    campaign = await create_campaign(organizer)
    times = {**times_in(24), "campaignId": campaign}
    series = {"slot": {"title": "Yoga", **times}, "rrule": "FREQ=DAILY;COUNT=3"}
    slots = [slot["id"] for slot in (await organizer.execute(CREATE_SERIES, input=series))["slots"]]
    entries = await fetch_log(organizer, campaignId=campaign, first=2)
    assert [entry["action"] for entry in entries] == ["CAMPAIGN_CREATED", *["SLOT_CREATED"] * 3]
    assert {entry["slot"]["id"] for entry in entries[1:]} == set(slots)


async def test_campaign_changes_are_logged(clients: Two) -> None:
    _, organizer = clients
    campaign = await create_campaign(organizer, published=False, eligibleGroups=[["5b", "5a"]])
    changes = {"maxBookings": 2, "eligibleGroups": [["5a"], ["choir"]]}
    for _ in range(2):  # the second time changes nothing
        await organizer.execute(UPDATE_CAMPAIGN, input={"campaignId": campaign, **changes})
    await organizer.execute(PUBLISH_CAMPAIGN, id=campaign)
    await organizer.execute(UNPUBLISH_CAMPAIGN, id=campaign)
    created, edited, published, unpublished = await fetch_log(organizer, campaignId=campaign)
    assert created["action"] == "CAMPAIGN_CREATED"
    assert edited_fields(created)["eligibleGroups"] == (None, "5a, 5b")
    assert edited_fields(edited) == {
        "maxBookings": (None, "2"),
        "eligibleGroups": ("5a, 5b", "5a; choir"),
    }
    assert (published["action"], edited_fields(published)) == (
        "CAMPAIGN_PUBLISHED",
        {"published": ("false", "true")},
    )
    assert unpublished["action"] == "CAMPAIGN_UNPUBLISHED"
    assert unpublished["campaign"]["id"] == campaign
    assert unpublished["by"]["id"] == await organizer.fetch_user_id()


async def test_a_description_is_logged_only_if_it_changed_with_the_one_before(
    clients: Two,
) -> None:
    _, organizer = clients
    campaign = await create_campaign(organizer, description="Hello **world**")
    slot = await organizer.add_slot(description="Bring shoes")
    for fields in (
        {"description": "Hello **world**", "maxBookings": 2},
        {"description": "Bye"},
        {"description": "Bye"},
        {"description": None},
    ):
        await organizer.execute(UPDATE_CAMPAIGN, input={"campaignId": campaign, **fields})
    await organizer.update_slot(slot, description="Bring shoes", capacity=4)
    await organizer.update_slot(slot, description="Bring shoes")
    await organizer.update_slot(slot, description=None)
    created, *edited = await fetch_log(organizer, campaignId=campaign)
    assert edited_fields(created)["description"] == (None, "Hello **world**")
    assert [edited_fields(each) for each in edited] == [
        {"maxBookings": (None, "2")},
        {"description": ("Hello **world**", "Bye")},
        {"description": ("Bye", None)},
    ]
    created, *edited = await fetch_log(organizer, slotId=slot)
    assert edited_fields(created)["description"] == (None, "Bring shoes")
    assert [edited_fields(each) for each in edited] == [
        {"capacity": ("1", "4")},
        {"description": ("Bring shoes", None)},
    ]


async def test_user_changes_are_logged(auth: Auth, clients: Two) -> None:
    member, organizer = clients
    member_id = await member.fetch_user_id()
    await set_groups(organizer, member, "5a", "choir")
    await set_groups(organizer, member, "5a", "choir")
    await organizer.execute(BAN, user=member_id, reason="Loud")
    await organizer.execute(UNBAN, user=member_id)
    await account_admin.set_role(auth, None, UserId(member_id[-24:]), Role.ORGANIZER)
    grouped, banned, unbanned, promoted = await fetch_log(organizer, userId=member_id)
    assert (grouped["action"], edited_fields(grouped)) == (
        "GROUPS_SET",
        {"groups": (None, "5a, choir")},
    )
    assert (banned["action"], edited_fields(banned)) == (
        "BANNED",
        {"banned": ("false", "true"), "banReason": (None, "Loud")},
    )
    assert (unbanned["action"], edited_fields(unbanned)["banned"]) == (
        "UNBANNED",
        ("true", "false"),
    )
    assert (promoted["action"], promoted["by"]) == ("ROLE_SET", None)
    assert edited_fields(promoted) == {"role": ("MEMBER", "ORGANIZER")}
    assert {entry["user"]["id"] for entry in (grouped, banned, unbanned, promoted)} == {member_id}


async def test_imports_and_invitations_name_their_users(clients: Two, two_apps: Pair) -> None:
    _, organizer = clients
    school = f"{secrets.token_hex(6)}.test"
    headers = {"Authorization": f"Bearer {organizer.token}", "Content-Type": "text/csv"}
    for groups in ("5a", "5b"):
        body = f"email,name,groups\nada@{school},Ada,{groups}\nben@{school},Ben,{school}\n"
        response = await organizer.http.post(
            f"{organizer.url}/users/import", content=body, headers=headers
        )
        assert response.status_code == 200, response.text
    invited_response = await organizer.http.post(
        f"{organizer.url}/users/invitations?group={school}", headers=headers
    )
    assert invited_response.status_code == 200
    organizer_id = await organizer.fetch_user_id()
    created, changed, invitation = await fetch_log(organizer, by=organizer_id)
    assert [entry["action"] for entry in (created, changed, invitation)] == [
        "USERS_IMPORTED",
        "USERS_IMPORTED",
        "USERS_INVITED",
    ]
    changes = {
        (e["user"]["email"], e["field"]): (e["before"], e["after"]) for e in changed["edits"]
    }
    assert changes == {(f"ada@{school}", "groups"): ("5a", "5b")}
    assert len(created["edits"]) == 6
    assert edited_fields(invitation) == {"users": (None, "1"), "group": (None, school)}


async def test_organizer_actions_can_be_listed_by_action_alone(clients: Two) -> None:
    _, organizer = clients
    campaign = await create_campaign(organizer)
    page = await organizer.execute(
        AUDIT_LOG, filter={"actions": ["CAMPAIGN_CREATED", "BANNED"]}, first=1
    )
    assert [node["campaign"]["id"] for node in page["nodes"]] == [campaign]
    mixed = {"actions": ["CAMPAIGN_CREATED", "BOOKED"]}
    assert await organizer.error_code(AUDIT_LOG, filter=mixed) == "BAD_USER_INPUT"
