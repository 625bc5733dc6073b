"""Looking at the raw documents again and again meanwhile, and what must hold each time."""

import asyncio
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from pymongo.errors import PyMongoError

from bench.soak.campaign import check_limits
from bench.soak.ledger import Json
from bench.soak.records import Record, flaw, live_records
from bench.soak.world import World

LOOK_EVERY_S = 0.4
MEMORY_EVERY = 12  # looks


class Truth:
    """What was seen last, and what it says against what was seen before."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._before: dict[str, Json] = {}
        # Turns in line, the one in front first, of which the one behind says it came first.
        self.untimely: set[tuple[str, str]] = set()

    async def look_for_ever(self) -> None:
        """Look until the run ends; while MongoDB is away there is nothing to see."""
        looks = 0
        while await self._world.sleep(LOOK_EVERY_S):
            try:
                await self.look()
            except PyMongoError:
                self._world.ledger.checks["looks in vain"] += 1
            looks += 1
            if looks % MEMORY_EVERY == 0:
                for app in (*self._world.apps, self._world.worker):
                    app.sample()

    async def look(self) -> list[Json]:
        """All slots as they are at one moment, checked."""
        slots = await asyncio.to_thread(self._read)
        now = datetime.now(UTC)
        for slot in slots:
            self._check(slot, now)
        self._check_choices(slots, now)
        check_limits(self._world, slots, now)
        self._share(slots)
        self._before = {str(slot["_id"]): slot for slot in slots}
        self._world.ledger.checks["looks at all slots"] += 1
        return slots

    def _read(self) -> list[Json]:
        with self._world.mongo.start_session(snapshot=True) as session:
            slots: list[Json] = list(self._world.truth["slots"].find({}, session=session))
            return slots

    def _check(self, slot: Json, now: datetime) -> None:
        name, version = str(slot["_id"]), slot["version"]
        where = f"slot {name} version {version}"
        taken, tell = slot["capacity"] - slot["remaining"], self._world.ledger.violation
        self._world.ledger.checks["slot documents"] += 1
        if taken != len(slot["bookings"]):
            tell("remaining", f"{where}: {taken} taken by count, {len(slot['bookings'])} bookings")
        if len(slot["bookings"]) > slot["capacity"]:
            tell("capacity", f"{where}: {len(slot['bookings'])} of {slot['capacity']} places")
        for what in ("bookings", "waiting"):
            for field in ("user", "id"):
                counted = Counter(str(entry[field]) for entry in slot[what])
                if twice := [who for who, count in counted.items() if count > 1]:
                    tell("twice in a slot", f"{where}: {field} {twice} among {what}")
        both = {e["user"] for e in slot["bookings"]} & {e["user"] for e in slot["waiting"]}
        if both and now < slot["start"]:
            tell("books and waits", f"{where}: {both}")
        for record in live_records(slot):
            if wrong := flaw(record):
                tell("log", f"{where}: booking {record.id} {wrong}")
        self._check_times(slot, where)
        if before := self._before.get(name):
            self._compare(before, slot, where)

    def _check_times(self, slot: Json, where: str) -> None:
        for one, other in combinations(slot["waiting"], 2):
            if one["at"] > other["at"]:
                pair = str(one["id"]), str(other["id"])
                self.untimely.add(pair)
                what = f"slot {where.split()[1]}: {pair[0]} is in front of {pair[1]}"
                what += f" and waits since {one['at']}, not {other['at']}"
                self._world.ledger.violation("since", what)

    def _compare(self, before: Json, slot: Json, where: str) -> None:
        tell = self._world.ledger.violation
        if slot["version"] < before["version"]:
            tell("version", f"{where} after version {before['version']}")
        if slot["version"] == before["version"] and _told(slot) != _told(before):
            tell("version", f"{where}: two states under one version")
        had = [str(entry["id"]) for entry in before["waiting"]]
        waits = [str(entry["id"]) for entry in slot["waiting"]]
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
        places: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
        for slot in slots:
            if slot.get("choice") and slot["status"] != "cancelled":
                for record in live_records(slot):
                    until = record.log[-1].get("until")
                    if until is None or until > now:
                        places[slot["choice"], record.user].append(record)
        for (choice, user), records in places.items():
            plain = [r.id for r in records if "one_of_choice" not in r.log[0].get("over", ())]
            if len(plain) > 1:
                what = f"{user} in {choice}: {plain}"
                self._world.ledger.violation("twice in a choice", what)

    def _share(self, slots: list[Json]) -> None:
        # What people may then act on: others' bookings for them, places from the waiting list.
        live: defaultdict[str, list[str]] = defaultdict(list)
        for slot in slots:
            for entry in slot["bookings"]:
                live[str(entry["user"])].append(f"booking_{slot['_id']}{entry['id']}")
        self._world.live = live
        self._world.free = {str(slot["_id"]): slot["remaining"] for slot in slots}


def _told(slot: Json) -> Any:
    # `due` alone is corrected without a version: nobody is told of it.
    return {name: value for name, value in slot.items() if name != "due"}
