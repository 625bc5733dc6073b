"""Processes of two versions share a database: nothing is dropped, and nothing is overbooked."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.document_parts import SCHEMA_VERSIONS
from tests.support.apps.deployment import Deployment, app_variant, object_id, open_deployment
from tests.support.apps.processes import AppProcess, Pair, app_environment
from tests.support.apps.versions.next_version import NEW_SLOT, VOUCHED
from tests.support.clients.booking_client import BOOK_WITH_OPTIONS
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json

CAPACITY = 8
LISTS = """{
  slots(first: 50) { nodes { id kind status remaining myBooking { status } } }
  myBookings(first: 50) { nodes { id status overriddenLimits history { action after } } }
  myEndedBookings(first: 50) { nodes { id status history { action after } } }
}"""
AUDIT_LOG = """query($filter: AuditLogFilter!) {
  auditLog(filter: $filter, first: 50) {
    nodes { action before after overriddenLimits booking: bookingId }
  }
}"""


@pytest.fixture(scope="module")
def pair(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Yield a process of this version and one of the next version, on one database."""
    environment = app_environment(servers, "two_versions")
    directory = tmp_path_factory.mktemp("two_versions")
    with (
        app_variant(environment, directory / "current") as current,
        app_variant(environment, directory / "next", without_guards="next-version") as newer,
    ):
        yield current, newer


