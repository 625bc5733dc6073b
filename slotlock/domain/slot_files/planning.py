"""Plan an import of courses: which are created, changed or unchanged, by the rules of each edit."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import CapacityBelowTaken, SlotCancelled
from slotlock.domain.booking.slot import MAX_CAPACITY, Slot, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.resources.resource import Resource, name_key, unknown_resource, validate_name
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.tables.file_problems import InvalidFile, ProblemCollector
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.slot_files.cells import (
    KIND_OF_COLUMN,
    names_by_column,
    read_cells,
    write_cells,
)
from slotlock.domain.slot_files.columns import COLUMN_OF_FIELD
from slotlock.domain.slot_files.plan import CampaignSlots, ImportOptions, SlotFilePlan
from slotlock.domain.slot_files.problems import SlotFileProblem
from slotlock.domain.slot_files.slot_file import SlotFile, SlotRow, add_problem
from slotlock.domain.slot_files.times import DateOrder, TimeCells, timetable_of
from slotlock.domain.slots import editing
from slotlock.domain.slots.slot_patch import NO_SETTINGS, SlotDraft, SlotPatch

MAX_FILE_MEETINGS = 10_000
_FACT_OF = {
    "number": "number",
    "title": "title",
    "location": "location",
    "places": "capacity",
    "waiting_list": "waitlist_capacity",
    "time_zone": "time_zone",
}
_CLOCK = ("start_time", "end_time")
_LISTS = ("weekly", "period", "except", "meetings")
_NO_TIMES = dict.fromkeys(_LISTS, ()) | dict.fromkeys(("first_day", "last_day", *_CLOCK))
_DAYS = _NO_TIMES.keys() - {"meetings"}
_TIMES = _NO_TIMES.keys() | {"time_zone"}
_REQUIRED = {
    "title": ProblemCode.TITLE_MISSING.problem(),
    "places": ProblemCode.NOT_IN_RANGE.problem(minimum=1, maximum=MAX_CAPACITY),
}
_NO_CHANGES = SlotPatch()
# What spreadsheets make of 2-1, in English, German and Chinese.
_DATE_OF_SPREADSHEET = re.compile(
    r"\d{1,2}[-. ]+[^\W\d]{3,4}\.?([-. ]+\d{2,4})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    r"|(\d{4}[-/.年])?\d{1,2}[-/.月]\d{1,2}日|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}"
)
_DIGITS = re.compile(r"\d+")


def plan_slot_file(
    file: SlotFile,
    campaign: CampaignSlots,
    options: ImportOptions,
    now: datetime,
    new_slot_id: Callable[[], SlotId],
) -> SlotFilePlan | InvalidFile:
    """Plan the import of a file into a campaign, or return every problem."""
    planner = _Planner(file, campaign, options, now)
    for row in file.rows:
        planner.plan_row(row, new_slot_id)
    return planner.finish()


class _Planner:
    """Plans one row after the other, and collects the problems."""

    def __init__(
        self, file: SlotFile, campaign: CampaignSlots, options: ImportOptions, now: datetime
    ) -> None:
        self._campaign, self._options, self._now = campaign, options, now
        self._problems: ProblemCollector = file.new_collector()
        self._has_ids = any("id" in row.cells for row in file.rows)
        live = [each.slot for each in campaign.slots.values() if _is_live(each)]
        self._by_number = {slot.number: slot.id for slot in live if slot.number}
        self._without_zeros = {number.lstrip("0"): number for number in self._by_number}
        self._new_resources: dict[str, Resource] = {}
        self._new_numbers: dict[str | None, int] = {}
        self._created: list[SlotState] = []
        self._patches: dict[SlotId, SlotPatch] = {}
        self._edited: dict[SlotId, SlotState] = {}
        self._lines: dict[SlotId, int] = {}
        self._changed: dict[SlotId, tuple[str, ...]] = {}
        self._meetings = 0

    def plan_row(self, row: SlotRow, new_slot_id: Callable[[], SlotId]) -> None:
        """Plan the change of a slot, or a new one."""
        found = self._find(row.cells)
        if isinstance(found, Problem | FieldProblem):
            self._add(row.line, "number", found)
        elif found is None:
            self._create(new_slot_id(), row)
        elif (first := self._lines.setdefault(found.id, row.line)) != row.line:
            self._add(row.line, "number", SlotFileProblem.SAME_SLOT.problem(line=first))
        else:
            self._edit(found, row)

    def finish(self) -> SlotFilePlan | InvalidFile:
        """Return the plan of all rows, or the problems."""
        self._check_numbers()
        if self._meetings > MAX_FILE_MEETINGS:
            most = SlotFileProblem.TOO_MANY_MEETINGS.problem(maximum=MAX_FILE_MEETINGS)
            self._add(max(self._lines.values()), "meetings", most)
        if self._problems.count:
            return self._problems.to_invalid_file()
        named = self._lines.keys() & self._campaign.slots.keys()
        live = {slot_id for slot_id, each in self._campaign.slots.items() if _is_live(each)}
        return SlotFilePlan(
            tuple(self._created),
            self._patches,
            self._edited,
            len(named) - len(self._patches),
            len(live - named),
            tuple(self._new_resources.values()),
            self._lines,
            self._changed,
        )

    def _find(self, cells: Mapping[str, Any]) -> SlotState | Problem | FieldProblem | None:
        """Return the slot of a row, None for a new one, or the problem."""
        slots, number = self._campaign.slots, cells.get("number")
        if "id" in cells:
            found = slots.get(SlotId(cells["id"].removeprefix("slot_")))
            return found or SlotFileProblem.UNKNOWN_ID.of("id")
        if number is None:
            return SlotFileProblem.NUMBER_MISSING.problem()
        if slot_id := self._by_number.get(number):
            return slots[slot_id]
        similar = self._without_zeros.get(number.lstrip("0"))
        if similar and number.isdecimal() and not self._has_ids:
            return SlotFileProblem.SIMILAR_NUMBER.problem(similar=similar)
        if _DATE_OF_SPREADSHEET.fullmatch(number):
            return SlotFileProblem.NUMBER_IS_A_DATE.problem()
        return None

    def _create(self, slot_id: SlotId, row: SlotRow) -> None:
        self._lines[slot_id] = row.line
        first = self._new_numbers.setdefault(row.cells.get("number"), row.line)
        if first != row.line:
            self._add(row.line, "number", SlotFileProblem.SAME_SLOT.problem(line=first))
            return
        none = {**_NO_TIMES, "time_zone": self._options.time_zone}
        cells = _changed(none, row.cells)
        missing = [column for column in _REQUIRED if column not in cells]
        for column in missing:
            self._add(row.line, column, _REQUIRED[column])
        meetings = self._meetings_of(row, none)
        names = self._resources(row.line, (), cells)
        if missing or meetings is None:
            return
        facts = {fact: cells[name] for name, fact in _FACT_OF.items() if name in cells}
        base = replace(NO_SETTINGS, time_zone=self._options.time_zone, kind=SlotKind.COURSE)
        settings = replace(base, **facts)
        draft = SlotDraft(
            settings,
            **{"start": None, "end": None, **_times_of(meetings, settings.time_zone)},
            published=False,
            group_limits=cells.get("group_limits", ()),
            resource=names[0] if names else None,
            several_resources=names if len(names) > 1 else (),
            terms=self._campaign.terms,
            description=cells.get("description"),
        )
        created = editing.create(slot_id, draft, self._now)
        if isinstance(created, InvalidInput):
            self._add_all(row.line, created)
        else:
            self._created.append(created)

    def _edit(self, state: SlotState, row: SlotRow) -> None:
        changes = self._changes(state.slot, row)
        if changes == _NO_CHANGES:
            return
        line, decision = row.line, editing.edit(state, changes, self._now)
        match decision.outcome:
            case InvalidInput() as invalid:
                self._add_all(line, invalid)
            case SlotCancelled():
                self._add(line, "id", SlotFileProblem.SLOT_CANCELLED.problem())
            case CapacityBelowTaken(taken=count):
                self._add(line, "places", SlotFileProblem.CAPACITY_BELOW_TAKEN.problem(count=count))
        for after in decision.changed_slots:
            self._patches[state.id], self._edited[state.id] = changes, after

    def _changes(self, slot: Slot, row: SlotRow) -> SlotPatch:
        """Return what a row changes of a slot: the cells that are not those of an export."""
        description = self._campaign.descriptions.get(slot.id)
        texts = write_cells(slot, description, self._campaign.resources)
        before, _ = read_cells(texts, DateOrder.UNKNOWN)
        changed = _changed(before, row.cells)
        if (number := changed.get("number")) and _is_same_number(slot.number or "", number):
            del changed["number"]
        elif number and _DATE_OF_SPREADSHEET.fullmatch(number):
            self._add(row.line, "number", SlotFileProblem.NUMBER_IS_A_DATE.problem())
        self._changed[slot.id] = tuple(changed)
        patch: dict[str, Any] = {
            name: changed[name] for name in ("group_limits", "description") if name in changed
        }
        given = {fact: changed[name] for name, fact in _FACT_OF.items() if name in changed}
        if given:
            patch |= {"settings": replace(NO_SETTINGS, **given), "given": frozenset(given)}
        if changed.keys() & _TIMES:
            meetings = self._meetings_of(row, before)
            if meetings and meetings != slot.all_meetings:
                times = _times_of(meetings, given.get("time_zone", slot.time_zone))
                patch |= {"timetable": None, **times} if slot.meetings else times
        names = self._resources(row.line, slot.resources, changed)
        if names != slot.resources:
            several = names if len(names) > 1 else ()
            patch |= {"resource": names[0] if names else None, "several_resources": several}
        return SlotPatch(**patch)

    def _meetings_of(self, row: SlotRow, before: Mapping[str, Any]) -> tuple[Meeting, ...] | None:
        """Return the meetings of a row; None, and a problem, if there are none.

        `meetings` and the other columns replace each other, and so do weekdays with times and the
        times of all: those that the file lacks count only if the file has none of the others.
        """
        given = {name: row.cells[name] for name in _TIMES if name in row.cells}
        left = {name: before[name] for name in _TIMES}
        if any(given.get(name) not in (None, ()) for name in _DAYS):
            left["meetings"] = ()
        weekly = given.get("weekly")
        if given.get("period") or (weekly and all(each.start for each in weekly)):
            left |= {name: _NO_TIMES[name] for name in _CLOCK}
        if given.get("meetings"):
            left |= {name: _NO_TIMES[name] for name in _DAYS}
        times = left | given
        meetings = TimeCells(except_days=times.pop("except"), **times).to_meetings()
        if isinstance(meetings, FieldProblem):
            self._add(row.line, "first_day", meetings)
            return None
        self._meetings += len(meetings)
        return meetings

    def _resources(
        self, line: int, old: tuple[str, ...], changed: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return the names of the resources of a slot: the same ones stay in the same order."""
        if not changed.keys() & KIND_OF_COLUMN.keys():
            return old
        named = names_by_column(old, self._campaign.resources) | {
            column: tuple(self._spelled(line, column, name) for name in changed[column])
            for column in KIND_OF_COLUMN
            if column in changed
        }
        names = dict.fromkeys(name for column in KIND_OF_COLUMN for name in named[column])
        stayed = [name for name in old if name in names]
        return tuple(dict.fromkeys((*stayed, *names)))

    def _spelled(self, line: int, column: str, name: str) -> str:
        """Return the name of a resource in its own spelling; an unknown one is a problem."""
        known = self._campaign.resources.get(name) or self._new_resources.get(name_key(name))
        if known is not None:
            return known.name
        problem = validate_name(name)
        if problem is None and self._options.creates_resources:
            self._new_resources[name_key(name)] = Resource(name, KIND_OF_COLUMN[column])
            return name
        if problem is None:
            unknown = unknown_resource(column, name, self._campaign.resource_names)
            problem = unknown.problems[0].message
        self._add(line, column, problem)
        return name

    def _add_all(self, line: int, invalid: InvalidInput) -> None:
        for each in invalid.problems:
            self._add(line, COLUMN_OF_FIELD.get(each.field, each.field), each.message)

    def _add(self, line: int, column: str, problem: Problem | FieldProblem) -> None:
        add_problem(self._problems, line, column, problem)

    def _check_numbers(self) -> None:
        """Count a problem for each slot whose number another one has after the import."""
        after = {**self._campaign.slots, **self._edited}
        live = [each.slot for each in (*after.values(), *self._created) if _is_live(each)]
        counts = Counter(slot.number for slot in live)
        changed = self._edited.keys() | {each.id for each in self._created}
        for slot in live:
            if slot.number and slot.id in changed and counts[slot.number] > 1:
                self._add(self._lines[slot.id], "number", ProblemCode.NUMBER_TAKEN.problem())


def _times_of(meetings: Sequence[Meeting], time_zone: str) -> dict[str, Any]:
    """Return the times of a draft or a patch; a single meeting has no timetable."""
    if len(meetings) == 1:
        return {"start": meetings[0].start, "end": meetings[0].end}
    return {"timetable": timetable_of(meetings, time_zone)}


def _is_live(state: SlotState) -> bool:
    return state.slot.status is not SlotStatus.CANCELLED


def _changed(before: Mapping[str, Any], cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells that say something else."""
    return {
        column: value
        for column, value in cells.items()
        if column not in before or value != before[column]
    }


def _is_same_number(before: str, after: str) -> bool:
    """Return whether a spreadsheet made 12 of 0012, or 2026-02-01 of 2-1."""
    if after == before.lstrip("0"):
        return True
    parts, dated = ({*map(int, _DIGITS.findall(each))} for each in (before, after))
    return bool(parts) and parts <= dated and bool(_DATE_OF_SPREADSHEET.fullmatch(after))
