"""Check-in codes, and the pause of a user with too many no-shows in a campaign."""

from datetime import datetime, timedelta
from xml.etree.ElementTree import fromstring

import pytest

from slotlock.auth.tokens import TokenSigner
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.graphql.check_in_codes import CODE_LENGTH, booking_code, parse_booking_code, to_qr_svg
from tests.support.clients.attendance import (
    CODES,
    SVG,
    UNDO_NO_SHOW,
    booked_soon,
    check_in,
    fetch_code,
    mark_no_show,
    missed,
    read_qr_code,
)
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    BOOKING_METHODS,
    CREATE_CAMPAIGN,
    book_with_refusal,
    campaign_fields,
    create_campaign,
    join_waitlist,
    update_campaign,
)
from tests.support.clients.client import Json, hours_from_now, times_in
from tests.support.clients.fixtures import Three

ELIGIBILITY = """query($id: ID!) { slot(id: $id) { myEligibility {
  mayBook refusal { code ... on TooManyNoShows { until } }
} } }"""
IDS = SlotId("a" * 24), BookingId("b" * 24)
OLD_KEY, NEW_KEY = "o" * 32, "n" * 32


async def limited_campaign(organizer: BookingClient, count: int = 1) -> str:
    """Return a new campaign with a pause of 14 days after this many no-shows."""
    return await create_campaign(organizer, noShowLimit={"count": count, "days": 14})


async def later_slot(organizer: BookingClient, campaign_id: str, **fields: object) -> str:
    """Return a new slot of the campaign that has not started."""
    return await organizer.add_slot(campaignId=campaign_id, **fields)


