"""Every operation against conflicting operations at the same instant, through two processes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import (
    BOOK_SEVERAL,
    BOOK_WITH_OPTIONS,
    CANCEL_WITH_OPTIONS,
    CONFIRM_BOOKING,
    EXTEND_HOLD,
    JOIN_WAITLIST,
    LEAVE_WAITLIST,
    MOVE_BOOKING,
    expire_holds,
)
from tests.support.clients.client import Json
from tests.support.transport.simultaneous_requests import send_simultaneously

Request = tuple[int, str, dict[str, Any]]  # the client's number, the document and its variables

LONG_WAIT = {"waitMs": 20_000}
EDIT = """mutation($slot: ID!, $to: Int!) {
  updateSlot(input: {slotId: $slot, capacity: $to}) { __typename }
}"""
CANCEL_SLOT = "mutation($slot: ID!) { cancelSlot(slotId: $slot) { __typename } }"
ORGANIZER = -1
ROUNDS = 6


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment with two processes."""
    async with open_deployment(two_apps[0].environment, log_dir, member_count=52) as deployment:
        yield deployment


async def at_once(deployment: Deployment, apps: Pair, requests: Sequence[Request]) -> list[Json]:
    """Run operations at the same instant, alternating between both processes."""
    tokens = [*deployment.user_tokens.members, deployment.user_tokens.organizer]
    return await send_simultaneously(
        [
            (apps[n % 2].url, tokens[client], document, variables)
            for n, (client, document, variables) in enumerate(requests)
        ]
    )


def booking(client: int, slot_id: str, **more: Any) -> Request:
    """Return a client that books."""
    return client, BOOK_WITH_OPTIONS, {"input": {"slotId": slot_id, **LONG_WAIT, **more}}


def moving(client: int, booking_id: str, to: str) -> Request:
    """Return a client that moves bookings."""
    return client, MOVE_BOOKING, {"input": {"bookingId": booking_id, "slotId": to, **LONG_WAIT}}


def names(outcomes: Sequence[Json]) -> list[str]:
    """Return the types of the outcomes."""
    return [outcome["__typename"] for outcome in outcomes]


async def booked(
    deployment: Deployment, app: AppProcess, client: int, **fields: Any
) -> tuple[str, str]:
    """Create a slot with one place and book it for a user."""
    slot_id = await deployment.add_slot(app, **fields)
    return slot_id, (await deployment.client(app, client).book_slot(slot_id))["booking"]["id"]


async def held(deployment: Deployment, app: AppProcess, client: int) -> tuple[str, str]:
    """Create a slot with one place and a hold in it that is worth extending."""
    slot_id = await deployment.add_slot(app, holdMinutes=1)
    hold = await deployment.client(app, client).hold(slot_id)
    await deployment.organizer(app).update_slot(slot_id, holdMinutes=5)
    return slot_id, hold["id"]


async def test_an_expiring_hold_that_is_confirmed_and_booked_has_one_owner(
    deployment: Deployment, two_apps: Pair
) -> None:
    holds = [await held(deployment, two_apps[0], 0) for _ in range(ROUNDS)]
    requests: list[Request] = []
    for slot_id, hold_id in holds:
        requests += [
            (0, CONFIRM_BOOKING, {"booking": hold_id}),
            booking(1, slot_id),
            booking(2, slot_id),
        ]
    outcomes, _ = await asyncio.gather(
        at_once(deployment, two_apps, requests),
        asyncio.to_thread(expire_holds, deployment.mongo_url, *(slot_id for slot_id, _ in holds)),
    )
    for n, (slot_id, hold_id) in enumerate(holds):
        adas, *others = outcomes[3 * n : 3 * n + 3]
        assert adas["__typename"] in ("BookingConfirmed", "HoldExpired")
        winners = [o["booking"]["id"][-24:] for o in others if o["__typename"] == "Booked"]
        if adas["__typename"] == "BookingConfirmed":
            winners.append(hold_id[-24:])
        assert len(winners) <= 1
        assert deployment.consistent_booking_ids(slot_id) == set(winners)