@pytest.fixture
async def deployment(pair: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open the deployment of both processes, with new users."""
    async with open_deployment(pair[0].environment, log_dir, member_count=24) as opened:
        yield opened


@pytest.fixture
def current(pair: Pair) -> AppProcess:
    """Return the process of this version."""
    return pair[0]


@pytest.fixture
def newer(pair: Pair) -> AppProcess:
    """Return the process of the next version."""
    return pair[1]


def stored(deployment: Deployment, collection: str, global_id: str) -> Json:
    """Return a document of a collection."""
    found = deployment.mongo.get_default_database()[collection].find_one(object_id(global_id))
    assert found is not None, (collection, global_id)
    return found


def live_booking(deployment: Deployment, slot_id: str, booking_id: str) -> Json:
    """Return a booking as its slot contains it."""
    bookings = deployment.slot_document(slot_id)["bookings"]
    found: Json = next(each for each in bookings if each["id"] == object_id(booking_id))
    return found


async def lists_of(deployment: Deployment, app: AppProcess, number: int) -> Json:
    """Return what a user lists at a process."""
    response = await deployment.client(app, number).send(LISTS)
    assert "errors" not in response, response
    lists: Json = response["data"]
    return lists


async def check_in(deployment: Deployment, newer: AppProcess, number: int, slot_id: str) -> str:
    """Let a user have a booking with a status of the next version. Return its id."""
    client = deployment.client(newer, number)
    held = await client.hold(slot_id)
    assert (await client.confirm(held["id"]))["__typename"] == "BookingConfirmed"
    return str(held["id"])


async def test_an_older_process_lists_what_a_newer_one_stored(
    deployment: Deployment, current: AppProcess, newer: AppProcess
) -> None:
    slot_id = await deployment.add_slot(newer, capacity=2)
    booking_id = await check_in(deployment, newer, 0, slot_id)
    lists = await lists_of(deployment, current, 0)
    shown = next(slot for slot in lists["slots"]["nodes"] if slot["id"] == slot_id)
    assert (shown["kind"], shown["status"], shown["remaining"]) == ("OTHER", "PUBLISHED", 1)
    assert shown["myBooking"] == {"status": "CONFIRMED"}
    (booking,) = lists["myBookings"]["nodes"]
    assert (booking["status"], booking["overriddenLimits"]) == ("CONFIRMED", ["OTHER"])
    assert [change["action"] for change in booking["history"]] == ["HELD", "OTHER"]
    organizer = deployment.organizer(current)
    for actions in (None, ["OTHER"]):
        filter_ = {"slotId": slot_id, **({"actions": actions} if actions else {})}
        log = (await organizer.execute(AUDIT_LOG, filter=filter_))["nodes"]
        others = [each["booking"] for each in log if each["action"] == "OTHER"]
        assert others == [booking_id, None]  # the note of the new slot is the older one
    for app in (current, newer):  # what ended at one process is listed by both
        await deployment.client(current, 0).cancel_booking(booking_id)
        ended = (await lists_of(deployment, app, 0))["myEndedBookings"]["nodes"]
        assert [change["after"] for change in ended[0]["history"]][-1] == "CANCELLED"


async def test_an_older_process_drops_nothing_of_what_it_changes_moves_and_ends(
    deployment: Deployment, current: AppProcess, newer: AppProcess
) -> None:
    slot_id = await deployment.add_slot(newer, capacity=3)
    other_id = await deployment.add_slot(current, capacity=3)
    vouched = await check_in(deployment, newer, 0, slot_id)
    plain = (await deployment.client(newer, 1).book_slot(slot_id))["booking"]["id"]
    held = (await deployment.client(newer, 2).hold(slot_id))["id"]
    for number in (3, 4):
        await deployment.client(newer, number).join(slot_id)
    older = [deployment.client(current, number) for number in range(5)]

    assert (await older[2].confirm(held))["__typename"] == "BookingConfirmed"
    changed = live_booking(deployment, slot_id, held)
    assert (changed["seat"], changed["history"][0]["device"]) == (7, "kiosk")
    assert (await older[0].move(vouched, other_id))["__typename"] == "BookingMoved"
    moved = stored(deployment, "ended_bookings", vouched)
    assert (moved["seat"], moved["history"][1].items() >= VOUCHED.items()) == (7, True)
    assert [entry["action"] for entry in moved["history"]] == ["held", "vouched", "moved"]
    assert (await older[1].cancel_booking(plain))["__typename"] == "BookingCancelled"
    assert stored(deployment, "ended_bookings", plain)["seat"] == 7
    for number in (3, 4):  # they waited for the places that are free now
        assert (await older[number].fetch_slot(slot_id))["myBooking"] is not None
    slot = deployment.slot_document(slot_id)
    assert slot.items() >= NEW_SLOT.items()
    assert len(deployment.consistent_booking_ids(slot_id)) == 3


async def test_an_older_process_drops_nothing_of_a_waitlist_entry(
    deployment: Deployment, current: AppProcess, newer: AppProcess
) -> None:
    slot_id = await deployment.add_slot(newer)
    await deployment.client(current, 0).book_slot(slot_id)
    entry = (await deployment.client(newer, 1).join(slot_id))["entry"]
    await deployment.client(current, 1).leave(slot_id)
    assert stored(deployment, "ended_waitlist_entries", entry["id"])["source"] == "phone"


async def test_users_of_both_versions_never_overbook_a_slot(
    deployment: Deployment, current: AppProcess, newer: AppProcess
) -> None:
    slot_id = await deployment.add_slot(newer, capacity=CAPACITY)
    first = await check_in(deployment, newer, 0, slot_id)
    await check_in(deployment, newer, 1, slot_id)
    outcomes = await asyncio.gather(
        *(
            deployment.client((current, newer)[number % 2], number).book_slot(slot_id, waitMs=9000)
            for number in range(2, 24)
        )
    )
    counts = Counter(outcome["__typename"] for outcome in outcomes)
    assert counts == {"Booked": CAPACITY - 2, "SlotFull": 24 - CAPACITY}
    # A place that one version frees is free for the other.
    await deployment.client(current, 0).cancel_booking(first)
    late = next(n for n, each in enumerate(outcomes, 2) if each["__typename"] == "SlotFull")
    assert (await deployment.client(newer, late).book_slot(slot_id))["__typename"] == "Booked"
    assert len(deployment.consistent_booking_ids(slot_id)) == CAPACITY
    database = deployment.mongo.get_default_database()
    assert "seat" in database["slots"].index_information()


async def test_each_new_document_carries_the_version_of_its_shape(
    deployment: Deployment, current: AppProcess
) -> None:
    organizer, booker, waiter = deployment.organizer(current), *deployment.clients(current, 2)
    slot_id = await deployment.add_slot(current)
    booked = await booker.book_slot(slot_id)
    await waiter.join(slot_id)
    await waiter.leave(slot_id)
    await booker.cancel_booking(booked["booking"]["id"])
    await create_campaign(organizer)
    await booker.create_team_with()
    database = deployment.mongo.get_default_database()
    for name, version in SCHEMA_VERSIONS.items():
        assert (count := database[name].count_documents({}))
        assert database[name].count_documents({"schemaVersion": version}) == count, name


async def test_a_slot_in_a_newer_shape_is_listed_and_never_changed(
    deployment: Deployment, current: AppProcess
) -> None:
    slot_id, usual_id = [await deployment.add_slot(current) for _ in range(2)]
    slots = deployment.mongo.get_default_database()["slots"]
    slots.update_one({"_id": object_id(slot_id)}, {"$set": {"schemaVersion": 2}})
    before = deployment.slot_document(slot_id)
    client = deployment.client(current, 0)
    assert await client.error_code(BOOK_WITH_OPTIONS, input={"slotId": slot_id}) == "INTERNAL"
    assert deployment.slot_document(slot_id) == before
    assert "too old" in current.log
    lists = await lists_of(deployment, current, 0)
    assert slot_id in {slot["id"] for slot in lists["slots"]["nodes"]}
    assert (await client.book_slot(usual_id))["__typename"] == "Booked"


@pytest.mark.parametrize("guard", ["unknown-fields", "unknown-values"])
async def test_control_without_its_guard_an_older_process_drops_or_breaks(
    deployment: Deployment, newer: AppProcess, guard: str
) -> None:
    careless = deployment.app(guard)
    slot_id = await deployment.add_slot(newer)
    booking_id = await check_in(deployment, newer, 0, slot_id)
    response: Any = await deployment.client(careless, 0).send(LISTS)
    if guard == "unknown-values":
        assert response["errors"][0]["extensions"]["code"] == "INTERNAL"
        return
    await deployment.client(careless, 0).cancel_booking(booking_id)
    assert "seat" not in stored(deployment, "ended_bookings", booking_id)
