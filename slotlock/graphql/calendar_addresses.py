"""One's own calendar: making its address, asking whether there is one, and ending it."""

import strawberry
from strawberry import field

from slotlock.auth import calendar_addresses as auth
from slotlock.graphql.context import Info
from slotlock.graphql.types.calendars import CalendarFeed


@strawberry.type
class CalendarQueries:
    @field(description="The address of the caller's calendar, without its secret; null for none.")
    async def my_calendar_feed(self, info: Info) -> CalendarFeed | None:
        created_at = await auth.created_at(info.context.auth, info.context.caller)
        return CalendarFeed(created_at=created_at, url=None) if created_at else None


@strawberry.type
class CalendarMutations:
    @field(
        description="Make an address for the caller's calendar; the one before ends. It is told "
        "here and never again."
    )
    async def create_calendar_feed(self, info: Info) -> CalendarFeed:
        made = await auth.create(info.context.auth, info.context.caller)
        url = f"/calendars/private/{made.token}.ics"
        return CalendarFeed(created_at=made.created_at, url=url)

    @field(description="End the address of the caller's calendar at once; whether there was one.")
    async def revoke_calendar_feed(self, info: Info) -> bool:
        return await auth.revoke(info.context.auth, info.context.caller)