async def test_a_hold_confirmed_and_cancelled_at_once_ends_cancelled(
    deployment: Deployment, two_apps: Pair
) -> None:
    holds = [await held(deployment, two_apps[0], 0) for _ in range(ROUNDS)]
    requests = [
        (0, document, {"booking": hold})
        for _, hold in holds
        for document in (CONFIRM_BOOKING, CANCEL_WITH_OPTIONS)
    ]
    received = names(await at_once(deployment, two_apps, requests))
    assert set(received[0::2]) <= {"BookingConfirmed", "BookingNotFound"}
    assert set(received[1::2]) == {"BookingCancelled"}
    assert all(deployment.consistent_booking_ids(slot_id) == set() for slot_id, _ in holds)


async def test_a_hold_extended_at_its_expiry_is_either_extended_or_expired(
    deployment: Deployment, two_apps: Pair
) -> None:
    holds = [await held(deployment, two_apps[0], 0) for _ in range(ROUNDS)]
    requests = [(0, EXTEND_HOLD, {"booking": hold}) for _, hold in holds]
    outcomes, _ = await asyncio.gather(
        at_once(deployment, two_apps, requests),
        asyncio.to_thread(expire_holds, deployment.mongo_url, *(slot_id for slot_id, _ in holds)),
    )
    for (slot_id, hold), outcome in zip(holds, outcomes, strict=True):
        live = [
            b for b in deployment.slot_document(slot_id)["bookings"] if str(b["id"]) == hold[-24:]
        ]
        (record,) = live or [deployment.ended_booking(hold) or {}]
        actions = [entry["action"] for entry in record["history"]]
        assert ("extended" in actions) == (outcome["__typename"] == "HoldExtended"), outcome


