"""Guardians book, move and cancel for those for whom they act, by the rules for these."""

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import (
    BOOKING_FRAGMENT,
    BookingClient,
    create_booking_clients,
)
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, times_in
from tests.support.clients.series import create_series
from tests.support.queue.documents import REQUEST_BOOKING
from tests.support.scenarios.families import create_child, set_guardians

BOOK = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename ... on Refusal {{ code message }}
  ... on Booked {{ booking {{ ...B madeAs }} slot {{ remaining myBooking {{ id }} }} }}
  ... on LimitReached {{ otherBookingId otherBooking {{ id }} }}
}} }} {BOOKING_FRAGMENT}"""
SERIES = f"""mutation($input: BookSeriesInput!) {{ bookSeries(input: $input) {{
  __typename ... on Refusal {{ code }}
  ... on SeriesBooked {{ bookings {{ ...B madeAs }} refusals {{ claim }} }}
}} }} {BOOKING_FRAGMENT}"""
REQUEST = """mutation($input: BookSlotInput!) { requestBooking(input: $input) {
  __typename ... on Refusal { message } } }"""
WAIT = """mutation($slot: ID!, $user: ID) { joinWaitlist(slotId: $slot, userId: $user) {
  __typename ... on Refusal { code }
  ... on WaitlistJoined {
    entry { user { id } waitlistedBy { id } } slot { myWaitlistEntry { id } }
  }
} }"""


@dataclass
class Family:
    """Two parents, who live apart, their child without an account of its own, and a stranger."""

    mother: BookingClient
    father: BookingClient
    stranger: BookingClient
    organizer: BookingClient
    ids: dict[str, str]

    async def book(self, slot_id: str, parent: BookingClient | None = None, **options: Any) -> Json:
        """Book for the child, by default as its mother, and return the result."""
        booking = {"slotId": slot_id, "userId": self.ids["child"], "waitMs": 5000, **options}
        booked: Json = await (parent or self.mother).execute(BOOK, input=booking)
        return booked

    async def remove(self, *remaining: str) -> None:
        """Leave the child only these guardians."""
        guardian_ids = [self.ids[each] for each in remaining]
        changed = await set_guardians(self.organizer, self.ids["child"], guardian_ids)
        assert changed["__typename"] == "UserUpdated"


@pytest.fixture
async def family(app: AppProcess, http: httpx.AsyncClient) -> Family:
    """Return a family."""
    (mother, father, stranger), organizer = create_booking_clients(http, 3, app)
    ids = {
        "mother": await mother.fetch_user_id(),
        "father": await father.fetch_user_id(),
        "organizer": await organizer.fetch_user_id(),
    }
    ids["child"] = (await create_child(organizer, ids["mother"], ids["father"]))["user"]["id"]
    return Family(mother, father, stranger, organizer, ids)


async def test_what_a_guardian_books_belongs_to_the_child_and_says_so(family: Family) -> None:
    slot_id = await family.organizer.add_slot(capacity=3)
    booked = await family.book(slot_id, idempotencyKey="robotics")
    booking = booked["booking"]
    assert booking["user"] == {"id": family.ids["child"]}
    assert (booking["madeAs"], booking["onBehalf"]) == ("GUARDIAN", True)
    assert booking["madeBy"] == {"id": family.ids["mother"]}
    assert [each["action"] for each in booking["history"]] == ["BOOKED"]
    assert booked["slot"] == {"remaining": 2, "myBooking": None}
    # The same key again reads the same, and the parent has a place of their own.
    assert await family.book(slot_id, idempotencyKey="robotics") == booked
    assert (await family.mother.book_slot(slot_id))["__typename"] == "Booked"
    assert (await family.book(slot_id, family.father))["code"] == "ALREADY_BOOKED"
    assert (await family.book(slot_id, family.stranger))["code"] == "NOT_TEAMMATE"


async def test_limits_count_for_the_child_also_if_the_guardian_is_an_organizer(
    family: Family,
) -> None:
    campaign_id = await create_campaign(family.organizer, maxBookings=1)
    first, second, third = [
        await family.organizer.add_slot(campaignId=campaign_id, **times_in(hours))
        for hours in (30, 40, 50)
    ]
    await family.remove("mother", "organizer")
    for parent, slot_id in ((family.mother, first), (family.organizer, third)):
        assert (await parent.book_slot(slot_id))["__typename"] == "Booked"
    booked = await family.book(second)
    assert booked["__typename"] == "Booked"
    for parent in (family.mother, family.organizer):
        assert (await family.book(first, parent))["code"] == "LIMIT_REACHED"
    moved = await family.organizer.move(booked["booking"]["id"], first)
    assert moved["code"] == "SLOT_FULL"
    # As an organizer who is no guardian, they override the limit as before.
    await family.remove("mother")
    fourth = await family.organizer.add_slot(campaignId=campaign_id, **times_in(60))
    forced = await family.book(fourth, family.organizer)
    assert forced["booking"]["overriddenLimits"] == ["MAX_BOOKINGS"]
    assert forced["booking"]["madeAs"] == "ORGANIZER"


async def test_a_refusal_of_the_queue_is_about_the_child(family: Family) -> None:
    rules = {"eligibleGroups": [["5a"]], "admission": "QUEUE_ONLY"}
    campaign_id = await create_campaign(family.organizer, **rules)
    slot_id = await family.organizer.add_slot(campaignId=campaign_id)
    for user, message in (
        (family.ids["mother"], "This slot is for groups that you are not in."),
        (family.ids["child"], "This slot is for groups that this user is not in."),
    ):
        wanted = {"slotId": slot_id, "userId": user}
        refused = await family.mother.execute(REQUEST_BOOKING, input=wanted)
        assert (refused["code"], refused["message"]) == ("NOT_ELIGIBLE", message)


async def test_each_guardian_manages_all_of_the_child(family: Family) -> None:
    first, second = [await family.organizer.add_slot(capacity=2, holdMinutes=5) for _ in range(2)]
    hold = (await family.book(first, hold=True))["booking"]
    extended = await family.father.extend(hold["id"])
    assert extended["booking"]["heldUntil"] >= hold["heldUntil"]
    assert (await family.stranger.extend(hold["id"]))["code"] == "BOOKING_NOT_FOUND"
    confirmed = await family.father.confirm(hold["id"])
    assert [each["by"]["id"] for each in confirmed["booking"]["history"]][-1] == family.ids[
        "father"
    ]
    moved = await family.father.move(hold["id"], second, idempotencyKey="other day")
    assert moved["__typename"] == "BookingMoved"
    assert await family.father.move(hold["id"], second, idempotencyKey="other day") == moved
    assert moved["booking"]["madeBy"] == {"id": family.ids["father"]}
    place = moved["booking"]["id"]
    assert (await family.stranger.move(place, first))["code"] == "BOOKING_NOT_FOUND"
    cancelled = await family.mother.cancel_booking(place, key="off")
    assert cancelled["booking"]["status"] == "CANCELLED"
    assert cancelled["booking"]["history"]
    assert await family.mother.cancel_booking(place, key="off") == cancelled
    assert (await family.mother.cancel_booking(place))["booking"] == cancelled["booking"]


async def test_what_a_teammate_moves_as_a_guardian_ends_with_the_relation(family: Family) -> None:
    first, second = [await family.organizer.add_slot() for _ in range(2)]
    child_id = await family.stranger.fetch_user_id()
    await family.mother.create_team_with(family.stranger)
    place = (await family.mother.book_slot(first, userId=child_id))["booking"]["id"]
    await set_guardians(family.organizer, child_id, [family.ids["mother"]])
    moved = (await family.mother.move(place, second))["booking"]["id"]
    await set_guardians(family.organizer, child_id, [])
    assert (await family.mother.cancel_booking(moved))["code"] == "BOOKING_NOT_FOUND"


async def test_several_places_are_for_siblings_and_the_parent_all_or_none(
    family: Family, app: AppProcess, http: httpx.AsyncClient
) -> None:
    sibling = (await create_child(family.organizer, family.ids["mother"]))["user"]["id"]
    slot_id = await family.organizer.add_slot(capacity=3)
    (other,) = create_booking_clients(http, 1, app)[0]
    claims = [{"slotId": slot_id, "userId": each} for each in (family.ids["child"], sibling)]
    refused = await family.father.book_all(*claims)
    assert [(each["claim"], each["refusal"]["code"]) for each in refused["refusals"]] == [
        (1, "NOT_TEAMMATE")
    ]
    booked = await family.mother.book_all(*claims, {"slotId": slot_id})
    made = [(each["user"]["id"], bool(each["history"])) for each in booked["bookings"]]
    assert made == [(family.ids["child"], True), (sibling, True), (family.ids["mother"], True)]
    await family.mother.cancel_booking(booked["bookings"][1]["id"])
    await other.book_slot(slot_id)
    again = await family.mother.book_all(*claims)
    assert {each["refusal"]["code"] for each in again["refusals"]} == {
        "ALREADY_BOOKED",
        "SLOT_FULL",
    }


async def test_a_series_is_booked_for_a_child(family: Family) -> None:
    series_id = (await create_series(family.organizer, "FREQ=WEEKLY;COUNT=3"))["seriesId"]
    wanted = {"seriesId": series_id, "userId": family.ids["child"]}
    booked = await family.mother.execute(SERIES, input=wanted)
    assert {(each["madeAs"], each["user"]["id"]) for each in booked["bookings"]} == {
        ("GUARDIAN", family.ids["child"])
    }
    assert len(booked["bookings"]) == 3
    refused = await family.stranger.execute(SERIES, input=wanted)
    assert refused["code"] == "NOT_TEAMMATE"


async def test_a_guardian_puts_the_child_on_a_waiting_list_and_takes_it_off(
    family: Family,
) -> None:
    slot_id = await family.organizer.add_slot(waitlistCapacity=2)
    await family.organizer.book_slot(slot_id)
    child = {"slot": slot_id, "user": family.ids["child"]}
    joined = await family.mother.execute(WAIT, **child)
    assert joined["entry"] == {
        "user": {"id": family.ids["child"]}, "waitlistedBy": {"id": family.ids["mother"]},
    }  # fmt: skip
    assert joined["slot"]["myWaitlistEntry"] is None
    for user_id in (family.ids["child"], "user_" + "0" * 24, "user_7"):
        code = await family.stranger.error_code(WAIT, slot=slot_id, user=user_id)
        assert code == "FORBIDDEN"
    left = await family.father.leave(slot_id, family.ids["child"])
    assert left["__typename"] == "WaitlistLeft"
    await family.remove("father")
    assert await family.mother.error_code(WAIT, **child) == "FORBIDDEN"
