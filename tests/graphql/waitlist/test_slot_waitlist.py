"""The waiting list of a slot as organizers see and change it."""

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json

Clients = tuple[list[BookingClient], BookingClient]
SLOT_WAITLIST = """query($slot: ID!, $first: Int! = 20, $after: String) {
  slotWaitlist(slotId: $slot, first: $first, after: $after) {
    totalCount
    nodes { id position since user { id email } waitlistedBy { id } slot { id } }
    pageInfo { hasNextPage endCursor }
  }
}"""
AUDIT_LOG = """query($filter: AuditLogFilter!) { auditLog(filter: $filter, first: 50) {
  nodes { action by { id } user { id } }
} }"""


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Clients:
    """Return four members at alternating processes, and an organizer."""
    return create_booking_clients(http, 4, *two_apps)


async def full_slot(organizer: BookingClient, booker: BookingClient, **fields: object) -> str:
    """Return a new slot whose only place is booked."""
    slot_id = await organizer.add_slot(**fields)
    await booker.book_slot(slot_id)
    return slot_id


async def user_ids(*users: BookingClient) -> list[str]:
    """Return the ids of users."""
    return [await user.fetch_user_id() for user in users]


async def log_entries(organizer: BookingClient, **filters: str) -> list[tuple[str, str, str]]:
    """Return the action, the actor and the user of the entries of waiting lists, oldest first."""
    nodes: list[Json] = (await organizer.execute(AUDIT_LOG, filter=filters))["nodes"]
    return [
        (node["action"], node["by"]["id"], node["user"]["id"])
        for node in reversed(nodes)
        if node["action"].startswith("WAITLIST")
    ]


async def test_organizers_read_the_waiting_list_in_order_page_by_page(clients: Clients) -> None:
    (ada, ben, cleo, dan), organizer = clients
    slot_id = await full_slot(organizer, ada)
    for user in (cleo, ben, dan):
        await user.join(slot_id)
    expected = await user_ids(cleo, ben, dan)
    page = await organizer.execute(SLOT_WAITLIST, slot=slot_id, first=2)
    assert page["totalCount"] == 3
    assert [node["position"] for node in page["nodes"]] == [1, 2]
    assert [node["user"]["id"] for node in page["nodes"]] == expected[:2]
    assert page["nodes"][0]["slot"]["id"] == slot_id
    # The entry at the cursor may leave between two pages.
    await ben.leave(slot_id)
    rest = await organizer.execute(SLOT_WAITLIST, slot=slot_id, after=page["pageInfo"]["endCursor"])
    assert [(node["position"], node["user"]["id"]) for node in rest["nodes"]] == [(2, expected[2])]
    assert rest["pageInfo"]["hasNextPage"] is False


async def test_only_organizers_read_the_waiting_list_and_its_entries(clients: Clients) -> None:
    (ada, ben, *_), organizer = clients
    slot_id = await full_slot(organizer, ada)
    await ben.join(slot_id)
    (entry,) = (await organizer.execute(SLOT_WAITLIST, slot=slot_id))["nodes"]
    node = "query($id: ID!) { node(id: $id) { ... on WaitlistEntry { id user { id } } } }"
    for client, sees_entry in ((organizer, True), (ben, True), (ada, False)):
        found = await client.execute(node, id=entry["id"])
        assert (found is not None) == sees_entry
    assert await ada.error_code(SLOT_WAITLIST, slot=slot_id) == "FORBIDDEN"
    assert await organizer.execute(SLOT_WAITLIST, slot="slot_" + "0" * 24) is None
    assert await organizer.execute(SLOT_WAITLIST, slot="nonsense") is None


