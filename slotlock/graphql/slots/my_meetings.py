"""The caller's meetings in a period, for a timetable."""

from datetime import datetime, timedelta
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.schedule import meetings
from slotlock.graphql.context import Info
from slotlock.graphql.core.arguments import ReadForArgument, require_valid_period
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.slots.facts import slot_selection
from slotlock.graphql.slots.slot_types import Booking, Slot, WaitlistEntry
from slotlock.services.slots import viewer_queries

MAX_PERIOD = timedelta(days=31)


@strawberry.type(
    description="A meeting of a slot that the caller booked, or for which they wait. The booking "
    "or the waiting list entry is that of `slot`."
)
class MyMeeting:
    start_time: datetime = field(description="When the meeting starts.")
    end_time: datetime = field(description="When the meeting ends.")
    slot: Slot = field(description="The slot that meets.")

    @field(description="The caller's booking of the slot; null if they wait.")
    def booking(self) -> Booking | None:
        return self.slot.my_booking

    @field(description="The caller's waiting list entry; null if they have a booking.")
    def waitlist_entry(self) -> WaitlistEntry | None:
        return self.slot.my_waitlist_entry


From = Annotated[
    datetime, argument(name="from", description="Only meetings that end after this time.")
]
Until = Annotated[
    datetime,
    argument(
        description="Only meetings that start before this time, at most 31 days after `from`."
    ),
]


@strawberry.type
class MyMeetingQueries:
    @field(
        description="The meetings of the caller's bookings and waiting list entries in a period, "
        "by start: what a timetable shows. At most 500."
    )
    async def my_meetings(
        self, info: Info, from_: From, until: Until, user_id: ReadForArgument = None
    ) -> list[MyMeeting]:
        caller = info.context.caller if user_id is None else await info.context.caller_for(user_id)
        require_valid_period("from", from_, "until", until)
        if until - from_ > MAX_PERIOD:
            raise bad_input("until", f"The period has at most {MAX_PERIOD.days} days.")
        found = await viewer_queries.list_meetings(
            info.context.services, caller, meetings.Meeting(from_, until), slot_selection(info)
        )
        return [
            MyMeeting(start_time=meeting.start, end_time=meeting.end, slot=Slot(slot, caller))
            for meeting, slot in found
        ]
