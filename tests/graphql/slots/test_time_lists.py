"""Lists by time, in each order and filter: bookings, waiting list entries, campaigns, series."""

import secrets
from datetime import timedelta

import pytest

from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.pagination import TimeOrder, UpcomingPosition
from slotlock.graphql.core.connections import TimeList
from slotlock.graphql.slots.slot_types import times_of
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now, times_in
from tests.support.clients.fixtures import Three
from tests.support.clients.series import create_series
from tests.support.domain.builders import NOW, build_slot

ARGUMENTS = "filter: $filter, orderBy: $order, first: $first, after: $after"
VARIABLES = "$filter: TimeFilter, $order: TimeOrder!, $first: Int! = 2, $after: String"
PAGE = "pageInfo { hasNextPage endCursor }"
MY_BOOKINGS = f"""query({VARIABLES}) {{
  myBookings({ARGUMENTS}) {{ totalCount nodes {{ slot {{ title }} }} {PAGE} }}
}}"""
MY_WAITLIST_ENTRIES = MY_BOOKINGS.replace("myBookings", "myWaitlistEntries")
CAMPAIGNS = f"""query({VARIABLES}) {{ campaigns({ARGUMENTS}) {{ nodes {{ name }} {PAGE} }} }}"""
SERIES = f"""query($id: ID!, {VARIABLES}) {{ node(id: $id) {{ ... on SlotSeries {{
  slots({ARGUMENTS}) {{ totalCount nodes {{ id }} {PAGE} }}
}} }} }}"""
# Begin and end, in hours from now.
TIMES = {
    "last week": (-170, -169),
    "yesterday": (-25, -24),
    "this term": (-1000, 1000),
    "tomorrow": (24, 25),
    "next week": (168, 169),
}
UPCOMING, OVER = ["this term", "tomorrow", "next week"], ["yesterday", "last week"]
IN_ORDER = ["this term", "last week", "yesterday", "tomorrow", "next week"]
LISTS: list[tuple[str, Json, list[str]]] = [
    ("UPCOMING_FIRST", {}, UPCOMING + OVER),
    ("START_ASC", {}, IN_ORDER),
    ("START_DESC", {}, IN_ORDER[::-1]),
    ("UPCOMING_FIRST", {"includePast": False}, UPCOMING),
    ("START_DESC", {"includePast": False}, UPCOMING[::-1]),
    ("UPCOMING_FIRST", {"endsBefore": hours_from_now(0)}, OVER),
    ("UPCOMING_FIRST", {"startsFrom": hours_from_now(-200)}, ["tomorrow", "next week", *OVER]),
    ("START_ASC", {"startsFrom": hours_from_now(-30), "startsBefore": hours_from_now(100)},
     ["yesterday", "tomorrow"]),
]  # fmt: skip


async def add_bookings(user: BookingClient, organizer: BookingClient) -> None:
    """Let a user book a slot for each of `TIMES`."""
    for title, (begin, end) in TIMES.items():
        slot_id = await organizer.add_slot(title=title)
        assert (await user.book_slot(slot_id))["__typename"] == "Booked"
        moved = await organizer.update_slot(slot_id, allowPast=True, **times_in(begin, end - begin))
        assert moved["__typename"] == "Slot", moved


async def test_the_first_bookings_are_those_that_are_not_over(clients: Three) -> None:
    ada, _, organizer = clients
    await add_bookings(ada, organizer)
    listed = await ada.execute("{ myBookings { nodes { slot { title } } } }")
    assert [each["slot"]["title"] for each in listed["nodes"]] == UPCOMING + OVER
    for order, wanted, expected in LISTS:
        found = await ada.all_nodes(MY_BOOKINGS, order=order, filter=wanted)
        assert [each["slot"]["title"] for each in found] == expected, (order, wanted)
        page = await ada.execute(MY_BOOKINGS, order=order, filter=wanted)
        assert page["totalCount"] == len(expected)


