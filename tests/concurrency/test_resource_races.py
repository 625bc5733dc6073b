"""Slots that change at once never share a resource, nor bring back one that is deleted."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, slot_input
from tests.support.clients.series import (
    CREATE_SERIES,
    MONDAY_TIMES,
    PUBLISH_SERIES,
    UPDATE_SERIES,
)
from tests.support.transport.simultaneous_requests import send_simultaneously

Pair = tuple[AppProcess, AppProcess]
CREATE = """mutation($input: CreateSlotInput!) { createSlot(input: $input) { __typename } }"""
RESOURCES = """mutation($names: [String!]!) {
  importResources(names: $names) { ... on ResourcesImported { existing { id name } } }
}"""
DELETE_RESOURCE = """mutation($id: ID!) {
  deleteResource(resourceId: $id) { __typename }
}"""
ROUNDS = 8
DELETION_ROUNDS = 30
PAST = {"startTime": "2024-03-18T09:00:00Z", "endTime": "2024-03-18T10:00:00Z"}


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment beside two complete processes."""
    async with open_deployment(two_apps[0].environment, log_dir, member_count=0) as deployment:
        yield deployment


def room() -> str:
    """Return the name of an unused resource."""
    return f"Room {secrets.token_hex(4)}"


def at(hour: float, **fields: Any) -> Json:
    """Return the input for a slot of one hour on the given day."""
    start, end = (f"2031-05-05T{int(h):02}:{int(h % 1 * 60):02}:00Z" for h in (hour, hour + 1))
    return {**slot_input(), "startTime": start, "endTime": end, **fields}


async def at_once(
    deployment: Deployment, apps: Sequence[AppProcess], requests: list[tuple[str, Json]]
) -> Counter[str]:
    """Count the outcomes of concurrent requests, alternating between the processes.

    The resources that the requests name are created before.
    """
    inputs = [variables.get("input", {}) for _, variables in requests]
    names = {fields.get("slot", fields).get("resource") for fields in inputs}
    await deployment.organizer(apps[0]).import_resources(*names)
    shots = [
        (apps[n % len(apps)].url, deployment.user_tokens.organizer, query, variables)
        for n, (query, variables) in enumerate(requests)
    ]
    return Counter(outcome["__typename"] for outcome in await send_simultaneously(shots))


async def resource_ids(organizer: BookingClient, names: list[str]) -> dict[str, str]:
    """Create resources and return their ids by name."""
    await organizer.import_resources(*names)
    found = (await organizer.execute(RESOURCES, names=names))["existing"]
    return {each["name"]: each["id"] for each in found}


def published(deployment: Deployment, resource: str) -> list[Json]:
    """Return the published slots of a resource, by start."""
    slots = deployment.mongo.get_default_database()["slots"]
    query = {"resource": resource, "status": "published"}
    return list(slots.find(query).sort("start", 1))


def overlaps(deployment: Deployment, resource: str) -> int:
    """Count the published slots of a resource that start before another one ends."""
    found = published(deployment, resource)
    return sum(
        one["start"] < other["end"] and other["start"] < one["end"]
        for n, one in enumerate(found)
        for other in found[n + 1 :]
    )


