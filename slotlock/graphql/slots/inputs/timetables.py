"""The meetings of a course."""

from datetime import date, datetime, time

import strawberry
from strawberry import field

from slotlock.domain.schedule import meetings
from slotlock.domain.schedule.timetables import Timetable, WeeklyMeeting
from slotlock.graphql.core.enums import Weekday


@strawberry.input(description="A meeting that takes place every week.")
class WeeklyInput:
    weekday: Weekday = field(description="The day of the week on which the meeting starts.")
    start_time: time = field(description="When the meeting starts, in the slot's time zone.")
    end_time: time = field(
        description="When the meeting ends, in the slot's time zone. A time before the start is on "
        "the next day."
    )

    def to_domain(self) -> WeeklyMeeting:
        """Convert the meeting to the domain's."""
        return WeeklyMeeting(self.weekday, self.start_time, self.end_time)


@strawberry.input(description="A single meeting.")
class MeetingInput:
    start_time: datetime = field(description="When the meeting starts.")
    end_time: datetime = field(description="When the meeting ends.")

    def to_domain(self) -> meetings.Meeting:
        """Convert the meeting to the domain's."""
        return meetings.Meeting(self.start_time, self.end_time)


@strawberry.input(
    description="The meetings of a course, at most 500. Weekly meetings keep their local time when "
    "the clocks change."
)
class TimetableInput:
    first: date = field(description="The first day of the course.")
    last: date = field(description="The last day of the course, at most two years after the first.")
    weekly: list[WeeklyInput] = field(
        default_factory=list, description="The meetings that take place every week."
    )
    holidays: list[date] = field(
        default_factory=list, description="Days on which no weekly meeting starts."
    )
    extra: list[MeetingInput] = field(default_factory=list, description="Additional meetings.")

    def to_domain(self) -> Timetable:
        """Convert the timetable to the domain's."""
        return Timetable(
            self.first,
            self.last,
            tuple(meeting.to_domain() for meeting in self.weekly),
            tuple(self.holidays),
            tuple(meeting.to_domain() for meeting in self.extra),
        )
