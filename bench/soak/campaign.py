"""A campaign amid it all: so many bookings a person, no overlaps, so many of a class."""

import asyncio
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import combinations

from bench.soak import documents
from bench.soak.ledger import Act, Json
from bench.soak.records import MAKINGS, Record, live_records
from bench.soak.sending import send
from bench.soak.servers import SoakError
from bench.soak.world import Person, World

CLASSES = 6
MOST = 2
OF_A_CLASS = 2
OVERRULED = {"most_bookings", "time_conflict"}


def group_of(index: int) -> str:
    """The class that the person of this number is in."""
    return f"class:{index % CLASSES}"


async def open_campaign(world: World, organiser: Person) -> None:
    """A campaign that is open for the whole run. Errors: SoakError."""
    now = datetime.now(UTC)
    wanted = {
        "name": "A campaign",
        "opensAt": (now - timedelta(hours=1)).isoformat(timespec="seconds"),
        "closesAt": (now + timedelta(days=1)).isoformat(timespec="seconds"),
        "published": True,
        "maxBookings": MOST,
        "forbidOverlap": True,
        "groupLimits": [{"group": "class:*", "limit": OF_A_CLASS}],
    }
    act = Act("scene", organiser.id, documents.CREATE_CAMPAIGN, {"input": wanted}, organiser.token)
    sent = await send(world, act, organiser.rng)
    if sent.outcome != "Campaign":
        raise SoakError(f"the scene is not set: {sent.outcome} {sent.answer}")
    world.campaign = str(sent.answer["id"])


async def shut_for_a_while(world: World, me: Person) -> None:
    """Unpublish the campaign; once that is answered nothing is booked until it is published."""
    if not await _publish(world, me, documents.UNPUBLISH):
        return
    answered = time.time()
    await world.sleep(me.rng.uniform(0.2, 2))
    ended = time.time()
    world.shut.append((answered, ended))
    while not await _publish(world, me, documents.PUBLISH):
        await asyncio.sleep(0.3)


async def _publish(world: World, me: Person, query: str) -> bool:
    act = Act("campaign", me.id, query, {"campaign": world.campaign}, me.token)
    return (await send(world, act, me.rng)).outcome == "Campaign"


def check_limits(world: World, slots: list[Json], now: datetime) -> None:
    """At one moment nobody has more than they may, but what organisers gave them all the same."""
    tell = world.ledger.violation
    places: defaultdict[str, list[tuple[Json, Record]]] = defaultdict(list)
    for slot in slots:
        if "campaign" not in slot or slot["status"] == "cancelled":
            continue
        live = [record for record in live_records(slot) if _lasts(record, now)]
        for record in live:
            if not _overrode(record) & OVERRULED:
                places[record.user].append((slot, record))
        plain = {record.id for record in live if "group_full" not in _overrode(record)}
        entries = [entry for entry in slot["bookings"] if str(entry["id"]) in plain]
        counted = Counter(group for entry in entries for group in entry.get("groups", ()))
        if crowded := {group: n for group, n in counted.items() if n > OF_A_CLASS}:
            tell("of a class", f"slot {slot['_id']} version {slot['version']}: {crowded}")
    for user, theirs in places.items():
        world.ledger.checks["people in the campaign"] += 1
        if len(theirs) > MOST:
            tell("most bookings", f"{user}: {[record.id for _, record in theirs]}")
        for (one, a), (other, b) in combinations(theirs, 2):
            if one["start"] < other["end"] and other["start"] < one["end"]:
                tell("overlap", f"{user}: {a.id} and {b.id}")


def check_shut(world: World, slots: list[Json], records: list[Record]) -> None:
    """Nobody but organisers got a place while the campaign was shut."""
    of_campaign = {str(slot["_id"]) for slot in slots if "campaign" in slot}
    organisers = {person.id for person in world.people if person.organises}
    for record in records:
        first = record.log[0]
        if record.slot not in of_campaign or str(first["by"]) in organisers:
            continue
        world.ledger.checks["places given in the campaign"] += 1
        at = first["at"].timestamp()
        if first["do"] in MAKINGS and any(begun <= at < ended for begun, ended in world.shut):
            world.ledger.violation("shut", f"{record.id} in {record.slot}: {record.deeds} at {at}")


def _lasts(record: Record, now: datetime) -> bool:
    until = record.log[-1].get("until")
    return record.live and (until is None or until > now)


def _overrode(record: Record) -> set[str]:
    return {limit for entry in record.log for limit in entry.get("over", ())}