async def test_the_no_show_that_reaches_the_limit_starts_the_pause_and_undoing_it_ends_it(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    campaign_id = await limited_campaign(organizer, count=2)
    await missed(organizer, ada, campaignId=campaign_id)
    slot_id = await later_slot(organizer, campaign_id, capacity=3)
    eligibility: Json = (await ada.execute(ELIGIBILITY, id=slot_id))["myEligibility"]
    assert eligibility["mayBook"] is True
    second = await missed(organizer, ada, campaignId=campaign_id)
    refused = await book_with_refusal(ada, slot_id)
    assert (refused["code"], refused["count"]) == ("TOO_MANY_NO_SHOWS", 2)
    marked_at = (await organizer.fetch_booking(second))["history"][-1]["at"]
    until = datetime.fromisoformat(marked_at) + timedelta(days=14)
    assert datetime.fromisoformat(refused["until"]) == until
    eligibility = (await ada.execute(ELIGIBILITY, id=slot_id))["myEligibility"]
    assert eligibility["refusal"] == {"code": "TOO_MANY_NO_SHOWS", "until": refused["until"]}
    assert (await book_with_refusal(ben, slot_id))["__typename"] == "Booked"
    await organizer.execute(UNDO_NO_SHOW, booking=second)
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"


@pytest.mark.parametrize("method", BOOKING_METHODS)
async def test_no_way_to_book_passes_the_limit(clients: Three, method: str) -> None:
    ada, _, organizer = clients
    campaign_id = await limited_campaign(organizer)
    await missed(organizer, ada, campaignId=campaign_id)
    slot_id = await later_slot(organizer, campaign_id)
    refused = await BOOKING_METHODS[method](ada, organizer, slot_id)
    assert refused["code"] == "TOO_MANY_NO_SHOWS"


async def test_a_no_show_of_a_booking_that_was_cancelled_does_not_count(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await limited_campaign(organizer)
    cancelled_id = await missed(organizer, ada, campaignId=campaign_id)
    await organizer.cancel_booking(cancelled_id)
    slot_id = await later_slot(organizer, campaign_id)
    assert (await book_with_refusal(ada, slot_id))["__typename"] == "Booked"


async def test_a_paused_user_cannot_wait_and_loses_a_place_in_the_waiting_list_to_the_next(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    campaign_id = await limited_campaign(organizer)
    slot_id = await later_slot(organizer, campaign_id)
    taken = await organizer.book_slot(slot_id)
    await ada.join(slot_id)
    await ben.join(slot_id)
    await missed(organizer, ada, campaignId=campaign_id)
    await organizer.cancel_booking(taken["booking"]["id"])
    assert (await ben.fetch_slot(slot_id))["myBooking"]["status"] == "CONFIRMED"
    assert (await ada.fetch_slot(slot_id))["myWaitlistEntry"] is None
    assert (await join_waitlist(ada, organizer, slot_id))["code"] == "TOO_MANY_NO_SHOWS"
    renamed = await update_campaign(organizer, campaign_id, name="Renamed")
    assert renamed["noShowLimit"] == {"count": 1, "days": 14}
    await update_campaign(organizer, campaign_id, noShowLimit=None)
    assert (await ada.join(slot_id))["__typename"] == "WaitlistJoined"


@pytest.mark.parametrize(
    ("limit", "fields"),
    [
        ({"count": 0, "days": 1}, ["count"]),
        ({"count": 1, "days": 367}, ["days"]),
        ({"count": 101, "days": 0}, ["count", "days"]),
    ],
)
async def test_a_limit_has_a_range(clients: Three, limit: Json, fields: list[str]) -> None:
    _, _, organizer = clients
    refused = await organizer.execute(CREATE_CAMPAIGN, input=campaign_fields(noShowLimit=limit))
    assert [problem["field"] for problem in refused["fields"]] == fields


async def test_a_booking_from_before_the_pause_stays_and_can_be_missed(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await limited_campaign(organizer)
    slot_id, booking_id = await booked_soon(organizer, ada, campaignId=campaign_id)
    await missed(organizer, ada, campaignId=campaign_id)
    assert (await ada.fetch_booking(booking_id))["status"] == "CONFIRMED"
    await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    assert (await mark_no_show(organizer, booking_id))["__typename"] == "NoShowMarked"


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


def test_a_qr_code_has_a_size_and_scales_to_any_other() -> None:
    root = fromstring(to_qr_svg("A" * CODE_LENGTH, "Yoga"))  # noqa: S314
    assert (root.attrib["width"], root.attrib["height"]) == ("296", "296")
    assert root.attrib["viewBox"] == "0 0 296 296"


async def test_my_bookings_shows_the_qr_code_without_slot_fields(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id, _ = await booked_soon(organizer, ada, title="Pottery")
    own = "query($id: ID!) { slot(id: $id) { myBooking { checkInQr } } }"
    assert "Pottery" in (await ada.execute(own, id=slot_id))["myBooking"]["checkInQr"]
    listed = await ada.execute("{ myBookings(first: 1) { nodes { checkInQr } } }")
    assert "Pottery" in listed["nodes"][0]["checkInQr"]


async def test_only_the_user_and_organizers_see_the_code(clients: Three) -> None:
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


async def test_codes_of_ended_bookings_and_of_other_slots_are_refused(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id, cancelled_id = await booked_soon(organizer, ada)
    cancelled_code = await fetch_code(ada, cancelled_id)
    await ada.cancel_booking(cancelled_id)
    for door in ({}, {"slotId": slot_id}):  # a cancelled booking sends nobody to another room
        assert (await check_in(organizer, code=cancelled_code, **door))["code"] == "NOT_CONFIRMED"
    _, old_id = await booked_soon(organizer, ben)
    old_code = await fetch_code(ben, old_id)
    moved = (await ben.move(old_id, slot_id))["booking"]
    refused = await check_in(organizer, code=old_code)
    assert (refused["code"], refused["booking"]["movedTo"]) == ("NOT_CONFIRMED", moved["id"])
    new_code = await fetch_code(ben, moved["id"])
    other_slot_id = await organizer.add_slot(**times_in(1))
    wrong = await check_in(organizer, code=new_code, slotId=other_slot_id)
    assert (wrong["code"], wrong["slot"]["id"]) == ("WRONG_SLOT", slot_id)
    assert (wrong["booking"]["id"], wrong["booking"]["user"]["name"]) == (moved["id"], "Somebody")
    assert (await check_in(organizer, code=new_code, slotId=slot_id))["__typename"] == "CheckedIn"


@pytest.mark.parametrize("code", ["", "x", "A" * 56, "A" * 10_000, "\u00e9" * 56, "8" * 56])
async def test_a_text_that_is_no_code_is_refused(clients: Three, code: str) -> None:
    _, _, organizer = clients
    assert (await check_in(organizer, code=code))["code"] == "INVALID_CHECK_IN_CODE"


def test_a_code_is_valid_while_its_key_is_configured() -> None:
    code = booking_code(TokenSigner([OLD_KEY]), *IDS)
    assert parse_booking_code(TokenSigner([NEW_KEY, OLD_KEY]), code) == IDS
    assert parse_booking_code(TokenSigner([NEW_KEY]), code) is None
    assert parse_booking_code(TokenSigner([OLD_KEY]), f" {code.lower()} ") == IDS


def test_a_code_that_an_american_scanner_types_at_a_german_keyboard_is_read() -> None:
    tokens = TokenSigner([OLD_KEY])
    for number in range(9):
        ids = SlotId(f"{number:024x}"), BookingId("b" * 24)
        code = booking_code(tokens, *ids)
        typed = code.translate(str.maketrans("YZ", "ZY"))
        assert parse_booking_code(tokens, typed) == parse_booking_code(tokens, code) == ids
        assert parse_booking_code(tokens, typed.lower()) == ids


def test_a_code_with_any_changed_character_is_invalid() -> None:
    tokens = TokenSigner([OLD_KEY])
    code = booking_code(tokens, *IDS)
    for index in range(len(code)):
        other = "A" if code[index] != "A" else "B"
        assert parse_booking_code(tokens, code[:index] + other + code[index + 1 :]) is None