async def test_an_organizer_puts_a_user_on_the_list_and_the_log_names_the_organizer(
    clients: Clients,
) -> None:
    (ada, ben, *_), organizer = clients
    slot_id = await full_slot(organizer, ada)
    ben_id, organizer_id = await user_ids(ben, organizer)
    joined = await organizer.join(slot_id, ben_id)
    assert (joined["__typename"], joined["position"]) == ("WaitlistJoined", 1)
    (entry,) = (await organizer.execute(SLOT_WAITLIST, slot=slot_id))["nodes"]
    assert entry["user"]["id"] == ben_id
    assert entry["waitlistedBy"]["id"] == organizer_id
    assert (await ben.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1
    again = await organizer.join(slot_id, ben_id)
    assert (again["code"], again["message"]) == (
        "ALREADY_WAITING",
        "This user is already on the waiting list of this slot.",
    )
    left = await organizer.leave(slot_id, ben_id)
    assert (left["__typename"], left["slot"]["waitlistLength"]) == ("WaitlistLeft", 0)
    missing = await organizer.leave(slot_id, ben_id)
    assert missing["message"] == "This user is not on the waiting list of this slot."
    expected = [("WAITLIST_JOINED", organizer_id, ben_id), ("WAITLIST_LEFT", organizer_id, ben_id)]
    assert await log_entries(organizer, slotId=slot_id) == expected
    assert await log_entries(organizer, slotId=slot_id, by=organizer_id) == expected
    assert await log_entries(organizer, slotId=slot_id, by=ben_id) == []


async def test_the_log_names_the_organizer_after_the_user_got_a_place(clients: Clients) -> None:
    (ada, ben, *_), organizer = clients
    slot_id = await full_slot(organizer, ada)
    ben_id, organizer_id = await user_ids(ben, organizer)
    await organizer.join(slot_id, ben_id)
    own_booking = (await ada.fetch_slot(slot_id))["myBooking"]
    await ada.cancel_booking(own_booking["id"])
    expected = [("WAITLIST_JOINED", organizer_id, ben_id)]
    assert await log_entries(organizer, slotId=slot_id, by=organizer_id) == expected
    booking = (await ben.fetch_slot(slot_id))["myBooking"]
    assert booking["status"] == "CONFIRMED"
    await ben.cancel_booking(booking["id"])
    assert await log_entries(organizer, slotId=slot_id, by=organizer_id) == expected


async def test_members_join_and_leave_only_for_themselves(clients: Clients) -> None:
    (ada, ben, *_), organizer = clients
    slot_id = await full_slot(organizer, ada)
    ben_id, ada_id = await user_ids(ben, ada)
    assert (await ben.join(slot_id, ben_id))["__typename"] == "WaitlistJoined"
    for mutation in ("joinWaitlist", "leaveWaitlist"):
        document = f"""mutation($s: ID!, $u: ID) {{
          {mutation}(slotId: $s, userId: $u) {{ __typename }}
        }}"""
        assert await ada.error_code(document, s=slot_id, u=ben_id) == "FORBIDDEN"
        assert await ada.error_code(document, s=slot_id, u="nonsense") == "FORBIDDEN"
    assert (await organizer.join(slot_id, ada_id))["message"] == (
        "This user already has a booking in this slot."
    )


async def test_users_who_cannot_be_booked_for_cannot_be_put_on_the_list(clients: Clients) -> None:
    (ada, ben, *_), organizer = clients
    slot_id = await full_slot(organizer, ada)
    ben_id = await ben.fetch_user_id()
    ban = "mutation($id: ID!) { banUser(userId: $id) { __typename } }"
    await organizer.execute(ban, id=ben_id)
    expected = {
        ben_id: "USER_BANNED",
        "user_" + "0" * 24: "USER_NOT_FOUND",
        "nonsense": "USER_NOT_FOUND",
    }
    for user_id, code in expected.items():
        assert (await organizer.join(slot_id, user_id))["code"] == code
    assert (await organizer.leave(slot_id, "nonsense"))["code"] == "USER_NOT_FOUND"
    assert (await organizer.leave(slot_id, ben_id))["code"] == "NOT_WAITING"
