"""The caller's calendar feed: an iCalendar of their bookings behind a secret address."""

from datetime import datetime

import strawberry
from strawberry import field

from slotlock.auth import calendar_tokens
from slotlock.graphql.context import Info


@strawberry.type(
    description="The private calendar feed (iCalendar) of a user's bookings. Anyone who knows its "
    "address can read it without signing in."
)
class CalendarFeed:
    created_at: datetime = field(description="When the feed was created.")
    url: str | None = field(
        description="The address of the feed: absolute if the server knows its public address, "
        "else a path on this server. Only `createCalendarFeed` returns it; null elsewhere."
    )
    organized_url: str | None = field(
        description="The address of a second calendar under the same secret: the published slots "
        "that the organizer created. Absolute or a path like `url`, and null wherever `url` is "
        "null, and for members."
    )


@strawberry.type
class CalendarQueries:
    @field(description="The caller's calendar feed without its address, or null if there is none.")
    async def my_calendar_feed(self, info: Info) -> CalendarFeed | None:
        created_at = await calendar_tokens.created_at(info.context.auth, info.context.caller)
        return (
            CalendarFeed(created_at=created_at, url=None, organized_url=None)
            if created_at
            else None
        )


@strawberry.type
class CalendarMutations:
    @field(
        description="Create a calendar feed for the caller and revoke the previous one. Only this "
        "response contains the address of the feed."
    )
    async def create_calendar_feed(self, info: Info) -> CalendarFeed:
        feed = await calendar_tokens.create(info.context.auth, info.context.caller)
        url = info.context.to_url(f"/calendars/private/{feed.token}")
        return CalendarFeed(
            created_at=feed.created_at,
            url=f"{url}.ics",
            organized_url=f"{url}/organized.ics" if info.context.caller.is_organizer else None,
        )

    @field(
        description="Revoke the caller's calendar feed immediately. Returns whether there was one."
    )
    async def revoke_calendar_feed(self, info: Info) -> bool:
        return await calendar_tokens.revoke(info.context.auth, info.context.caller)
