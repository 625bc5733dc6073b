"""A campaign during the run: a limit per user, no overlaps, and a limit per class."""

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
# How long the terms may take to reach all slots, if a process is killed while it copies them.
PROPAGATION_S = 20.0
OVERRIDABLE_LIMITS = {"max_bookings", "time_conflict"}


def class_group(index: int) -> str:
    """Return the class of the user with this index."""
    return f"class:{index % CLASSES}"


async def create_campaign(world: World, organizer: SoakUser) -> None:
    """Create a campaign that is open for the whole run; raises SoakError."""
    now = datetime.now(UTC)
    campaign = {
        "name": "A campaign",
        "opensAt": (now - timedelta(hours=1)).isoformat(timespec="seconds"),
        "closesAt": (now + timedelta(days=1)).isoformat(timespec="seconds"),
        "published": True,
        "maxBookings": MAX_BOOKINGS_PER_USER,
        "forbidOverlap": True,
        "groupLimits": [{"group": "class:*", "limit": MAX_PER_CLASS}],
    }
    operation = ClientOperation(
        "setup", organizer.id, documents.CREATE_CAMPAIGN, {"input": campaign}, organizer.token
    )
    request = await send(world, operation, organizer.rng)
    if request.outcome != "Campaign":
        raise SoakError(f"the setup failed: {request.outcome} {request.response}")
    world.campaign = str(request.response["id"])


async def unpublish_for_a_while(world: World, user: SoakUser) -> None:
    """Unpublish the campaign and publish it again; in between, the server may book nothing."""
    sent_at = time.time()
    if not await _set_published(world, user, documents.UNPUBLISH):
        world.hidden_periods.append((sent_at, time.time() + PROPAGATION_S))
        return
    unpublished_at = time.time()
    await world.sleep(user.rng.uniform(0.2, 2))
    world.unpublished_periods.append((unpublished_at, time.time()))
    while not await _set_published(world, user, documents.PUBLISH):
        await asyncio.sleep(0.3)
    world.hidden_periods.append((sent_at, time.time() + PROPAGATION_S))


async def _set_published(world: World, user: SoakUser, document: str) -> bool:
    operation = ClientOperation(
        "campaign", user.id, document, {"campaign": world.campaign}, user.token
    )
    return (await send(world, operation, user.rng)).outcome == "Campaign"


def check_limits(world: World, slots: list[Json], now: datetime) -> None:
    """Check that nobody exceeds a limit at this moment, except by an organizer's override."""
    report = world.run_log.record_violation
    places: defaultdict[str, list[tuple[Json, BookingRecord]]] = defaultdict(list)
    for slot in slots:
        if "campaign" not in slot or slot["status"] == "cancelled":
            continue
        live = [record for record in live_records(slot) if _is_live_at(record, now)]
        for record in live:
            if not _overridden_limits(record) & OVERRIDABLE_LIMITS:
                places[record.user_id].append((slot, record))
        limited = {record.id for record in live if "group_full" not in _overridden_limits(record)}
        entries = [entry for entry in slot["bookings"] if str(entry["id"]) in limited]
        counts = Counter(group for entry in entries for group in entry.get("groups", ()))
        if exceeded := {group: n for group, n in counts.items() if n > MAX_PER_CLASS}:
            report("class limit", f"slot {slot['_id']} version {slot['version']}: {exceeded}")
    for user_id, user_places in places.items():
        world.run_log.checks["users in the campaign"] += 1
        if len(user_places) > MAX_BOOKINGS_PER_USER:
            report("booking limit", f"{user_id}: {[record.id for _, record in user_places]}")
        for (slot_a, a), (slot_b, b) in combinations(user_places, 2):
            if slot_a["start"] < slot_b["end"] and slot_b["start"] < slot_a["end"]:
                report("overlap", f"{user_id}: {a.id} and {b.id}")


def check_unpublished(world: World, slots: list[Json], records: list[BookingRecord]) -> None:
    """Check that only organizers booked places while the campaign was unpublished."""
    campaign_slot_ids = {str(slot["_id"]) for slot in slots if "campaign" in slot}
    organizer_ids = {user.id for user in world.users if user.is_organizer}
    for record in records:
        first = record.history[0]
        if record.slot_id not in campaign_slot_ids or str(first["by"]) in organizer_ids:
            continue
        world.run_log.checks["bookings in the campaign"] += 1
        at = first["at"].timestamp()
        if first["action"] in CREATION_STATUSES and any(
            since <= at < until for since, until in world.unpublished_periods
        ):
            world.run_log.record_violation(
                "booked while unpublished",
                f"{record.id} in {record.slot_id}: {record.actions} at {at}",
            )


def _is_live_at(record: BookingRecord, now: datetime) -> bool:
    until = record.history[-1].get("heldUntil")
    return record.is_live and (until is None or until > now)


def _overridden_limits(record: BookingRecord) -> set[str]:
    return {limit for entry in record.history for limit in entry.get("overriddenLimits", ())}
