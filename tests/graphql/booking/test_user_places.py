"""Organizers see what any user has booked and waits for, as the user sees it."""

from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, hours_from_now, times_in
from tests.support.clients.fixtures import Three

LIST = "totalCount pageInfo { hasNextPage endCursor } nodes"
PLACES = f"""query($id: ID!, $first: Int! = 20, $after: String, $filter: TimeFilter) {{
  userBookings(userId: $id, first: $first, after: $after, filter: $filter) {{ {LIST} {{
    id status attendance user {{ id }} madeBy {{ id }}
    slot {{ id title remaining myBooking {{ id }} campaign {{ id }} }} }} }}
  userWaitlistEntries(userId: $id) {{ {LIST} {{
    id position user {{ id }} slot {{ id myWaitlistEntry {{ id }} }} }} }}
}}"""


async def read(organizer: BookingClient, user_id: str, **variables: object) -> tuple[Json, Json]:
    """Return the bookings and the waiting list entries of a user."""
    found = (await organizer.send(PLACES, id=user_id, **variables))["data"]
    return found["userBookings"], found["userWaitlistEntries"]


async def test_an_organizer_reads_the_bookings_of_a_user_page_by_page(clients: Three) -> None:
    ada, _, organizer = clients
    ada_id, organizer_id = await ada.fetch_user_id(), await organizer.fetch_user_id()
    hidden = await organizer.add_slot(**times_in(30))
    late = await organizer.add_slot(**times_in(50), capacity=3)
    own = (await organizer.book_slot(late))["booking"]["id"]
    await ada.book_slot(late)
    await organizer.book_slot(hidden, userId=ada_id, hold=True)
    first, _ = await read(organizer, ada_id, first=1)
    (held,) = first["nodes"]
    assert (held["slot"]["id"], held["status"], held["madeBy"]["id"]) == (
        hidden,
        "HELD",
        organizer_id,
    )
    assert (first["totalCount"], first["pageInfo"]["hasNextPage"]) == (2, True)
    rest, _ = await read(organizer, ada_id, after=first["pageInfo"]["endCursor"])
    (booking,) = rest["nodes"]
    assert (booking["slot"]["id"], booking["status"]) == (late, "CONFIRMED")
    assert booking["user"]["id"] == ada_id
    # What is "mine" stays that of the organizer.
    assert booking["slot"]["myBooking"]["id"] == own
    assert held["slot"]["myBooking"] is None
    assert booking["slot"]["remaining"] == 1
    await organizer.cancel_slot(late)
    after, _ = await read(organizer, ada_id, filter={"startsFrom": hours_from_now(40)})
    assert [each["status"] for each in after["nodes"]] == ["CANCELLED"]


async def test_an_organizer_reads_for_what_a_user_waits(clients: Three) -> None:
    ada, ben, organizer = clients
    full = await organizer.add_slot()
    await organizer.book_slot(full)
    for user in (ben, ada):
        await user.join(full)
    _, waiting = await read(organizer, await ada.fetch_user_id())
    (entry,) = waiting["nodes"]
    assert (entry["position"], entry["slot"]["id"], waiting["totalCount"]) == (2, full, 1)
    assert entry["user"]["id"] == await ada.fetch_user_id()
    assert entry["slot"]["myWaitlistEntry"] is None


async def test_places_of_nobody_are_null(clients: Three) -> None:
    *_, organizer = clients
    for nobody in ("nonsense", "user_" + "0" * 24):
        found = await organizer.send(PLACES, id=nobody)
        assert found["data"] == {"userBookings": None, "userWaitlistEntries": None}
