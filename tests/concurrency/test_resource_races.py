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
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, slot_input
from tests.support.clients.series import (
    CREATE_SERIES,
    MONDAY_TIMES,
    PUBLISH_SERIES,
    UPDATE_SERIES,
)
from tests.support.transport.simultaneous_requests import send_simultaneously

CREATE = """mutation($input: CreateSlotInput!) { createSlot(input: $input) { __typename } }"""
RESOURCES = """mutation($names: [String!]!) {
  importResources(names: $names) { ... on ResourcesImported { existing { id name } } }
}"""
RENAME_RESOURCE = """mutation($id: ID!, $name: String!) {
  updateResource(input: {resourceId: $id, name: $name}) { __typename }
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


def times_at(hour: float) -> Json:
    """Return the times of a slot of one hour."""
    return {name: at(hour)[name] for name in PAST}


@pytest.mark.parametrize(
    ("hours", "change", "outcomes"),
    [
        ((8, 12), times_at(10), {"Slot": 1, "ResourceTaken": 1}),
        ((9, 9), None, {"Slot": 1, "ResourceTaken": 1}),
        ((9, 10), times_at(9.5), {"ResourceTaken": 2}),
    ],
    ids=["to one time", "to one room", "across each other"],
)
async def test_two_slots_of_one_room_that_move_at_once_never_overlap(
    deployment: Deployment,
    two_apps: Pair,
    hours: tuple[int, int],
    change: Json | None,
    outcomes: dict[str, int],
) -> None:
    for _ in range(ROUNDS):
        hall = {"resource": room()}
        slots = [
            await deployment.add_slot(two_apps[0], **at(hour, **(hall if change else {})))
            for hour in hours
        ]
        requests = [
            (UPDATE_SERIES, {"input": {"slotId": slot_id, **(change or hall)}}) for slot_id in slots
        ]
        assert await at_once(deployment, two_apps, requests) == outcomes
        assert overlaps(deployment, hall["resource"]) == 0


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


@pytest.mark.parametrize("other_resources", [0, 2])
@pytest.mark.parametrize(
    ("without", "outcomes", "overlap_count"),
    [("", {"Slot", "ResourceTaken"}, 0), ("resources", {"Slot"}, 1)],
)
async def test_a_room_that_was_free_when_it_was_read_is_checked_again_at_the_write(
    deployment: Deployment,
    two_apps: Pair,
    without: str,
    outcomes: set[str],
    overlap_count: int,
    other_resources: int,
) -> None:
    hall, organizer = room(), deployment.organizer(two_apps[0])
    names = [hall, *(room() for _ in range(other_resources))]
    ids = await resource_ids(organizer, names)
    slow, stage = deployment.paused_app("commit", without)
    # The common resource is the last one of the list.
    several = {"input": at(9, resourceIds=[ids[name] for name in reversed(names)])}
    late = asyncio.create_task(deployment.organizer(slow).execute(CREATE, **several))
    await asyncio.to_thread(stage.wait_until_reached)
    early = await organizer.execute(CREATE, input=at(9, resource=hall))
    stage.resume()
    assert {early["__typename"], (await late)["__typename"]} == outcomes
    assert overlaps(deployment, hall) == overlap_count


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


@drafts_or_not
@pytest.mark.parametrize(
    ("pause_at", "past"), [("plan", False), ("commit", False), ("commit", True)]
)
@pytest.mark.parametrize(("without", "outcome"), [("", "InvalidInput"), ("resources", "Slot")])
async def test_a_resource_that_is_deleted_before_the_write_of_its_slot_stays_deleted(
    deployment: Deployment,
    two_apps: Pair,
    without: str,
    outcome: str,
    pause_at: str,
    past: bool,
    draft: bool,
) -> None:
    hall, organizer = room(), deployment.organizer(two_apps[0])
    hall_id = (await resource_ids(organizer, [hall]))[hall]
    # The writer of a new slot pauses, or of a past one that moves.
    request: tuple[str, Json] = (CREATE, {"input": at(9, resource=hall, draft=draft)})
    if past:
        slot = await organizer.create_slot(**PAST, resource=hall, draft=draft, allowPast=True)
        times = {name: at(9)[name] for name in PAST}
        request = (UPDATE_SERIES, {"input": {"slotId": slot["id"], **times}})
    slow, stage = deployment.paused_app(pause_at, without)
    late = asyncio.create_task(deployment.organizer(slow).execute(request[0], **request[1]))
    await asyncio.to_thread(stage.wait_until_reached)
    deleted = await organizer.execute(DELETE_RESOURCE, id=hall_id)
    assert deleted["__typename"] == "ResourceDeleted"
    stage.resume()
    assert (await late)["__typename"] == outcome
    assert (stored_resource(deployment, hall) is not None) == (outcome == "Slot")


@pytest.mark.parametrize(("without", "old_names"), [("", 0), ("resources", 1)])
async def test_a_slot_that_is_written_after_its_resource_was_renamed_has_the_new_name(
    deployment: Deployment, two_apps: Pair, without: str, old_names: int
) -> None:
    hall, organizer = room(), deployment.organizer(two_apps[0])
    hall_id = (await resource_ids(organizer, [hall]))[hall]
    slow, stage = deployment.paused_app("commit", without)
    writer = deployment.organizer(slow)
    late = asyncio.create_task(writer.execute(CREATE, input=at(9, resource=hall)))
    await asyncio.to_thread(stage.wait_until_reached)
    renamed = await organizer.execute(RENAME_RESOURCE, id=hall_id, name=f"new {hall}")
    assert renamed["__typename"] == "Resource"
    stage.resume()
    assert (await late)["__typename"] == "Slot"
    slots = deployment.mongo.get_default_database()["slots"]
    named = [slots.count_documents({"resource": name}) for name in (hall, f"new {hall}")]
    assert named == [old_names, 1 - old_names]


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
