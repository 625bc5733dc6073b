"""Idempotency keys: one effect and one outcome per key, for booking, moving and cancelling."""

import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tests.support.apps.deployment import assert_slot_consistent, slot_document
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import (
    BOOK_SEVERAL,
    BOOK_WITH_OPTIONS,
    MOVE_BOOKING,
    BookingClient,
    expire_holds,
)
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Three
from tests.support.transport.simultaneous_requests import send_simultaneously

BOOKED_BY = """mutation($booking: ID!, $key: String) {
  cancelBooking(bookingId: $booking, idempotencyKey: $key) {
    ... on BookingCancelled { slot { remaining bookedBy { id } myBooking { id } waitlistLength } }
  }
}"""


@pytest.fixture
def key() -> str:
    """Return an unused key."""
    return secrets.token_urlsafe(16)


def there(user: BookingClient, apps: Pair) -> BookingClient:
    """Return the same user at the other process."""
    (url,) = {app.url for app in apps} - {user.url}
    return BookingClient(user.http, url, user.token)


async def test_20_concurrent_requests_of_one_key_make_one_booking_and_one_response(
    two_apps: Pair, clients: Three, key: str
) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=30)
    variables = {"input": {"slotId": slot_id, "idempotencyKey": key}}
    shots = [
        (two_apps[i % 2].url, ada.token or "", BOOK_WITH_OPTIONS, variables) for i in range(20)
    ]
    outcomes = {json.dumps(outcome) for outcome in await send_simultaneously(shots)}
    assert len(outcomes) == 1
    assert json.loads(outcomes.pop())["__typename"] == "Booked"
    assert_slot_consistent(slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id), 1)


async def test_20_concurrent_requests_for_several_places_make_one_booking_each(
    two_apps: Pair, clients: Three, key: str
) -> None:
    ada, _, organizer = clients
    slot_ids = [await organizer.add_slot(capacity=30) for _ in range(3)]
    claims = [{"slotId": slot_id} for slot_id in slot_ids]
    variables = {"input": {"claims": claims, "idempotencyKey": key, "hold": True, "waitMs": 20_000}}
    shots = [(two_apps[i % 2].url, ada.token or "", BOOK_SEVERAL, variables) for i in range(20)]
    outcomes = {json.dumps(outcome) for outcome in await send_simultaneously(shots)}
    assert len(outcomes) == 1
    assert json.loads(outcomes.pop())["__typename"] == "AllBooked"
    assert [(await ada.fetch_slot(slot_id))["remaining"] for slot_id in slot_ids] == [29] * 3


async def test_two_different_requests_with_one_key_at_once_have_one_effect(
    two_apps: Pair, clients: Three
) -> None:
    ada, _, organizer = clients
    for _ in range(5):
        key, slot_ids = secrets.token_hex(8), [await organizer.add_slot() for _ in range(2)]
        shots = [
            (
                app.url,
                ada.token or "",
                BOOK_WITH_OPTIONS,
                {"input": {"slotId": slot, "idempotencyKey": key}},
            )
            for app, slot in zip(two_apps, slot_ids, strict=True)
        ]
        counts = Counter(outcome["__typename"] for outcome in await send_simultaneously(shots))
        assert counts == {"Booked": 1, "KeyReused": 1}
        assert sum([(await ada.fetch_slot(slot_id))["remaining"] for slot_id in slot_ids]) == 1