async def test_of_20_slots_created_at_once_for_one_room_one_is_created(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(3):
        hall = room()
        requests = [(CREATE, {"input": at(9 + n / 40, resource=hall)}) for n in range(20)]
        assert await at_once(deployment, two_apps, requests) == {"Slot": 1, "ResourceTaken": 19}
        assert len(published(deployment, hall)) == 1


async def test_slots_of_one_room_that_do_not_overlap_are_all_created_at_once(
    deployment: Deployment, two_apps: Pair
) -> None:
    hall = room()
    requests = [(CREATE, {"input": at(1 + n, resource=hall)}) for n in range(12)]
    assert await at_once(deployment, two_apps, requests) == {"Slot": 12}
    assert overlaps(deployment, hall) == 0


async def test_of_20_slots_with_one_common_resource_of_three_one_is_created(
    deployment: Deployment, two_apps: Pair
) -> None:
    common, others = room(), [room() for _ in range(20)]
    ids = await resource_ids(deployment.organizer(two_apps[0]), [common, *others])
    requests = [
        (CREATE, {"input": at(9 + n / 40, resourceIds=[ids[each], ids[common]])})
        for n, each in enumerate(others)
    ]
    assert await at_once(deployment, two_apps, requests) == {"Slot": 1, "ResourceTaken": 19}
    assert len(published(deployment, common)) == 1


async def test_of_two_conflicting_drafts_published_at_once_one_is_published(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        hall = room()
        drafts = [
            await deployment.add_slot(two_apps[0], **at(hour, resource=hall, draft=True))
            for hour in (9, 9.5)
        ]
        requests = [(PUBLISH_SERIES, {"slot": slot_id}) for slot_id in drafts]
        assert await at_once(deployment, two_apps, requests) == {"Slot": 1, "ResourceTaken": 1}
        assert len(published(deployment, hall)) == 1


async def test_of_two_slots_moved_to_one_time_at_once_one_is_moved(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        hall = room()
        slots = [
            await deployment.add_slot(two_apps[0], **at(hour, resource=hall)) for hour in (8, 12)
        ]
        times = {name: at(10)[name] for name in ("startTime", "endTime")}
        requests = [(UPDATE_SERIES, {"input": {"slotId": slot_id, **times}}) for slot_id in slots]
        assert await at_once(deployment, two_apps, requests) == {"Slot": 1, "ResourceTaken": 1}
        assert overlaps(deployment, hall) == 0


async def test_of_two_slots_moved_to_one_room_at_once_one_is_moved(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        hall = room()
        slots = [await deployment.add_slot(two_apps[0], **at(9)) for _ in range(2)]
        requests = [
            (UPDATE_SERIES, {"input": {"slotId": slot_id, "resource": hall}}) for slot_id in slots
        ]
        assert await at_once(deployment, two_apps, requests) == {"Slot": 1, "ResourceTaken": 1}
        assert len(published(deployment, hall)) == 1


async def test_two_slots_that_swap_times_at_once_never_overlap(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        hall = room()
        one, other = [
            await deployment.add_slot(two_apps[0], **at(hour, resource=hall)) for hour in (9, 10)
        ]
        requests = [
            (
                UPDATE_SERIES,
                {
                    "input": {
                        "slotId": slot_id,
                        **{k: at(hour)[k] for k in ("startTime", "endTime")},
                    }
                },
            )
            for slot_id, hour in ((one, 9.5), (other, 9.5))
        ]
        assert await at_once(deployment, two_apps, requests) == {"ResourceTaken": 2}
        assert overlaps(deployment, hall) == 0


async def test_of_two_series_that_conflict_on_one_date_one_is_created(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(ROUNDS):
        hall = room()
        slot = {"title": "Yoga", **MONDAY_TIMES, "resource": hall}
        rules = ("FREQ=WEEKLY;COUNT=5", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-1;COUNT=3")
        requests = [(CREATE_SERIES, {"input": {"slot": slot, "rrule": rule}}) for rule in rules]
        assert await at_once(deployment, two_apps, requests) == {
            "SlotSeriesCreated": 1,
            "SeriesConflicts": 1,
        }
        assert overlaps(deployment, hall) == 0


async def test_a_freed_resource_goes_to_one_of_the_concurrent_requests(
    deployment: Deployment, two_apps: Pair
) -> None:
    hall = room()
    slot_id = await deployment.add_slot(two_apps[0], **at(9, resource=hall))
    await deployment.organizer(two_apps[0]).cancel_slot(slot_id)
    requests = [(CREATE, {"input": at(9, resource=hall)}) for _ in range(6)]
    assert await at_once(deployment, two_apps, requests) == {"Slot": 1, "ResourceTaken": 5}


async def created_meanwhile(
    deployment: Deployment, app: AppProcess, off: str, other_resources: int
) -> tuple[set[str], int]:
    """Create two slots of a room at once, one of them with so many resources more.

    Return the outcomes and the number of overlaps.
    """
    hall, organizer = room(), deployment.organizer(app)
    names = [hall, *(room() for _ in range(other_resources))]
    ids = await resource_ids(organizer, names)
    slow, stage = deployment.paused_app("commit", off)
    # The common resource is the last one of the list.
    several = {"input": at(9, resourceIds=[ids[name] for name in reversed(names)])}
    late = asyncio.create_task(deployment.organizer(slow).execute(CREATE, **several))
    await asyncio.to_thread(stage.wait_until_reached)
    early = await organizer.execute(CREATE, input=at(9, resource=hall))
    stage.resume()
    return {early["__typename"], (await late)["__typename"]}, overlaps(deployment, hall)


with_other_resources = pytest.mark.parametrize("other_resources", [0, 2])


@with_other_resources
async def test_a_room_that_was_free_when_it_was_read_is_checked_again_at_the_write(
    deployment: Deployment, two_apps: Pair, other_resources: int
) -> None:
    received = await created_meanwhile(deployment, two_apps[0], "", other_resources)
    assert received == ({"Slot", "ResourceTaken"}, 0)


@with_other_resources
async def test_control_without_the_resource_version_two_slots_share_a_room(
    deployment: Deployment, two_apps: Pair, other_resources: int
) -> None:
    received = await created_meanwhile(deployment, two_apps[0], "resources", other_resources)
    assert received == ({"Slot"}, 1)


def stored_resource(deployment: Deployment, name: str) -> Json | None:
    """Return the document of a resource."""
    return deployment.mongo.get_default_database()["resources"].find_one({"_id": name})


drafts_or_not = pytest.mark.parametrize("draft", [False, True])


@drafts_or_not
async def test_of_a_new_slot_and_the_deletion_of_its_resource_at_once_one_succeeds(
    deployment: Deployment, two_apps: Pair, draft: bool
) -> None:
    for number in range(DELETION_ROUNDS):
        hall = room()
        ids = await resource_ids(deployment.organizer(two_apps[0]), [hall])
        requests: list[tuple[str, Json]] = [
            (CREATE, {"input": at(9, resource=hall, draft=draft)}),
            (DELETE_RESOURCE, {"id": ids[hall]}),
        ]
        in_order = requests if number % 2 else requests[::-1]
        shots = [
            (app.url, deployment.user_tokens.organizer, *request)
            for app, request in zip(two_apps, in_order, strict=True)
        ]
        outcomes = {each["__typename"] for each in await send_simultaneously(shots)}
        exists = stored_resource(deployment, hall) is not None
        assert outcomes == (
            {"Slot", "ResourceInUse"} if exists else {"InvalidInput", "ResourceDeleted"}
        )


async def deleted_before_write(
    deployment: Deployment, app: AppProcess, pause_at: str, off: str, *, draft: bool, past: bool
) -> tuple[str, bool]:
    """Delete a resource while the writer of a slot pauses: of a new one, or a past one that moves.

    Return the outcome, and whether the resource exists afterwards.
    """
    hall, organizer = room(), deployment.organizer(app)
    hall_id = (await resource_ids(organizer, [hall]))[hall]
    request: tuple[str, Json] = (CREATE, {"input": at(9, resource=hall, draft=draft)})
    if past:
        slot = await organizer.create_slot(**PAST, resource=hall, draft=draft, allowPast=True)
        times = {name: at(9)[name] for name in PAST}
        request = (UPDATE_SERIES, {"input": {"slotId": slot["id"], **times}})
    slow, stage = deployment.paused_app(pause_at, off)
    late = asyncio.create_task(deployment.organizer(slow).execute(request[0], **request[1]))
    await asyncio.to_thread(stage.wait_until_reached)
    deleted = await organizer.execute(DELETE_RESOURCE, id=hall_id)
    assert deleted["__typename"] == "ResourceDeleted"
    stage.resume()
    outcome = (await late)["__typename"]
    return outcome, stored_resource(deployment, hall) is not None


scenes = pytest.mark.parametrize(
    ("pause_at", "past"), [("plan", False), ("commit", False), ("commit", True)]
)


@drafts_or_not
@scenes
async def test_a_resource_that_is_deleted_before_the_write_of_its_slot_stays_deleted(
    deployment: Deployment, two_apps: Pair, draft: bool, pause_at: str, past: bool
) -> None:
    received = await deleted_before_write(
        deployment, two_apps[0], pause_at, "", draft=draft, past=past
    )
    assert received == ("InvalidInput", False)


@drafts_or_not
@scenes
async def test_control_without_the_resource_version_a_slot_brings_a_deleted_resource_back(
    deployment: Deployment, two_apps: Pair, draft: bool, pause_at: str, past: bool
) -> None:
    received = await deleted_before_write(
        deployment, two_apps[0], pause_at, "resources", draft=draft, past=past
    )
    assert received == ("Slot", True)


async def test_two_concurrent_edits_of_a_series_lose_no_slot(
    deployment: Deployment, two_apps: Pair
) -> None:
    slot = {"title": "Yoga", **MONDAY_TIMES, "resource": room()}
    await deployment.organizer(two_apps[0]).import_resources(slot["resource"])
    wanted = {"slot": slot, "rrule": "FREQ=DAILY;COUNT=5"}
    made = await deployment.organizer(two_apps[0]).execute(CREATE_SERIES, input=wanted)
    ids = [each["id"] for each in made["slots"]]
    changes: list[Json] = [
        {"title": "Pilates"},
        {"capacity": 7},
        {"location": "Hall"},
        {"holdMinutes": 9},
    ]
    requests = [
        (UPDATE_SERIES, {"input": {"slotId": ids[n], "scope": "ALL", **change}})
        for n, change in enumerate(changes)
    ]
    assert await at_once(deployment, two_apps, requests) == {"Slot": 4}
    slots = deployment.mongo.get_default_database()["slots"]
    for found in slots.find({"_id": {"$in": [ObjectId(id_[-24:]) for id_ in ids]}}):
        stored = (found["title"], found["capacity"], found["location"], found["holdMinutes"])
        assert (*stored, found["version"]) == ("Pilates", 7, "Hall", 9, 5)
