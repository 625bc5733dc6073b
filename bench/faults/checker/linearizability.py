"""Places every response at a version of its slot, in an order that real time allows.

The versions are the order of the writes, so only the position of each response is searched. The
least positions are found: each response gets the first version that explains it, not before those
of responses that ended before it started. If any order exists, this one does.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from bench.faults.checker.batch_search import explained_inside
from bench.faults.checker.effects import MISSING, Effect
from bench.faults.checker.refusals import ResponseModel, RuledBooking
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersion
from bench.faults.history import Json

# Refusals of a move that are about the booking, and so about the slot that it is in.
OF_OLD_SLOT = (*MISSING, "CutoffPassed")
WRITES = ("Booked", "BookingMoved", "WaitlistJoined")


def _ended_as_confirmed(effect: Effect) -> bool:
    """Return whether an accepted response shows that a booking was confirmed before it ended."""
    if effect.outcome not in ("BookingCancelled", "BookingMoved") or effect.response is None:
        return False
    history = (effect.response.get("booking") or {}).get("history", ())
    return any(entry["action"] == "CONFIRMED" for entry in history)


class SlotOrder:
    """The versions of one slot, and when each may have been the current one.

    The first version that has a booking, or a waitlist entry, is in `appeared`. The first one with
    a booking, which may have been an entry before, is in `booked`.
    """

    def __init__(self, slot_id: str, versions: Sequence[SlotVersion]) -> None:
        self.slot_id, self.versions = slot_id, versions
        self.numbers = [version.number for version in versions]
        self.appeared: dict[str, int] = {}
        self.booked: dict[str, int] = {}
        self.vanished: dict[str, int] = {}
        self._ended_as_confirmed = set[str | None]()
        self.existed_from: list[float] = [version.written_at for version in versions]
        self.visible_by: list[float] = [version.read_at for version in versions]
        before: set[str] = set()
        for index, version in enumerate(versions):
            ids = version.bookings.keys() | {id_ for id_, _ in version.waitlist}
            for id_ in ids - before:
                self.appeared.setdefault(id_, index)
            for id_ in version.bookings:
                self.booked.setdefault(id_, index)
            for id_ in before - ids:
                self.vanished[id_] = index
            before = ids

    def index_of(self, number: int) -> int | None:
        """Return the index of the version with this number."""
        index = bisect_left(self.numbers, number)
        return index if self.numbers[index : index + 1] == [number] else None

    def around(self, number: int) -> list[Json]:
        """Return the documents from this version to the next."""
        index = bisect_left(self.numbers, number)
        return [version.document for version in self.versions[index : index + 2]]

    def narrow(self, effects: Sequence[Effect]) -> None:
        """Narrow the times of the versions by the responses that they contain."""
        for effect in effects:
            index = self.write_of(effect)
            if index is not None:
                self.visible_by[index] = min(self.visible_by[index], effect.finished_at)
                self.existed_from[index] = max(self.existed_from[index], effect.started_at)
        for index in range(1, len(self.versions)):
            self.existed_from[index] = max(self.existed_from[index - 1 : index + 1])
        for index in range(len(self.versions) - 2, -1, -1):
            self.visible_by[index] = min(self.visible_by[index : index + 2])

    def write_of(self, effect: Effect) -> int | None:
        """Return the index of the version that an accepted effect wrote, if that is certain."""
        if effect.outcome not in WRITES or effect.response is None:
            return None
        return self.appeared.get(self._shown_id(effect))

    @staticmethod
    def _shown_id(effect: Effect) -> str:
        response = effect.response or {}
        return str((response.get("booking") or response["entry"])["id"])[-24:]

    def check(self, effects: Sequence[Effect], explanations: ResponseModel, report: Report) -> None:
        """Report the responses for which there is no version."""
        self._ended_as_confirmed = {
            each.booking_id for each in effects if _ended_as_confirmed(each)
        }
        floor, ended = 0, list[tuple[float, int]]()
        for effect in sorted(effects, key=lambda each: each.started_at):
            while ended and ended[0][0] < effect.started_at:
                floor = max(floor, heapq.heappop(ended)[1])
            position = self._place(effect, floor, explanations, report)
            if position is not None:
                heapq.heappush(ended, (effect.finished_at, position))

    def _place(
        self, effect: Effect, floor: int, explanations: ResponseModel, report: Report
    ) -> int | None:
        if effect.outcome in WRITES:
            return self._place_write(effect, floor, report)
        first, last = self._current(effect)
        if effect.outcome == "BookingCancelled":
            index = self.vanished.get(effect.booking_id or "")
            is_known = index is not None and self.existed_from[index] <= effect.finished_at
            if not is_known and self.versions[last].status != "cancelled":
                self._report(report, "lost cancellation", effect, first, last)
            return index and 2 * index
        if effect.outcome == "BookingConfirmed" and effect.booking_id in self._ended_as_confirmed:
            index = self.vanished.get(effect.booking_id or "")
            if index is not None and first <= index <= last:
                return 2 * index  # one write confirmed and ended it
        start = max(floor, 2 * first - 1)
        for position in range(start, 2 * last + 1):
            version = self.versions[(position + 1) // 2]
            if position % 2 == 0:
                is_explained = explanations.explains(version, effect)
            else:
                before = self.versions[position // 2]
                is_explained = explained_inside(before, version, effect, explanations)
            if is_explained:
                return position
        kind = "lost change" if effect.is_accepted else "unexplained refusal"
        self._report(report, kind, effect, first, last)
        return None

    def _place_write(self, effect: Effect, floor: int, report: Report) -> int | None:
        index = self.write_of(effect)
        if index is None:
            self._report(report, "lost booking", effect, *self._current(effect))
            return None
        owners = {id_: each.user_id for id_, each in self.versions[index].bookings.items()}
        owners.update(self.versions[index].waitlist)
        if owners[self._shown_id(effect)] != effect.user_id:
            self._report(report, "booking of another user", effect, index, index)
        if self.existed_from[index] > effect.finished_at:
            self._report(report, "response before its write", effect, index, index)
        elif self.visible_by[index] < effect.started_at:
            self._report(report, "response with an older booking", effect, index, index)
        elif 2 * index < floor:
            self._report(report, "order against real time", effect, index, (floor + 1) // 2)
        return 2 * index

    def _current(self, effect: Effect) -> tuple[int, int]:
        """Return the first and the last version that may have been current during an effect."""
        first = max(bisect_left(self.visible_by, effect.started_at) - 1, 0)
        last = bisect_right(self.existed_from, effect.finished_at) - 1
        return first, max(last, first)

    def _report(self, report: Report, kind: str, effect: Effect, first: int, last: int) -> None:
        description = (
            f"{effect.name} of {effect.user_id} in slot {self.slot_id}: {effect.outcome}, "
            f"versions {self.versions[first].number} to {self.versions[last].number}"
        )
        documents = [version.document for version in self.versions[first : last + 1]]
        report.add(kind, description, effect.operations, documents)


def explanations_by(orders: Iterable[SlotOrder], clock_offset_s: float) -> ResponseModel:
    """Return what the bookings in these slots explain in other slots with the same rules."""
    explanations = ResponseModel(clock_offset_s)
    for order in orders:
        slot = order.versions[-1].document
        if not slot.get("campaign") and not slot.get("choiceGroup"):
            continue
        for id_, index in order.booked.items():
            end = order.vanished.get(id_)
            until = float("inf") if end is None else order.visible_by[end]
            since = order.existed_from[index]
            ruled = RuledBooking(id_, order.slot_id, slot, since, until)
            user_id = order.versions[index].bookings[id_].user_id
            explanations.bookings[user_id].append(ruled)
    return explanations
