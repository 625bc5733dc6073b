"""Users list their waiting list entries, and see their positions change live."""

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, WebSocketTestClient, open_websocket, times_in
from tests.support.clients.fixtures import Four

MEMBER_COUNT = 3


MY_ENTRIES = """query($first: Int! = 20, $after: String) {
  myWaitlistEntries(first: $first, after: $after) {
    totalCount nodes { id since position slot { id title myWaitlistEntry { id } } }
    pageInfo { hasNextPage endCursor }
  }
}"""
WATCH_POSITIONS = "subscription { myWaitlistEntries { slotId position slot { waitlistLength } } }"


async def add_full_slot(organizer: BookingClient, hour: int = 48, **fields: object) -> str:
    """Create a slot whose only place the organizer has."""
    slot_id = await organizer.add_slot(**times_in(hour), **fields)
    await organizer.book_slot(slot_id)
    return slot_id


async def free_place(organizer: BookingClient, slot_id: str) -> None:
    """Cancel the organizer's booking, so that the first user on the list gets the place."""
    booking = (await organizer.fetch_slot(slot_id))["myBooking"]
    await organizer.cancel_booking(booking["id"])


async def next_position(opened: WebSocketTestClient) -> tuple[str, int | None]:
    """Return the slot and the position of the next event."""
    event: Json = await opened.next_result()
    return event["slotId"], event["position"]


async def test_entries_of_the_caller_are_listed_by_start_with_positions(clients: Four) -> None:
    ada, ben, _, organizer = clients
    late, early, other = [await add_full_slot(organizer, hour) for hour in (50, 48, 49)]
    for user, slot_ids in ((ben, (late, other)), (ada, (late, early))):
        for slot_id in slot_ids:
            await user.join(slot_id)
    found = await ada.execute(MY_ENTRIES)
    assert [(each["slot"]["id"], each["position"]) for each in found["nodes"]] == [
        (early, 1),
        (late, 2),
    ]
    assert [each["slot"]["myWaitlistEntry"]["id"] for each in found["nodes"]] == [
        each["id"] for each in found["nodes"]
    ]
    first = await ada.execute(MY_ENTRIES, first=1)
    assert (first["nodes"], first["pageInfo"]["hasNextPage"]) == (found["nodes"][:1], True)
    rest = await ada.execute(MY_ENTRIES, after=first["pageInfo"]["endCursor"])
    assert [page["totalCount"] for page in (found, first, rest)] == [2, 2, 2]
    assert (rest["nodes"], rest["pageInfo"]["hasNextPage"]) == (found["nodes"][1:], False)
    await free_place(organizer, early)
    assert [each["position"] for each in (await ada.execute(MY_ENTRIES))["nodes"]] == [2]
    assert (await organizer.execute(MY_ENTRIES))["nodes"] == []


async def test_positions_follow_the_list_in_every_process(clients: Four, two_apps: Pair) -> None:
    ada, ben, cleo, organizer = clients
    slot_id = await add_full_slot(organizer)
    for user in (ada, ben, cleo):
        await user.join(slot_id)
    sockets = [open_websocket(app, cleo.token) for app in two_apps]
    async with sockets[0] as here, sockets[1] as there:
        for opened in (here, there):
            await opened.subscribe("1", WATCH_POSITIONS)
            assert await next_position(opened) == (slot_id, 3)
        await ben.leave(slot_id)
        assert [await next_position(opened) for opened in (here, there)] == [(slot_id, 2)] * 2
        await free_place(organizer, slot_id)
        assert [await next_position(opened) for opened in (here, there)] == [(slot_id, 1)] * 2
        booking = (await ada.fetch_slot(slot_id))["myBooking"]
        await ada.cancel_booking(booking["id"])
        assert [await next_position(opened) for opened in (here, there)] == [(slot_id, None)] * 2
    assert (await cleo.fetch_slot(slot_id))["myBooking"] is not None


async def test_a_list_that_is_joined_later_is_reported_and_lists_of_others_are_not(
    clients: Four, two_apps: Pair
) -> None:
    ada, ben, _, organizer = clients
    first, second, others = [await add_full_slot(organizer) for _ in range(3)]
    await ada.join(first)
    async with open_websocket(two_apps[0], ada.token) as opened:
        await opened.subscribe("1", WATCH_POSITIONS)
        assert await next_position(opened) == (first, 1)
        for user, slot_id in ((ben, others), (ben, second), (ada, second)):
            await user.join(slot_id)
        assert await next_position(opened) == (second, 2)
        await organizer.cancel_slot(first)
        assert await next_position(opened) == (first, None)
