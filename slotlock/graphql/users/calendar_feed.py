"""One's own calendar: making its address, asking whether there is one, and ending it."""

from datetime import datetime

import strawberry
from strawberry import field

from slotlock.auth import calendar_tokens
from slotlock.graphql.context import Info


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


@strawberry.type
class CalendarQueries:
    @field(description="The address of the caller's calendar, without its secret; null for none.")
    async def my_calendar_feed(self, info: Info) -> CalendarFeed | None:
        created_at = await calendar_tokens.created_at(info.context.auth, info.context.caller)
        return CalendarFeed(created_at=created_at, url=None) if created_at else None


@strawberry.type
class CalendarMutations:
    @field(
        description="Make an address for the caller's calendar; the one before ends. It is told "
        "here and never again."
    )
    async def create_calendar_feed(self, info: Info) -> CalendarFeed:
        made = await calendar_tokens.create(info.context.auth, info.context.caller)
        url = f"/calendars/private/{made.token}.ics"
        return CalendarFeed(created_at=made.created_at, url=url)

    @field(description="End the address of the caller's calendar at once; whether there was one.")
    async def revoke_calendar_feed(self, info: Info) -> bool:
        return await calendar_tokens.revoke(info.context.auth, info.context.caller)
