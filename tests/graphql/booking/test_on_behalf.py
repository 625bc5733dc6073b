"""Booking for others, and the arguments of booking mutations."""

from typing import Any

import pytest

from tests.support.clients.booking_client import (
    BOOK_SEVERAL,
    BOOK_WITH_OPTIONS,
    CANCEL_WITH_OPTIONS,
    CONFIRM_BOOKING,
    EXTEND_HOLD,
    MOVE_BOOKING,
)
from tests.support.clients.client import hours_from_now
from tests.support.clients.fixtures import Three

NOBODY = "user_" + "0" * 24
BAD_KEYS = ["", "k" * 256, "a\nb", "a\x00b", "\x7f", "a\u2028b"]
BAD_WAITS = [-1, 20_001, 2**31 - 1]
WAITING = "mutation($id: ID!, $wait: Int!) { %s(slotId: $id, waitMs: $wait) { __typename } }"
EXTEND_SOON = """mutation($booking: ID!, $wait: Int!) {
  extendHold(bookingId: $booking, waitMs: $wait) { __typename }
}"""


async def test_an_organizer_books_for_anyone_and_is_recorded(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    adas, organizers = await ada.fetch_user_id(), await organizer.fetch_user_id()
    booking = (await organizer.book_slot(slot_id, userId=adas))["booking"]
    assert (booking["user"]["id"], booking["madeBy"]["id"]) == (adas, organizers)
    assert (booking["onBehalf"], booking["overriddenLimits"]) == (True, [])
    (first,) = booking["history"]
    assert (first["action"], first["by"]["id"]) == ("BOOKED", organizers)
    assert (await ada.fetch_slot(slot_id))["myBooking"] == booking


async def test_a_users_own_booking_is_not_on_behalf(clients: Three) -> None:
    ada, _, organizer = clients
    for user in (ada, organizer):
        own = await user.fetch_user_id()
        slot_id = await organizer.add_slot(capacity=2)
        booking = (await user.book_slot(slot_id, userId=own))["booking"]
        assert (booking["onBehalf"], booking["madeBy"]["id"]) == (False, own)


async def test_an_organizer_holds_a_place_for_somebody_who_confirms_it(clients: Three) -> None:
    ada, _, organizer = clients
    hold = await organizer.hold(await organizer.add_slot(), userId=await ada.fetch_user_id())
    assert (hold["status"], hold["onBehalf"]) == ("HELD", True)
    confirmed = (await ada.confirm(hold["id"]))["booking"]
    assert [entry["by"]["id"] for entry in confirmed["history"]] == [
        await organizer.fetch_user_id(),
        await ada.fetch_user_id(),
    ]


OVERRIDDEN = """query($id: ID!) { node(id: $id) {
  ... on Booking { overriddenRefusals history { overriddenRefusals } }
} }"""


@pytest.mark.parametrize("user_id", [NOBODY, "", "nobody", "slot_" + "0" * 24])
async def test_an_unknown_user_is_never_booked(clients: Three, user_id: str) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    assert (await organizer.book_slot(slot_id, userId=user_id))["code"] == "USER_NOT_FOUND"
    assert (await ada.fetch_slot(slot_id))["remaining"] == 1


async def test_bookings_name_the_limits_that_an_organizer_overrode(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(cancelCutoffMinutes=3 * 24 * 60)
    other_id = await organizer.add_slot(startTime=hours_from_now(-1))
    booking = (await ada.book_slot(slot_id))["booking"]
    assert (await ada.move(booking["id"], other_id))["code"] == "CUTOFF_PASSED"
    moved = await organizer.move(booking["id"], other_id)
    new, old = moved["booking"], moved["oldBooking"]
    assert (old["overriddenLimits"], new["overriddenLimits"]) == (
        ["CANCEL_CUTOFF"],
        ["SLOT_STARTED"],
    )
    # The words of the refusals that a member gets.
    for booking_id, code in ((old["id"], "CUTOFF_PASSED"), (new["id"], "SLOT_STARTED")):
        named = await organizer.execute(OVERRIDDEN, id=booking_id)
        assert named["overriddenRefusals"] == named["history"][-1]["overriddenRefusals"] == [code]
    assert await ada.fetch_booking(old["id"]) == old


async def test_the_history_shows_its_owner_who_did_what(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_ids = [await organizer.add_slot() for _ in range(2)]
    hold = await ada.hold(slot_ids[0])
    await organizer.confirm(hold["id"])
    moved = (await organizer.move(hold["id"], slot_ids[1]))["booking"]
    await ada.cancel_booking(moved["id"])
    adas, organizers = await ada.fetch_user_id(), await organizer.fetch_user_id()
    recorded = [
        (entry["action"], entry["by"]["id"])
        for booking_id in (hold["id"], moved["id"])
        for entry in (await ada.fetch_booking(booking_id))["history"]
    ]
    assert recorded == [
        ("HELD", adas),
        ("CONFIRMED", organizers),
        ("MOVED", organizers),
        ("MOVED", organizers),
        ("CANCELLED", adas),
    ]
    assert await ben.fetch_booking(hold["id"]) is None


def operations_with_key(
    slot_id: str, booking_id: str, key: str
) -> list[tuple[str, dict[str, Any]]]:
    """Return every operation that takes a key, with this key."""
    on_it = {"booking": booking_id, "key": key}
    return [
        (BOOK_WITH_OPTIONS, {"input": {"slotId": slot_id, "idempotencyKey": key}}),
        (BOOK_SEVERAL, {"input": {"claims": [{"slotId": slot_id}], "idempotencyKey": key}}),
        (
            MOVE_BOOKING,
            {"input": {"bookingId": booking_id, "slotId": slot_id, "idempotencyKey": key}},
        ),
        (CONFIRM_BOOKING, on_it),
        (EXTEND_HOLD, on_it),
        (CANCEL_WITH_OPTIONS, on_it),
    ]


def operations_with_wait(
    slot_id: str, booking_id: str, wait: int
) -> list[tuple[str, dict[str, Any]]]:
    """Return every operation that waits, with this timeout."""
    on_it = {"booking": booking_id, "wait": wait}
    return [
        (BOOK_WITH_OPTIONS, {"input": {"slotId": slot_id, "waitMs": wait}}),
        (BOOK_SEVERAL, {"input": {"claims": [{"slotId": slot_id}], "waitMs": wait}}),
        (MOVE_BOOKING, {"input": {"bookingId": booking_id, "slotId": slot_id, "waitMs": wait}}),
        (CONFIRM_BOOKING, on_it),
        (EXTEND_SOON, on_it),
        (CANCEL_WITH_OPTIONS, on_it),
        (WAITING % "joinWaitlist", {"id": slot_id, "wait": wait}),
        (WAITING % "leaveWaitlist", {"id": slot_id, "wait": wait}),
    ]


async def test_an_idempotency_key_is_one_line_of_1_to_255_characters(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    hold = await ada.hold(slot_id)
    for bad in BAD_KEYS:
        for query, variables in (
            *operations_with_key(slot_id, hold["id"], bad),
            *operations_with_key("x", "x", bad),
        ):
            assert await ada.error_code(query, **variables) == "BAD_USER_INPUT"
    assert await ada.fetch_booking(hold["id"]) == hold
    assert (await ada.confirm(hold["id"], key="ключ ☕" * 42))["__typename"] == "BookingConfirmed"


async def test_wait_ms_accepts_0_to_20000(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    hold = await ada.hold(slot_id)
    for bad in BAD_WAITS:
        for query, variables in (
            *operations_with_wait(slot_id, hold["id"], bad),
            *operations_with_wait("x", "x", bad),
        ):
            assert await ada.error_code(query, **variables) == "BAD_USER_INPUT"
    assert await ada.fetch_booking(hold["id"]) == hold
    for good in (0, 20_000):
        assert (await ada.confirm(hold["id"], wait=good))["__typename"] == "BookingConfirmed"


async def test_the_booker_sees_and_changes_a_teammates_booking_and_others_do_not(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    slot_ids = [await organizer.add_slot() for _ in range(2)]
    await ada.create_team_with(ben)
    adas, bens = await ada.fetch_user_id(), await ben.fetch_user_id()
    hold = await ada.hold(slot_ids[0], userId=bens)
    assert (await ada.fetch_booking(hold["id"]))["madeBy"] == {"id": adas}
    assert await ada.fetch_booking(hold["id"]) == hold == await ben.fetch_booking(hold["id"])
    assert (await ada.extend(hold["id"]))["booking"]["id"] == hold["id"]
    confirmed = (await ada.confirm(hold["id"]))["booking"]
    assert (confirmed["user"]["id"], confirmed["status"]) == (bens, "CONFIRMED")
    moved = (await ada.move(hold["id"], slot_ids[1]))["booking"]
    assert (moved["user"]["id"], moved["madeBy"]["id"], moved["onBehalf"]) == (bens, adas, True)
    cancelled = await ada.cancel_booking(moved["id"])
    assert cancelled["slot"]["remaining"] == 1
    assert await ada.cancel_booking(moved["id"]) == cancelled
    assert (
        await ada.fetch_booking(moved["id"])
        == cancelled["booking"]
        == await ben.fetch_booking(moved["id"])
    )
    assert (await ada.fetch_slot(slot_ids[0]))["myBooking"] is None


async def test_the_booker_does_not_see_what_a_teammate_booked_alone(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_ids = [await organizer.add_slot() for _ in range(2)]
    await ada.create_team_with(ben)
    booking = (await ada.book_slot(slot_ids[0], userId=await ben.fetch_user_id()))["booking"]
    own = (await ben.move(booking["id"], slot_ids[1]))["booking"]
    assert own["onBehalf"] is False
    assert await ada.fetch_booking(own["id"]) is None
    assert (await ada.cancel_booking(own["id"]))["code"] == "BOOKING_NOT_FOUND"
    assert (await ada.fetch_booking(booking["id"]))["movedTo"] == own["id"]


async def test_the_lists_of_own_bookings_leave_out_those_for_teammates(clients: Three) -> None:
    ada, ben, organizer = clients
    await ada.create_team_with(ben)
    booking = await ada.hold(await organizer.add_slot(), userId=await ben.fetch_user_id())
    lists = "{ myBookings { nodes { id } } }", "{ myEndedBookings { nodes { id } } }"
    for own in lists:
        assert await ada.execute(own) == {"nodes": []}
        assert await ben.execute(own) == {"nodes": [{"id": booking["id"]}]}
        await ada.cancel_booking(booking["id"])
