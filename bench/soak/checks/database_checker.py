"""Reads all slots repeatedly during the run and checks each snapshot."""

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
SNAPSHOTS_PER_MEMORY_SAMPLE = 12


class DatabaseChecker:
    """Checks snapshots of all slots, each also against its predecessor.

    `misordered_pairs` are waitlist entries (earlier, later) whose times contradict their order.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._previous: dict[str, Json] = {}
        self.misordered_pairs: set[tuple[str, str]] = set()

    async def check_repeatedly(self) -> None:
        """Check snapshots until the run ends; skip those that MongoDB does not return."""
        count = 0
        while await self._world.sleep(SNAPSHOT_INTERVAL_S):
            try:
                await self.check_snapshot()
            except PyMongoError:
                self._world.run_log.checks["failed snapshots"] += 1
            count += 1
            if count % SNAPSHOTS_PER_MEMORY_SAMPLE == 0:
                for app in (*self._world.apps, self._world.worker):
                    app.sample_memory()

    async def check_snapshot(self) -> list[Json]:
        """Read all slots at one moment, check them and return them."""
        slots = await asyncio.to_thread(self._read)
        now = datetime.now(UTC)
        for slot in slots:
            self._check_slot(slot, now)
        self._check_choice_groups(slots, now)
        check_limits(self._world, slots, now)
        self._update_world(slots)
        self._previous = {str(slot["_id"]): slot for slot in slots}
        self._world.run_log.checks["snapshots"] += 1
        return slots

    def _read(self) -> list[Json]:
        with self._world.mongo.start_session(snapshot=True) as session:
            slots: list[Json] = list(self._world.database["slots"].find({}, session=session))
            return slots

    def _check_slot(self, slot: Json, now: datetime) -> None:
        report = self._world.run_log.record_violation
        where = f"slot {slot['_id']} version {slot['version']}"
        self._world.run_log.checks["slot documents"] += 1
        booked, bookings = slot["capacity"] - slot["remaining"], slot["bookings"]
        if booked != len(bookings):
            report("remaining", f"{where}: {booked} booked by count, {len(bookings)} bookings")
        if len(bookings) > slot["capacity"]:
            report("capacity", f"{where}: {len(bookings)} of {slot['capacity']} places")
        for list_name in ("bookings", "waitlist"):
            for field in ("user", "id"):
                counts = Counter(str(entry[field]) for entry in slot[list_name])
                if repeated := [value for value, count in counts.items() if count > 1]:
                    report("twice in a slot", f"{where}: {field} {repeated} in {list_name}")
        both = {e["user"] for e in bookings} & {e["user"] for e in slot["waitlist"]}
        if both and now < slot["start"]:
            report("booked and waiting", f"{where}: {both}")
        for record in live_records(slot):
            if problem := history_problem(record):
                report("history", f"{where}: booking {record.id} {problem}")
        self._check_waitlist_times(slot)
        if previous := self._previous.get(str(slot["_id"])):
            self._compare(previous, slot, where)

    def _check_waitlist_times(self, slot: Json) -> None:
        for earlier, later in combinations(slot["waitlist"], 2):
            if earlier["since"] > later["since"]:
                pair = str(earlier["id"]), str(later["id"])
                self.misordered_pairs.add(pair)
                self._world.run_log.record_violation(
                    "since",
                    f"slot {slot['_id']}: {pair[0]} precedes {pair[1]} "
                    f"but waits since {earlier['since']}, not {later['since']}",
                )

    def _compare(self, previous: Json, slot: Json, where: str) -> None:
        report = self._world.run_log.record_violation
        if slot["version"] < previous["version"]:
            report("version", f"{where} after version {previous['version']}")
        if slot["version"] == previous["version"] and _versioned_fields(slot) != _versioned_fields(
            previous
        ):
            report("version", f"{where}: two states with one version")
        before = [str(entry["id"]) for entry in previous["waitlist"]]
        after = [str(entry["id"]) for entry in slot["waitlist"]]
        booked = {str(entry["id"]) for entry in slot["bookings"]}
        remaining = [index for index, entry_id in enumerate(before) if entry_id in after]
        overtaking = [
            entry_id
            for index, entry_id in enumerate(before)
            if entry_id in booked and remaining and index > min(remaining)
        ]
        # In the campaign, entries wait for their class limit while later ones are promoted.
        if overtaking and "campaign" not in slot:
            report("order", f"{where}: {overtaking} promoted before {before[min(remaining)]}")
        if [e for e in after if e in before] != [e for e in before if e in after]:
            report("order", f"{where}: the waitlist changed its order from {before} to {after}")

    def _check_choice_groups(self, slots: list[Json], now: datetime) -> None:
        places: defaultdict[tuple[str, str], list[BookingRecord]] = defaultdict(list)
        for slot in slots:
            if slot.get("choiceGroup") and slot["status"] != "cancelled":
                for record in live_records(slot):
                    until = record.history[-1].get("heldUntil")
                    if until is None or until > now:
                        places[slot["choiceGroup"], record.user_id].append(record)
        for (choice_group, user_id), records in places.items():
            limited = [
                record.id
                for record in records
                if "one_of_choice" not in record.history[0].get("overriddenLimits", ())
            ]
            if len(limited) > 1:
                description = f"{user_id} in {choice_group}: {limited}"
                self._world.run_log.record_violation("twice in a choice group", description)

    def _update_world(self, slots: list[Json]) -> None:
        # Users act on these: bookings that others made for them, promotions from waitlists.
        live: defaultdict[str, list[str]] = defaultdict(list)
        for slot in slots:
            for entry in slot["bookings"]:
                live[str(entry["user"])].append(f"booking_{slot['_id']}{entry['id']}")
        self._world.live_bookings = live
        self._world.free_places = {str(slot["_id"]): slot["remaining"] for slot in slots}


def _versioned_fields(slot: Json) -> Any:
    # The sweeper corrects `nextDeadline` without a new version, as no client sees it.
    return {name: value for name, value in slot.items() if name != "nextDeadline"}