async def test_a_replayed_response_is_unchanged_after_the_booking_changed(
    two_apps: Pair, clients: Three, key: str
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    first = await ada.book_slot(slot_id, idempotencyKey=key)
    await ben.book_slot(slot_id)
    await organizer.update_slot(slot_id, capacity=9)
    await ada.cancel_booking(first["booking"]["id"])
    for user in (ada, there(ada, two_apps)):
        assert json.dumps(await user.book_slot(slot_id, idempotencyKey=key)) == json.dumps(first)
    assert (await ada.fetch_slot(slot_id))["myBooking"] is None
    assert (await ada.book_slot(slot_id))["booking"]["id"] != first["booking"]["id"]


Operation = Callable[[BookingClient, BookingClient, Json, str], Awaitable[Json]]
ON_A_BOOKING: dict[str, Operation] = {
    "confirm": lambda client, _, hold, key: client.confirm(hold["id"], key=key),
    "extend": lambda client, _, hold, key: client.extend(hold["id"], key=key),
    "cancel": lambda client, _, hold, key: client.cancel_booking(hold["id"], key=key),
}


@pytest.mark.parametrize("name", ON_A_BOOKING)
async def test_a_booking_action_with_a_key_happens_once_and_replays_its_outcome(
    two_apps: Pair, clients: Three, key: str, name: str
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=3, holdMinutes=1)
    hold, other = await ada.hold(slot_id), await ada.hold(await organizer.add_slot())
    await organizer.update_slot(slot_id, holdMinutes=10)
    operation = ON_A_BOOKING[name]
    first = await operation(ada, ben, hold, key)
    assert "code" not in first
    version = (await ada.fetch_slot(slot_id))["version"]
    await ben.book_slot(slot_id)
    assert json.dumps(await operation(there(ada, two_apps), ben, hold, key)) == json.dumps(first)
    assert (await ada.fetch_slot(slot_id))["version"] == version + 1
    reused = await operation(ada, ben, other, key)
    assert (reused["__typename"], reused["code"]) == ("KeyReused", "KEY_REUSED")
    assert await ada.fetch_booking(other["id"]) == other


async def test_a_move_with_a_key_happens_once_and_replays_its_outcome(
    two_apps: Pair, clients: Three, key: str
) -> None:
    ada, ben, organizer = clients
    here, to, elsewhere = [await organizer.add_slot(capacity=3) for _ in range(3)]
    booking = (await ada.book_slot(here))["booking"]
    shots = [
        (
            two_apps[i % 2].url,
            ada.token or "",
            MOVE_BOOKING,
            {"input": {"bookingId": booking["id"], "slotId": to, "idempotencyKey": key}},
        )
        for i in range(10)
    ]
    outcomes = {json.dumps(outcome) for outcome in await send_simultaneously(shots)}
    assert len(outcomes) == 1
    first = json.loads(outcomes.pop())
    assert first["__typename"] == "BookingMoved"
    await ben.book_slot(to)
    assert await ada.move(booking["id"], to, idempotencyKey=key) == first
    assert (await ada.move(booking["id"], elsewhere, idempotencyKey=key))["code"] == "KEY_REUSED"
    left = [(await ada.fetch_slot(slot_id))["remaining"] for slot_id in (here, to, elsewhere)]
    assert left == [3, 1, 3]


async def test_a_key_that_was_used_to_book_is_rejected_for_other_requests(
    two_apps: Pair, clients: Three, key: str
) -> None:
    ada, ben, organizer = clients
    await ada.create_team_with(ben)
    slot_id, other_id = await organizer.add_slot(capacity=3), await organizer.add_slot(capacity=3)
    booking = (await ada.book_slot(slot_id, idempotencyKey=key))["booking"]
    for call in (
        ada.book_slot(other_id, idempotencyKey=key),
        ada.book_slot(slot_id, idempotencyKey=key, hold=True),
        ada.book_slot(slot_id, idempotencyKey=key, userId=await ben.fetch_user_id()),
        ada.book_all({"slotId": slot_id}, idempotencyKey=key),
        ada.confirm(booking["id"], key=key),
        ada.extend(booking["id"], key=key),
        ada.cancel_booking(booking["id"], key=key),
        ada.move(booking["id"], other_id, idempotencyKey=key),
    ):
        assert (await call)["code"] == "KEY_REUSED"
    assert await ada.fetch_booking(booking["id"]) == booking
    seen = [(await ada.fetch_slot(each))["remaining"] for each in (slot_id, other_id)]
    assert seen == [2, 3]


async def test_other_claims_with_a_used_key_are_key_reused(clients: Three, key: str) -> None:
    ada, ben, organizer = clients
    await ada.create_team_with(ben)
    one, two = [{"slotId": await organizer.add_slot(capacity=3)} for _ in range(2)]
    first = await ada.book_all(one, two, idempotencyKey=key)
    assert await ada.book_all(one, two, idempotencyKey=key, waitMs=50) == first
    for claims in ([one], [two, one], [one, {**two, "userId": await ben.fetch_user_id()}]):
        assert (await ada.book_all(*claims, idempotencyKey=key))["code"] == "KEY_REUSED"
    assert (await ada.book_all(one, two, idempotencyKey=key, hold=True))["code"] == "KEY_REUSED"


async def test_the_wait_limit_and_an_explicit_own_user_id_do_not_change_the_request(
    clients: Three, key: str
) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=3)
    first = await ada.book_slot(slot_id, idempotencyKey=key)
    assert await ada.book_slot(slot_id, idempotencyKey=key, waitMs=20_000) == first
    assert (
        await ada.book_slot(slot_id, idempotencyKey=key, userId=await ada.fetch_user_id()) == first
    )
    recorded = await ada.cancel_booking(first["booking"]["id"], key=f"{key}!", wait=0)
    assert await ada.cancel_booking(first["booking"]["id"], key=f"{key}!", wait=9) == recorded


async def test_equal_keys_of_two_users_are_independent(clients: Three, key: str) -> None:
    ada, ben, organizer = clients
    slot_id, other_id = await organizer.add_slot(capacity=3), await organizer.add_slot(capacity=3)
    adas = await ada.book_slot(slot_id, idempotencyKey=key)
    bens = await ben.book_slot(other_id, idempotencyKey=key)
    assert (adas["__typename"], bens["__typename"]) == ("Booked", "Booked")
    organizers = await organizer.book_slot(
        slot_id, idempotencyKey=key, userId=await ben.fetch_user_id()
    )
    assert organizers["__typename"] == "Booked"


async def test_a_refusal_changes_nothing_and_is_not_recorded(
    two_apps: Pair, clients: Three, key: str
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ben.hold(slot_id)
    assert (await ada.book_slot(slot_id, idempotencyKey=key))["code"] == "SLOT_FULL"
    assert (await ada.book_all({"slotId": slot_id}, idempotencyKey=key))["code"] == (
        "CLAIMS_REFUSED"
    )
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert (await ben.confirm(hold["id"], key=key))["code"] == "HOLD_EXPIRED"
    assert (await ada.book_slot(slot_id, idempotencyKey=key))["__typename"] == "Booked"


async def test_an_organizers_replay_survives_a_promotion(clients: Three, key: str) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    booking = (await ada.book_slot(slot_id))["booking"]
    await ben.join(slot_id)
    first = await organizer.execute(BOOKED_BY, booking=booking["id"], key=key)
    assert first["slot"]["bookedBy"]["id"] == await ben.fetch_user_id()
    assert await organizer.execute(BOOKED_BY, booking=booking["id"], key=key) == first


async def test_an_outcome_that_needed_no_write_is_recorded_too(clients: Three, key: str) -> None:
    ada, _, organizer = clients
    gone, other = [await ada.hold(await organizer.add_slot()) for _ in range(2)]
    await ada.cancel_booking(gone["id"])
    assert (await ada.cancel_booking(gone["id"], key=key))["__typename"] == "BookingCancelled"
    assert (await ada.cancel_booking(other["id"], key=key))["code"] == "KEY_REUSED"
    assert (await ada.fetch_booking(other["id"]))["status"] == "HELD"