async def test_of_two_moves_to_the_last_place_one_succeeds_and_the_other_changes_nothing(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        last = await deployment.add_slot(two_apps[0])
        here = [await booked(deployment, two_apps[0], client) for client in (0, 1)]
        requests = [moving(client, booking_id, last) for client, (_, booking_id) in enumerate(here)]
        received = names(await at_once(deployment, two_apps, requests))
        assert sorted(received) == ["BookingMoved", "SlotFull"]
        left, stays = received.index("BookingMoved"), received.index("SlotFull")
        assert deployment.consistent_booking_ids(here[left][0]) == set()
        assert deployment.consistent_booking_ids(here[stays][0]) == {here[stays][1][-24:]}
        assert len(deployment.consistent_booking_ids(last)) == 1


async def test_two_users_who_move_to_each_others_full_slots_stay_booked(
    deployment: Deployment, two_apps: Pair
) -> None:
    pairs = [
        [await booked(deployment, two_apps[0], client) for client in (0, 1)] for _ in range(ROUNDS)
    ]
    requests: list[Request] = []
    for (here, adas), (there, bens) in pairs:
        requests += [moving(0, adas, there), moving(1, bens, here)]
    assert set(names(await at_once(deployment, two_apps, requests))) == {"SlotFull"}
    for slot_id, booking_id in (one for pair in pairs for one in pair):
        assert deployment.consistent_booking_ids(slot_id) == {booking_id[-24:]}


async def test_a_place_cancelled_in_a_crowd_goes_to_the_first_waiting_user(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        slot_id, adas = await booked(deployment, two_apps[0], 0)
        entry = (await deployment.client(two_apps[0], 1).join(slot_id))["entry"]
        walk_ins = [booking(client, slot_id) for client in range(2, 8)]
        joins: list[Request] = [
            (client, JOIN_WAITLIST, {"slot": slot_id}) for client in range(8, 12)
        ]
        give_back: Request = (0, CANCEL_WITH_OPTIONS, {"booking": adas})
        received = names(await at_once(deployment, two_apps, [*walk_ins, give_back, *joins]))
        expected = {"SlotFull": 6, "BookingCancelled": 1, "WaitlistJoined": 4}
        assert Counter(received) == expected
        assert deployment.consistent_booking_ids(slot_id) == {entry["id"][-24:]}


async def test_of_50_concurrent_joins_exactly_the_waitlist_capacity_succeeds(
    deployment: Deployment, two_apps: Pair
) -> None:
    slot_id, _ = await booked(deployment, two_apps[0], 0, waitlistCapacity=30)
    joins: list[Request] = [(client, JOIN_WAITLIST, {"slot": slot_id}) for client in range(1, 51)]
    outcomes = await at_once(deployment, two_apps, joins)
    assert Counter(names(outcomes)) == {"WaitlistJoined": 30, "WaitlistFull": 20}
    received = {o["position"]: o["entry"]["id"] for o in outcomes if "position" in o}
    line = [str(attempt["id"]) for attempt in deployment.slot_document(slot_id)["waitlist"]]
    assert [received[place][-24:] for place in range(1, 31)] == line


async def test_leaving_while_a_place_becomes_free_gives_it_to_exactly_one_user(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        slot_id, adas = await booked(deployment, two_apps[0], 0)
        rounds = [
            (await deployment.client(two_apps[0], client).join(slot_id))["entry"]
            for client in (1, 2)
        ]
        requests: list[Request] = [
            (1, LEAVE_WAITLIST, {"slot": slot_id}),
            (0, CANCEL_WITH_OPTIONS, {"booking": adas}),
        ]
        left, gave = names(await at_once(deployment, two_apps, requests))
        assert gave == "BookingCancelled"
        next_one = rounds[1] if left == "WaitlistLeft" else rounds[0]
        assert deployment.consistent_booking_ids(slot_id) == {next_one["id"][-24:]}


async def test_a_user_booked_while_the_slot_is_cancelled_is_on_its_roster(
    deployment: Deployment, two_apps: Pair
) -> None:
    slot_id = await deployment.add_slot(two_apps[0], capacity=30)
    requests = [booking(client, slot_id) for client in range(30)]
    requests.insert(15, (ORGANIZER, CANCEL_SLOT, {"slot": slot_id}))
    outcomes = await at_once(deployment, two_apps, requests)
    assert set(names(outcomes)) <= {"Booked", "SlotCancelled", "Slot"}
    received = {o["booking"]["id"][-24:] for o in outcomes if o["__typename"] == "Booked"}
    assert deployment.consistent_booking_ids(slot_id) == received
    assert deployment.slot_document(slot_id)["status"] == "cancelled"
    assert names(await at_once(deployment, two_apps, [booking(40, slot_id)])) == ["SlotCancelled"]


async def test_a_capacity_reduced_in_a_rush_never_falls_below_the_bookings(
    deployment: Deployment, two_apps: Pair
) -> None:
    for size in (1, 5, 15):
        slot_id = await deployment.add_slot(two_apps[0], capacity=20)
        requests = [booking(client, slot_id) for client in range(30)]
        requests.insert(size, (ORGANIZER, EDIT, {"slot": slot_id, "to": size}))
        outcomes = await at_once(deployment, two_apps, requests)
        received = {o["booking"]["id"][-24:] for o in outcomes if o["__typename"] == "Booked"}
        assert deployment.consistent_booking_ids(slot_id) == received
        assert len(received) == (size if names(outcomes)[size] == "Slot" else 20)


async def keyed(
    deployment: Deployment, app: AppProcess, name: str
) -> tuple[str, dict[str, Any], list[str]]:
    """Return an operation with a key: its document, its variables and its slots."""
    other = await deployment.add_slot(app)
    slot_id, hold = await held(deployment, app, 0) if name != "book" else (other, "")
    given: Json = {"booking": hold, "key": name}
    claims = [{"slotId": slot} for slot in (await deployment.add_slot(app), other)]
    options = {"idempotencyKey": name, **LONG_WAIT}
    return {
        "book": (BOOK_WITH_OPTIONS, {"input": {"slotId": other, **options}}, [other]),
        "all": (
            BOOK_SEVERAL,
            {"input": {"claims": claims, **options}},
            [c["slotId"] for c in claims],
        ),
        "confirm": (CONFIRM_BOOKING, given, [slot_id]),
        "extend": (EXTEND_HOLD, given, [slot_id]),
        "cancel": (CANCEL_WITH_OPTIONS, given, [slot_id]),
        "move": (
            MOVE_BOOKING,
            {"input": {"bookingId": hold, "slotId": other, **options}},
            [slot_id, other],
        ),
    }[name]


@pytest.mark.parametrize("name", ["book", "all", "confirm", "extend", "cancel", "move"])
async def test_concurrent_requests_of_one_key_have_one_effect_and_one_response(
    deployment: Deployment, two_apps: Pair, name: str
) -> None:
    document, variables, slot_ids = await keyed(deployment, two_apps[0], name)
    before = [deployment.slot_document(slot_id)["version"] for slot_id in slot_ids]
    first, *others = await at_once(deployment, two_apps, [(0, document, variables)] * 12)
    assert all(other == first for other in others)
    assert first["__typename"] not in ("Locked", "KeyReused")
    assert "code" not in first
    after = [deployment.slot_document(slot_id)["version"] for slot_id in slot_ids]
    assert after == [version + 1 for version in before]
