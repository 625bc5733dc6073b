"""The problems of the courses in a file, besides those of fields."""

from enum import Enum

from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.validation import FieldProblem


class SlotFileProblem(Enum):
    """Why a file of courses is invalid. The value of a member is the problem as a sentence."""

    TOO_MANY_ROWS = "A file can have at most {maximum} courses. Please split it."
    TOO_MANY_MEETINGS = "A file can have at most {maximum} meetings. Please split it."
    NO_NUMBER_COLUMN = (
        "The first line must name the columns, among them id or number. The columns are {columns}, "
        "also in German, French, Spanish and Chinese, separated by commas, semicolons or tabs."
    )
    NUMBER_MISSING = "A course needs a number, by which the next file finds it."
    NUMBER_IS_A_DATE = "A spreadsheet made a date of this number. Please format the column as text."
    SIMILAR_NUMBER = (
        "The campaign has a course with the number {similar}. A spreadsheet may have dropped zeros."
    )
    SAME_SLOT = "Line {line} has the same course."
    UNKNOWN_ID = "The campaign has no course with this id. For a new course, empty this cell."
    INVALID_DATE = "This is not a date such as 2030-05-31."
    AMBIGUOUS_DATE = "It is not clear which part is the month. Please write 2030-05-31."
    INVALID_TIME = "This is not a time such as 13:30."
    INVALID_WEEKLY = "Please write weekdays, such as 'Mon 13:30-15:00; Wed 09:00-10:00'."
    UNKNOWN_PERIOD = "The school has no such period on that weekday. Organizers enter its periods."
    INVALID_MEETINGS = (
        "Please write meetings such as 2030-05-31T13:30+02:00/2030-05-31T15:00+02:00, separated by "
        "semicolons."
    )
    INVALID_LIMITS = "Please write limits of groups, such as '7a=5; class:*=2'."
    TIMES_MISSING = "A course needs a first day, a start time and an end time."
    WEEKDAYS_MISSING = "A course of several days needs its weekdays."
    TIMES_TWICE = "The times of this course are in other columns, too. Please empty one of them."
    CAPACITY_BELOW_TAKEN = "{count} places are taken."
    SLOT_CANCELLED = "This course is cancelled and does not change."
    RESOURCE_TAKEN = "'{slot}' uses {name} at that time."

    def problem(self, **values: int | str) -> Problem:
        """Return the problem with the values that its text contains."""
        return Problem(self, values)

    def of(self, column: str) -> FieldProblem:
        """Return the problem of a column."""
        return FieldProblem(column, self.problem())