async def test_the_entries_in_waiting_lists_have_the_same_orders_and_filter(clients: Three) -> None:
    ada, ben, organizer = clients
    times = {"today": 2, "tomorrow": 24, "next week": 168}
    for title, begin in times.items():
        slot_id = await organizer.add_slot(title=title, **times_in(begin))
        await ben.book_slot(slot_id)
        await ada.join(slot_id)
    in_order = list(times)
    for order, wanted, expected in [
        ("UPCOMING_FIRST", None, in_order),
        ("START_ASC", {}, in_order),
        ("START_DESC", {}, in_order[::-1]),
        ("START_DESC", {"startsFrom": hours_from_now(4)}, ["next week", "tomorrow"]),
        ("START_ASC", {"startsBefore": hours_from_now(30)}, ["today", "tomorrow"]),
        ("START_ASC", {"endsBefore": hours_from_now(30)}, ["today", "tomorrow"]),
        ("UPCOMING_FIRST", {"endsBefore": hours_from_now(0)}, []),
    ]:
        variables = {"order": order, "filter": wanted}
        found = await ada.all_nodes(MY_WAITLIST_ENTRIES, **variables)
        assert [each["slot"]["title"] for each in found] == expected, (order, wanted)
        page = await ada.execute(MY_WAITLIST_ENTRIES, **variables)
        assert page["totalCount"] == len(expected)


async def test_the_first_campaigns_are_those_that_are_not_over(clients: Three) -> None:
    ada, _, organizer = clients
    prefix = secrets.token_hex(4)
    for name, (begin, end) in TIMES.items():
        times = {"opensAt": hours_from_now(begin), "closesAt": hours_from_now(end)}
        await create_campaign(organizer, name=f"{prefix} {name}", allowPast=True, **times)
    for order, wanted, expected in LISTS:
        found = await ada.all_nodes(CAMPAIGNS, order=order, filter=wanted, first=100)
        names = [each["name"] for each in found if each["name"].startswith(prefix)]
        assert names == [f"{prefix} {name}" for name in expected], (order, wanted)


async def test_the_slots_of_a_series_have_the_same_orders_and_filter(clients: Three) -> None:
    ada, _, organizer = clients
    times = {**times_in(-49), "timeZone": "UTC"}
    series = await create_series(organizer, "FREQ=DAILY;COUNT=5", allowPast=True, **times)
    ids = [slot["id"] for slot in series["slots"]]
    for order, wanted, expected in [
        ("START_ASC", None, ids),
        ("START_DESC", {}, ids[::-1]),
        ("UPCOMING_FIRST", {}, [*ids[3:], *ids[2::-1]]),
        ("START_ASC", {"includePast": False}, ids[3:]),
        ("START_ASC", {"endsBefore": hours_from_now(0)}, ids[:3]),
    ]:
        variables = {"id": series["seriesId"], "order": order, "filter": wanted}
        found = await ada.all_nodes(SERIES, **variables)
        assert [each["id"] for each in found] == expected, (order, wanted)
        page = await ada.execute(SERIES, **variables)
        assert page["slots"]["totalCount"] == len(expected)


async def test_a_cursor_of_another_order_or_an_empty_period_is_bad_input(clients: Three) -> None:
    ada, _, organizer = clients
    await add_bookings(ada, organizer)
    cursors = {}
    for order in ("UPCOMING_FIRST", "START_ASC"):
        page = await ada.execute(MY_BOOKINGS, order=order)
        cursors[order] = page["pageInfo"]["endCursor"]
    for order, other in zip(cursors, reversed(cursors), strict=True):
        assert await ada.error_code(MY_BOOKINGS, order=order, after=cursors[other]) == (
            "BAD_USER_INPUT"
        )
    period = {"startsFrom": hours_from_now(2), "startsBefore": hours_from_now(1)}
    assert await ada.error_code(MY_BOOKINGS, order="START_ASC", filter=period) == "BAD_USER_INPUT"


@pytest.mark.parametrize("later", [timedelta(0), timedelta(hours=30)])
def test_what_ends_between_two_pages_stays_where_the_first_page_had_it(later: timedelta) -> None:
    bookings = TimeList[SlotState]("myBookings", times_of)
    order, slot = TimeOrder.UPCOMING_FIRST, build_slot(id="0" * 24)
    _, cursors = bookings.page(None, order, 1, None, NOW)
    page, _ = bookings.page(None, order, 1, cursors.of_item(slot), NOW + later)
    assert page.after == UpcomingPosition(slot.slot.start, slot.id, NOW, is_over=False)
    assert page.as_of == NOW
