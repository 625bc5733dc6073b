"""Looking at the raw documents again and again meanwhile, and what must hold each time."""

import asyncio
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from pymongo.errors import PyMongoError

from bench.soak.campaign import check_limits
from bench.soak.checks.booking_records import BookingRecord, history_problem, live_records
from bench.soak.run_log import Json
from bench.soak.world import World

SNAPSHOT_INTERVAL_S = 0.4
SNAPSHOTS_PER_MEMORY_SAMPLE = 12  # looks


class DatabaseChecker:
    """What was seen last, and what it says against what was seen before."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._previous: dict[str, Json] = {}
        # Turns in line, the one in front first, of which the one behind says it came first.
        self.misordered_pairs: set[tuple[str, str]] = set()

    async def check_repeatedly(self) -> None:
        """Look until the run ends; while MongoDB is away there is nothing to see."""
        looks = 0
        while await self._world.sleep(SNAPSHOT_INTERVAL_S):
            try:
                await self.check_snapshot()
            except PyMongoError:
                self._world.run_log.checks["looks in vain"] += 1
            looks += 1
            if looks % SNAPSHOTS_PER_MEMORY_SAMPLE == 0:
                for app in (*self._world.apps, self._world.worker):
                    app.sample_memory()

    async def check_snapshot(self) -> list[Json]:
        """All slots as they are at one moment, checked."""
        slots = await asyncio.to_thread(self._read)
        now = datetime.now(UTC)
        for slot in slots:
            self._check_slot(slot, now)
        self._check_choices(slots, now)
        check_limits(self._world, slots, now)
        self._update_world(slots)
        self._previous = {str(slot["_id"]): slot for slot in slots}
        self._world.run_log.checks["looks at all slots"] += 1
        return slots

    def _read(self) -> list[Json]:
        with self._world.mongo.start_session(snapshot=True) as session:
            slots: list[Json] = list(self._world.database["slots"].find({}, session=session))
            return slots

    def _check_slot(self, slot: Json, now: datetime) -> None:
        name, version = str(slot["_id"]), slot["version"]
        where = f"slot {name} version {version}"
        taken, tell = slot["capacity"] - slot["remaining"], self._world.run_log.record_violation
        self._world.run_log.checks["slot documents"] += 1
        if taken != len(slot["bookings"]):
            tell("remaining", f"{where}: {taken} taken by count, {len(slot['bookings'])} bookings")
        if len(slot["bookings"]) > slot["capacity"]:
            tell("capacity", f"{where}: {len(slot['bookings'])} of {slot['capacity']} places")
        for what in ("bookings", "waitlist"):
            for field in ("user", "id"):
                counted = Counter(str(entry[field]) for entry in slot[what])
                if twice := [who for who, count in counted.items() if count > 1]:
                    tell("twice in a slot", f"{where}: {field} {twice} among {what}")
        both = {e["user"] for e in slot["bookings"]} & {e["user"] for e in slot["waitlist"]}
        if both and now < slot["start"]:
            tell("books and waits", f"{where}: {both}")
        for record in live_records(slot):
            if wrong := history_problem(record):
                tell("history", f"{where}: booking {record.id} {wrong}")
        self._check_waitlist_times(slot, where)
        if before := self._previous.get(name):
            self._compare(before, slot, where)

    def _check_waitlist_times(self, slot: Json, where: str) -> None:
        for one, other in combinations(slot["waitlist"], 2):
            if one["since"] > other["since"]:
                pair = str(one["id"]), str(other["id"])
                self.misordered_pairs.add(pair)
                what = f"slot {where.split()[1]}: {pair[0]} is in front of {pair[1]}"
                what += f" and waits since {one['since']}, not {other['since']}"
                self._world.run_log.record_violation("since", what)

    def _compare(self, previous: Json, slot: Json, where: str) -> None:
        tell = self._world.run_log.record_violation
        if slot["version"] < previous["version"]:
            tell("version", f"{where} after version {previous['version']}")
        if slot["version"] == previous["version"] and _versioned_fields(slot) != _versioned_fields(
            previous
        ):
            tell("version", f"{where}: two states under one version")
        had = [str(entry["id"]) for entry in previous["waitlist"]]
        waits = [str(entry["id"]) for entry in slot["waitlist"]]
        served = {str(entry["id"]) for entry in slot["bookings"]}
        stayed = [place for place, one in enumerate(had) if one in waits]
        passed = (
            [one for place, one in enumerate(had) if one in served and place > min(stayed)]
            if (stayed)
            else []
        )
        if passed and "campaign" not in slot:  # where who waits for their class is passed over
            tell("order", f"{where}: {passed} served before {had[min(stayed)]}")
        if [one for one in waits if one in had] != [one for one in had if one in waits]:
            tell("order", f"{where}: the line is another than {had}: {waits}")

    def _check_choices(self, slots: list[Json], now: datetime) -> None:
        places: defaultdict[tuple[str, str], list[BookingRecord]] = defaultdict(list)
        for slot in slots:
            if slot.get("choiceGroup") and slot["status"] != "cancelled":
                for record in live_records(slot):
                    until = record.history[-1].get("heldUntil")
                    if until is None or until > now:
                        places[slot["choiceGroup"], record.user_id].append(record)
        for (choice, user), records in places.items():
            plain = [
                r.id
                for r in records
                if "one_of_choice" not in r.history[0].get("overriddenLimits", ())
            ]
            if len(plain) > 1:
                what = f"{user} in {choice}: {plain}"
                self._world.run_log.record_violation("twice in a choice", what)

    def _update_world(self, slots: list[Json]) -> None:
        # What people may then act on: others' bookings for them, places from the waiting list.
        live: defaultdict[str, list[str]] = defaultdict(list)
        for slot in slots:
            for entry in slot["bookings"]:
                live[str(entry["user"])].append(f"booking_{slot['_id']}{entry['id']}")
        self._world.live_bookings = live
        self._world.free_places = {str(slot["_id"]): slot["remaining"] for slot in slots}


def _versioned_fields(slot: Json) -> Any:
    # `nextDeadline` alone is corrected without a version: nobody is told of it.
    return {name: value for name, value in slot.items() if name != "nextDeadline"}
