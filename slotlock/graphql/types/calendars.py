"""The address of a person's calendar as clients see it."""

from datetime import datetime

import strawberry
from strawberry import field


@strawberry.type(
    description="The private address of one's calendar of bookings (iCalendar). Whoever knows it "
    "reads the calendar without signing in."
)
class CalendarFeed:
    created_at: datetime = field(description="When it was made.")
    url: str | None = field(
        description="Its path on this server, to be subscribed to; told only in the answer to "
        "`createCalendarFeed`, else null."
    )
