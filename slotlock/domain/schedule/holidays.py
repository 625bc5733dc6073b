"""Named lists of holidays, which series and courses share."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Annotated, NewType

from slotlock.domain.schedule.zones import validate_year
from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import is_blank, normalize_line, validate_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object

HolidayListId = NewType("HolidayListId", str)
# The id of a list as clients see it.
ShownHolidayListId = Annotated[str, "holiday list"]

MAX_NAME_LENGTH = 100
MAX_HOLIDAYS = 500
MAX_RANGE = timedelta(days=366)


@value_object
class Holiday:
    """Days without meetings from `first` to `last`, both included."""

    first: date
    last: date
    name: str = ""

    def __str__(self) -> str:
        """Return the holiday as the audit log shows it."""
        return f"{self.first}/{self.last} {self.name}".strip()

    @property
    def dates(self) -> frozenset[date]:
        """All days of the holiday."""
        days = range((self.last - self.first).days + 1)
        return frozenset(self.first + timedelta(days=number) for number in days)


@value_object
class HolidayList:
    """A list of holidays by date. No other list has its name, in whatever capitals."""

    id: HolidayListId
    name: str
    holidays: tuple[Holiday, ...]

    @property
    def dates(self) -> frozenset[date]:
        """All days of all holidays."""
        return frozenset[date]().union(*(holiday.dates for holiday in self.holidays))


@value_object
class HolidayListSaved:
    """The list has the requested state."""

    holiday_list: HolidayList


@refusal(message="This list of holidays does not exist.")
class HolidayListNotFound:
    """The list of holidays does not exist."""


@outcome
class HolidayListDeleted:
    """The list was deleted. Slots that were created with it stay as they are."""

    id: ShownHolidayListId = shown("The id of the deleted list.", name="holiday_list_id")


CreateHolidayListOutcome = HolidayListSaved | InvalidInput
UpdateHolidayListOutcome = HolidayListSaved | HolidayListNotFound | InvalidInput
DeleteHolidayListOutcome = HolidayListDeleted | HolidayListNotFound


def build_list(
    list_id: HolidayListId, name: str, holidays: Sequence[Holiday]
) -> HolidayList | InvalidInput:
    """Return the list with its texts on one line and its holidays by date, or its problems."""
    lines = [Holiday(each.first, each.last, normalize_line(each.name)) for each in holidays]
    built = HolidayList(
        list_id, normalize_line(name), tuple(sorted(set(lines), key=lambda h: (h.first, h.last)))
    )
    problems = (*_name_problems(built.name), *_holiday_problems(built.holidays))
    return InvalidInput(problems) if problems else built


def _name_problems(name: str) -> Iterator[FieldProblem]:
    problem = validate_line(name, MAX_NAME_LENGTH)
    if is_blank(name):
        problem = ProblemCode.NAME_MISSING.problem()
    if problem:
        yield FieldProblem("name", problem)


def _holiday_problems(holidays: Sequence[Holiday]) -> Iterator[FieldProblem]:
    if not 1 <= len(holidays) <= MAX_HOLIDAYS:
        yield FieldProblem("holidays", ProblemCode.HOLIDAY_COUNT.problem(maximum=MAX_HOLIDAYS))
    for holiday in holidays[:MAX_HOLIDAYS]:
        if problem := _problem_of(holiday):
            yield FieldProblem("holidays", problem.of(str(holiday.first)))
            return


def _problem_of(holiday: Holiday) -> Problem | None:
    if holiday.last < holiday.first:
        return ProblemCode.HOLIDAY_REVERSED.problem()
    if holiday.last - holiday.first > MAX_RANGE:
        return ProblemCode.HOLIDAY_TOO_LONG.problem()
    years = validate_year(holiday.first) or validate_year(holiday.last)
    return years or validate_line(holiday.name, MAX_NAME_LENGTH)
