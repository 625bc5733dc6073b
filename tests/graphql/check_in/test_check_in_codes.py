"""The code of a booking: read by a scanner, shown to few, and accepted for its slot only."""

from xml.etree.ElementTree import fromstring

import httpx
import pytest

from slotlock.auth.tokens import TokenSigner
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.graphql.check_in.codes import check_in_code, parse_check_in_code
from tests.support.apps.processes import AppProcess
from tests.support.clients.attendance import (
    CODES,
    SVG,
    booked_soon,
    check_in,
    fetch_code,
    read_qr_code,
)
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import hours_from_now

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
IDS = SlotId("a" * 24), BookingId("b" * 24)
OLD_KEY, NEW_KEY = "o" * 32, "n" * 32


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada at one process, Ben at the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


async def test_a_scanner_reads_the_code_that_checks_the_user_in(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id, booking_id = await booked_soon(organizer, ada, title='Yoga & "Tea" <b>')
    codes = await ada.execute(CODES, booking=booking_id)
    svg = codes["checkInQr"]
    root = fromstring(svg)  # noqa: S314
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == 'Check-in code for Yoga & "Tea" <b>'
    assert (root.attrib["width"], root.attrib["role"]) == ("296", "img")
    assert read_qr_code(svg) == codes["checkInCode"]
    done = await check_in(organizer, code=read_qr_code(svg), slotId=slot_id)
    assert (done["__typename"], done["booking"]["id"]) == ("CheckedIn", booking_id)


async def test_my_bookings_shows_the_qr_code_without_other_fields_of_the_slot(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    slot_id, _ = await booked_soon(organizer, ada, title="Pottery")
    own = "query($id: ID!) { slot(id: $id) { myBooking { checkInQr } } }"
    assert "Pottery" in (await ada.execute(own, id=slot_id))["myBooking"]["checkInQr"]
    listed = await ada.execute("{ myBookings(first: 1) { nodes { checkInQr } } }")
    assert "Pottery" in listed["nodes"][0]["checkInQr"]


async def test_only_the_user_and_organizers_see_the_code_of_a_confirmed_booking(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    slot_id, booking_id = await booked_soon(organizer, ada, capacity=3)
    assert await fetch_code(organizer, booking_id) == await fetch_code(ada, booking_id)
    await ada.create_team_with(ben)
    booked = """mutation($input: BookSlotInput!) { bookSlot(input: $input) {
      ... on Booked { booking { checkInCode checkInQr attendance } }
    } }"""
    for_ben = {"slotId": slot_id, "userId": await ben.fetch_user_id()}
    shown = (await ada.execute(booked, input=for_ben))["booking"]
    assert (shown["checkInCode"], shown["checkInQr"]) == (None, None)
    other_slot_id = await organizer.add_slot()
    hold = await ada.hold(other_slot_id)
    assert (await ada.execute(CODES, booking=hold["id"]))["checkInCode"] is None


async def test_codes_of_cancelled_and_moved_bookings_and_of_other_slots_are_refused(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    slot_id, cancelled_id = await booked_soon(organizer, ada)
    cancelled_code = await fetch_code(ada, cancelled_id)
    await ada.cancel_booking(cancelled_id)
    assert (await check_in(organizer, code=cancelled_code))["code"] == "NOT_CONFIRMED"
    _, old_id = await booked_soon(organizer, ben)
    old_code = await fetch_code(ben, old_id)
    moved = (await ben.move(old_id, slot_id))["booking"]
    refused = await check_in(organizer, code=old_code)
    assert (refused["code"], refused["booking"]["movedTo"]) == ("NOT_CONFIRMED", moved["id"])
    new_code = await fetch_code(ben, moved["id"])
    other_slot_id = await organizer.add_slot(startTime=hours_from_now(1), endTime=hours_from_now(2))
    wrong = await check_in(organizer, code=new_code, slotId=other_slot_id)
    assert (wrong["code"], wrong["slot"]["id"]) == ("WRONG_SLOT", slot_id)
    assert (await check_in(organizer, code=new_code, slotId=slot_id))["__typename"] == "CheckedIn"


@pytest.mark.parametrize("code", ["", "x", "A" * 56, "A" * 10_000, "\u00e9" * 56, "8" * 56])
async def test_a_text_that_is_no_code_is_refused(clients: Three, code: str) -> None:
    _, _, organizer = clients
    assert (await check_in(organizer, code=code))["code"] == "INVALID_CHECK_IN_CODE"


def test_a_code_is_valid_while_its_key_is_configured() -> None:
    code = check_in_code(TokenSigner([OLD_KEY]), *IDS)
    assert parse_check_in_code(TokenSigner([NEW_KEY, OLD_KEY]), code) == IDS
    assert parse_check_in_code(TokenSigner([NEW_KEY]), code) is None
    assert parse_check_in_code(TokenSigner([OLD_KEY]), f" {code.lower()} ") == IDS


def test_a_code_with_any_changed_character_is_invalid() -> None:
    tokens = TokenSigner([OLD_KEY])
    code = check_in_code(tokens, *IDS)
    for index in range(len(code)):
        other = "A" if code[index] != "A" else "B"
        assert parse_check_in_code(tokens, code[:index] + other + code[index + 1 :]) is None
