"""Booking the slots of a series over GraphQL: results, refusals and rates."""

from typing import Any

import httpx

from slotlock.domain.booking.rules.book import MAX_SERIES_CLAIMS
from slotlock.domain.users.user import Role
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    WRITES_PER_MINUTE,
    AddressedClient,
    client_at_new_address,
)
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Three
from tests.support.clients.series import BOOK_SERIES, book_series, create_series
from tests.support.stores.users import auth_for_database, sign_in_new_user

NOWHERE = "series_" + "0" * 24


def codes(outcome: Json) -> dict[int, str]:
    """Return the code of each refused slot."""
    return {each["claim"]: each["refusal"]["code"] for each in outcome["refusals"]}


def booked_slots(outcome: Json) -> list[str]:
    """Return the slots of the new bookings."""
    assert outcome["__typename"] == "SeriesBooked", outcome
    return [booking["slot"]["id"] for booking in outcome["bookings"]]


async def new_series(organizer: BookingClient, **fields: Any) -> tuple[str, list[Json]]:
    """Create a series and return its id and its slots."""
    created = await create_series(organizer, **fields)
    return created["seriesId"], created["slots"]


async def test_a_series_is_booked_or_held_by_the_start_of_its_slots(clients: Three) -> None:
    ada, ben, organizer = clients
    series_id, slots = await new_series(organizer, capacity=2)
    outcome = await book_series(ada, series_id)
    assert (outcome["seriesId"], outcome["refusals"]) == (series_id, [])
    assert booked_slots(outcome) == [slot["id"] for slot in slots]
    assert {booking["status"] for booking in outcome["bookings"]} == {"CONFIRMED"}
    held = await book_series(ben, series_id, hold=True, mode="WHAT_IS_FREE")
    assert {booking["status"] for booking in held["bookings"]} == {"HELD"}
    assert {booking["slot"]["remaining"] for booking in held["bookings"]} == {0}


async def test_a_full_slot_refuses_the_series_or_is_left_out(clients: Three) -> None:
    ada, ben, organizer = clients
    series_id, slots = await new_series(organizer)
    await ben.book_slot(slots[1]["id"])
    refused = await book_series(ada, series_id)
    assert (refused["__typename"], codes(refused)) == ("ClaimsRefused", {1: "SLOT_FULL"})
    assert [each["slotId"] for each in refused["refusals"]] == [slots[1]["id"]]
    partly = await book_series(ada, series_id, mode="WHAT_IS_FREE")
    assert booked_slots(partly) == [slots[n]["id"] for n in (0, 2, 3)]
    assert codes(partly) == {1: "SLOT_FULL"}
    again = await book_series(ada, series_id, mode="WHAT_IS_FREE")
    assert again["__typename"] == "ClaimsRefused"
    assert codes(again) == {**dict.fromkeys((0, 2, 3), "ALREADY_BOOKED"), 1: "SLOT_FULL"}


async def test_a_hidden_series_is_refused_like_one_that_does_not_exist(clients: Three) -> None:
    ada, _, organizer = clients
    campaign_id = await create_campaign(organizer, published=False)
    hidden = [
        (await new_series(organizer, draft=True))[0],
        (await new_series(organizer, campaignId=campaign_id))[0],
    ]
    for series_id in (*hidden, NOWHERE, "nonsense"):
        assert await book_series(ada, series_id, idempotencyKey="k") == {
            "__typename": "SeriesNotFound",
            "code": "SERIES_NOT_FOUND",
            "message": "This series does not exist.",
            "seriesId": series_id,
        }
    assert (await book_series(organizer, hidden[0]))["code"] == "NOTHING_TO_BOOK"


async def test_a_series_is_booked_for_a_teammate_and_for_nobody_else(clients: Three) -> None:
    ada, ben, organizer = clients
    series_id, _ = await new_series(organizer)
    bens = await ben.fetch_user_id()
    assert (await book_series(ada, series_id, userId=bens))["code"] == "NOT_TEAMMATE"
    assert (await book_series(ada, series_id, userId="nobody"))["code"] == "USER_NOT_FOUND"
    await ada.create_team_with(ben)
    outcome = await book_series(ada, series_id, userId=bens, idempotencyKey="k")
    assert {booking["onBehalf"] for booking in outcome["bookings"]} == {True}
    assert await book_series(ada, series_id, userId=bens, idempotencyKey="k") == outcome
    assert (await book_series(ada, series_id, idempotencyKey="k"))["code"] == "KEY_REUSED"


async def test_a_series_with_too_many_slots_is_refused_with_the_limit(clients: Three) -> None:
    ada, _, organizer = clients
    count = MAX_SERIES_CLAIMS + 1
    series_id, _ = await new_series(organizer, rrule=f"FREQ=DAILY;COUNT={count}")
    refused = await book_series(ada, series_id)
    assert refused["code"] == "SERIES_TOO_LONG"
    assert (refused["slotCount"], refused["limit"]) == (count, MAX_SERIES_CLAIMS)


async def test_each_slot_of_a_series_counts_for_the_rate_of_mutations(
    rate_limited: AppProcess, http: httpx.AsyncClient, caller: AddressedClient
) -> None:
    async with auth_for_database(rate_limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        organizer = client_at_new_address(
            http, rate_limited, await sign_in_new_user(auth, Role.ORGANIZER)
        )
    rrule = f"FREQ=WEEKLY;COUNT={WRITES_PER_MINUTE - 5}"
    first, second = [(await create_series(organizer, rrule))["seriesId"] for _ in range(2)]
    key = {"idempotencyKey": "k"}
    outcome = await book_series(caller, first, **key)
    assert len(outcome["bookings"]) == WRITES_PER_MINUTE - 5
    # A repeated request books nothing, and costs as much as one mutation.
    assert await book_series(caller, first, **key) == outcome
    response = await caller.send(BOOK_SERIES, input={"seriesId": second})
    (error,) = response["errors"]
    assert error["extensions"]["code"] == "RATE_LIMITED"
    assert error["extensions"]["retryAfterMs"] > 0
    assert response["data"] is None
