"""A campaign amid it all: so many bookings a person, no overlaps, so many of a class."""

import asyncio
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import combinations

from bench.soak.checks.booking_records import CREATION_STATUSES, BookingRecord, live_records
from bench.soak.clients import documents
from bench.soak.clients.sending import send
from bench.soak.processes.servers import SoakError
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakUser, World

CLASSES = 6
MAX_BOOKINGS_PER_USER = 2
MAX_PER_CLASS = 2
OVERRIDABLE_LIMITS = {"most_bookings", "time_conflict"}


def class_group(index: int) -> str:
    """The class that the person of this number is in."""
    return f"class:{index % CLASSES}"


async def create_campaign(world: World, organizer: SoakUser) -> None:
    """A campaign that is open for the whole run. Errors: SoakError."""
    now = datetime.now(UTC)
    wanted = {
        "name": "A campaign",
        "opensAt": (now - timedelta(hours=1)).isoformat(timespec="seconds"),
        "closesAt": (now + timedelta(days=1)).isoformat(timespec="seconds"),
        "published": True,
        "maxBookings": MAX_BOOKINGS_PER_USER,
        "forbidOverlap": True,
        "groupLimits": [{"group": "class:*", "limit": MAX_PER_CLASS}],
    }
    act = ClientOperation(
        "scene", organizer.id, documents.CREATE_CAMPAIGN, {"input": wanted}, organizer.token
    )
    sent = await send(world, act, organizer.rng)
    if sent.outcome != "Campaign":
        raise SoakError(f"the scene is not set: {sent.outcome} {sent.response}")
    world.campaign = str(sent.response["id"])


async def unpublish_for_a_while(world: World, user: SoakUser) -> None:
    """Unpublish the campaign; once that is answered nothing is booked until it is published."""
    if not await _set_published(world, user, documents.UNPUBLISH):
        return
    answered = time.time()
    await world.sleep(user.rng.uniform(0.2, 2))
    ended = time.time()
    world.unpublished_periods.append((answered, ended))
    while not await _set_published(world, user, documents.PUBLISH):
        await asyncio.sleep(0.3)


async def _set_published(world: World, user: SoakUser, document: str) -> bool:
    act = ClientOperation("campaign", user.id, document, {"campaign": world.campaign}, user.token)
    return (await send(world, act, user.rng)).outcome == "Campaign"


def check_limits(world: World, slots: list[Json], now: datetime) -> None:
    """At one moment nobody has more than they may, but what organisers gave them all the same."""
    tell = world.run_log.record_violation
    places: defaultdict[str, list[tuple[Json, BookingRecord]]] = defaultdict(list)
    for slot in slots:
        if "campaign" not in slot or slot["status"] == "cancelled":
            continue
        live = [record for record in live_records(slot) if _is_live_at(record, now)]
        for record in live:
            if not _overridden_limits(record) & OVERRIDABLE_LIMITS:
                places[record.user_id].append((slot, record))
        plain = {record.id for record in live if "group_full" not in _overridden_limits(record)}
        entries = [entry for entry in slot["bookings"] if str(entry["id"]) in plain]
        counted = Counter(group for entry in entries for group in entry.get("groups", ()))
        if crowded := {group: n for group, n in counted.items() if n > MAX_PER_CLASS}:
            tell("of a class", f"slot {slot['_id']} version {slot['version']}: {crowded}")
    for user, theirs in places.items():
        world.run_log.checks["people in the campaign"] += 1
        if len(theirs) > MAX_BOOKINGS_PER_USER:
            tell("most bookings", f"{user}: {[record.id for _, record in theirs]}")
        for (one, a), (other, b) in combinations(theirs, 2):
            if one["start"] < other["end"] and other["start"] < one["end"]:
                tell("overlap", f"{user}: {a.id} and {b.id}")


def check_unpublished(world: World, slots: list[Json], records: list[BookingRecord]) -> None:
    """Nobody but organisers got a place while the campaign was shut."""
    of_campaign = {str(slot["_id"]) for slot in slots if "campaign" in slot}
    organisers = {person.id for person in world.users if person.is_organizer}
    for record in records:
        first = record.history[0]
        if record.slot_id not in of_campaign or str(first["by"]) in organisers:
            continue
        world.run_log.checks["places given in the campaign"] += 1
        at = first["at"].timestamp()
        if first["action"] in CREATION_STATUSES and any(
            begun <= at < ended for begun, ended in world.unpublished_periods
        ):
            world.run_log.record_violation(
                "shut", f"{record.id} in {record.slot_id}: {record.actions} at {at}"
            )


def _is_live_at(record: BookingRecord, now: datetime) -> bool:
    until = record.history[-1].get("heldUntil")
    return record.is_live and (until is None or until > now)


def _overridden_limits(record: BookingRecord) -> set[str]:
    return {limit for entry in record.history for limit in entry.get("overriddenLimits", ())}
