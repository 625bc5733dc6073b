"""Organisers act for anyone: recorded by whom, with every limit they override by name."""

import secrets

import httpx
import pytest

from tests.support.client import in_hours
from tests.support.desk import Person, staffed
from tests.support.processes import AppProcess

Pair = tuple[AppProcess, AppProcess]
Three = tuple[Person, Person, Person]
NOBODY = "user_" + "0" * 24


@pytest.fixture
async def three(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada and Ben, who are no team, and an organiser."""
    (ada, ben), organiser = await staffed(http, 2, *two_apps)
    return ada, ben, organiser


async def test_an_organiser_books_for_anyone_and_is_recorded(three: Three) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot()
    adas, organisers = await ada.id(), await organiser.id()
    booking = (await organiser.wish(slot_id, userId=adas))["booking"]
    assert (booking["user"]["id"], booking["madeBy"]["id"]) == (adas, organisers)
    assert (booking["onBehalf"], booking["overrode"]) == (True, [])
    (first,) = booking["history"]
    assert (first["what"], first["by"]["id"]) == ("BOOKED", organisers)
    assert (await ada.mine(slot_id))["myBooking"] == booking


async def test_ones_own_booking_is_not_on_behalf(three: Three) -> None:
    ada, _, organiser = three
    for person in (ada, organiser):
        own = await person.id()
        slot_id = await organiser.slot(capacity=2)
        booking = (await person.wish(slot_id, userId=own))["booking"]
        assert (booking["onBehalf"], booking["madeBy"]["id"]) == (False, own)


async def test_an_organiser_holds_a_place_for_somebody_who_confirms_it(three: Three) -> None:
    ada, _, organiser = three
    hold = await organiser.hold(await organiser.slot(), userId=await ada.id())
    assert (hold["status"], hold["onBehalf"]) == ("HELD", True)
    confirmed = (await ada.confirm(hold["id"]))["booking"]
    assert [entry["by"]["id"] for entry in confirmed["history"]] == [
        await organiser.id(),
        await ada.id(),
    ]


async def test_not_even_an_organiser_exceeds_the_capacity(three: Three) -> None:
    ada, ben, organiser = three
    slot_id, other_id = await organiser.slot(), await organiser.slot()
    await ada.wish(slot_id)
    assert (await organiser.wish(slot_id, userId=await ben.id()))["code"] == "SLOT_FULL"
    booking = (await ben.wish(other_id))["booking"]
    assert (await organiser.move(booking["id"], slot_id))["code"] == "SLOT_FULL"
    await organiser.update(slot_id, startTime=in_hours(-1))
    assert (await organiser.wish(slot_id, userId=await ben.id()))["code"] == "SLOT_FULL"
    assert (await ben.mine(slot_id))["remaining"] == 0


async def test_an_organiser_gets_nobody_past_those_who_wait(three: Three) -> None:
    ada, ben, organiser = three
    slot_id = await organiser.slot(waitlistOfferMinutes=30)
    booking = (await ada.wish(slot_id))["booking"]
    await ben.join(slot_id)
    await ada.give_back(booking["id"])
    assert (await organiser.wish(slot_id, userId=await ada.id()))["code"] == "SLOT_FULL"


@pytest.mark.parametrize("user_id", [NOBODY, "", "nobody", "slot_" + "0" * 24])
async def test_nobody_is_booked_who_is_not_there(three: Three, user_id: str) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot()
    assert (await organiser.wish(slot_id, userId=user_id))["code"] == "PERSON_NOT_FOUND"
    assert (await ada.mine(slot_id))["remaining"] == 1


async def test_a_person_has_one_place_in_a_slot_whoever_books_it(three: Three) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot(capacity=5)
    booking = (await ada.wish(slot_id))["booking"]
    again = await organiser.wish(slot_id, userId=await ada.id())
    assert (again["code"], again["booking"]["id"]) == ("ALREADY_BOOKED", booking["id"])


async def test_an_organiser_books_late_comers_into_a_slot_that_began(three: Three) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot(startTime=in_hours(-1))
    assert (await ada.wish(slot_id))["code"] == "SLOT_STARTED"
    assert (await organiser.wish(slot_id))["code"] == "SLOT_STARTED"
    booking = (await organiser.wish(slot_id, userId=await ada.id()))["booking"]
    assert booking["overrode"] == booking["history"][0]["overrode"] == ["SLOT_STARTED"]
    assert (await ada.seen(booking["id"]))["overrode"] == ["SLOT_STARTED"]


async def test_an_organiser_gives_somebody_a_second_place_of_a_choice(three: Three) -> None:
    ada, _, organiser = three
    room = secrets.token_hex(8)
    bed, other_bed = [await organiser.slot(choice=room) for _ in range(2)]
    await ada.wish(bed)
    assert (await ada.wish(other_bed))["code"] == "LIMIT_REACHED"
    booking = (await organiser.wish(other_bed, userId=await ada.id()))["booking"]
    assert booking["overrode"] == ["ONE_OF_CHOICE"]


async def test_an_organiser_moves_a_booking_for_somebody_and_names_what_that_overrode(
    three: Three,
) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot(cancelCutoffMinutes=3 * 24 * 60)
    other_id = await organiser.slot(startTime=in_hours(-1))
    adas, organisers = await ada.id(), await organiser.id()
    booking = (await ada.wish(slot_id))["booking"]
    assert (await ada.move(booking["id"], other_id))["code"] == "CUTOFF_PASSED"
    moved = await organiser.move(booking["id"], other_id)
    new, old = moved["booking"], moved["oldBooking"]
    assert (new["user"]["id"], new["madeBy"]["id"], new["onBehalf"]) == (adas, organisers, True)
    assert (old["overrode"], new["overrode"]) == (["CANCEL_CUTOFF"], ["SLOT_STARTED"])
    assert old["history"][-1]["by"]["id"] == new["history"][-1]["by"]["id"] == organisers
    assert await ada.seen(old["id"]) == old
    assert await organiser.history(slot_id) == [old]


async def test_an_organiser_cancels_for_somebody_and_is_recorded(three: Three) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot()
    booking = (await ada.wish(slot_id))["booking"]
    cancelled = (await organiser.give_back(booking["id"]))["booking"]
    assert cancelled["onBehalf"] is False
    assert [entry["by"]["id"] for entry in cancelled["history"]] == [
        await ada.id(),
        await organiser.id(),
    ]
    assert await organiser.history(slot_id) == [cancelled]


async def test_a_hold_given_in_a_slot_that_began_is_confirmed_while_it_lasts(three: Three) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot(startTime=in_hours(-1), holdMinutes=5)
    hold = await organiser.hold(slot_id, userId=await ada.id())
    assert hold["overrode"] == ["SLOT_STARTED"]
    confirmed = (await ada.confirm(hold["id"]))["booking"]
    assert (confirmed["status"], confirmed["overrode"]) == ("CONFIRMED", [])


async def test_an_organiser_books_several_for_several_with_every_override_named(
    three: Three,
) -> None:
    ada, ben, organiser = three
    begun, coming = await organiser.slot(startTime=in_hours(-1)), await organiser.slot()
    claims = [
        {"slotId": begun, "userId": await ada.id()},
        {"slotId": coming, "userId": await ben.id()},
    ]
    outcome = await organiser.book_all(*claims)
    assert [booking["overrode"] for booking in outcome["bookings"]] == [["SLOT_STARTED"], []]
    assert {booking["madeBy"]["id"] for booking in outcome["bookings"]} == {await organiser.id()}


async def test_the_record_tells_its_owner_who_did_what(three: Three) -> None:
    ada, ben, organiser = three
    slot_ids = [await organiser.slot() for _ in range(2)]
    hold = await ada.hold(slot_ids[0])
    await organiser.confirm(hold["id"])
    moved = (await organiser.move(hold["id"], slot_ids[1]))["booking"]
    await ada.give_back(moved["id"])
    adas, organisers = await ada.id(), await organiser.id()
    told = [
        (entry["what"], entry["by"]["id"])
        for booking_id in (hold["id"], moved["id"])
        for entry in (await ada.seen(booking_id))["history"]
    ]
    assert told == [
        ("HELD", adas),
        ("CONFIRMED", organisers),
        ("MOVED", organisers),
        ("MOVED", organisers),
        ("CANCELLED", adas),
    ]
    assert await ben.seen(hold["id"]) is None
