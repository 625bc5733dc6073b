"""What organisers can read of the past: who did what, when and to whom."""

from datetime import datetime
from typing import Annotated, TypeVar

import strawberry
from strawberry import argument, field

from slotlock.desk import organising as desk
from slotlock.domain.audit import AuditFilter, Happening
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.cursors import audit_cursor, audit_position
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types.audit import AuditConnection, AuditEntry
from slotlock.graphql.types.connections import DEFAULT_FIRST, After, First, checked_first

AUDIT_LOG = "auditLog"
Id = TypeVar("Id")


@strawberry.input(
    description="Which entries; a field that is left out asks for nothing. At least one of "
    "`campaignId`, `slotId`, `userId` and `by` is needed, unless `what` names nothing that happens "
    "to bookings and in waiting lists."
)
class AuditLogFilter:
    campaign_id: strawberry.ID | None = field(default=None, description="Of a campaign.")
    slot_id: strawberry.ID | None = field(default=None, description="Of a slot.")
    user_id: strawberry.ID | None = field(
        default=None,
        description="Whose booking or turn in a waiting list it is, or to whom it was done.",
    )
    by: strawberry.ID | None = field(default=None, description="Who did it.")
    by_nobody: bool = field(
        default=False,
        description="Only what the clock, the waiting list and the command line did.",
    )
    what: list[Happening] | None = field(default=None, description="What happened: one of these.")
    from_: datetime | None = field(
        default=None, name="from", description="It was at this time or later."
    )
    until: datetime | None = field(default=None, description="It was before this time.")

    def as_domain(self) -> AuditFilter:
        """The same as the desk knows it. Errors: BAD_USER_INPUT."""
        wanted = AuditFilter(
            campaign_id=_named(self.campaign_id, ids.campaign_id_of(self.campaign_id or "")),
            slot_id=_named(self.slot_id, ids.slot_id_of(self.slot_id or "")),
            user_id=_named(self.user_id, ids.user_id_of(self.user_id or "")),
            by=_named(self.by, ids.user_id_of(self.by or "")),
            by_nobody=self.by_nobody,
            what=None if self.what is None else frozenset(self.what),
            since=self.from_,
            before=self.until,
        )
        if not wanted.bounded:
            text = "Say which campaign, slot or person it is about, who did it, or what it was."
            raise RefusedError(Code.BAD_USER_INPUT, text)
        return wanted


FilterArgument = Annotated[AuditLogFilter, argument(description="Which entries.")]


@strawberry.type
class AuditQueries:
    @field(
        description="Everything that happened to bookings and in waiting lists, and what "
        "organisers did besides, the newest first. Organisers only."
    )
    async def audit_log(
        self,
        info: Info,
        filter: FilterArgument,  # noqa: A002
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> AuditConnection:
        _ = info.context.organiser
        wanted, position = filter.as_domain(), audit_position(AUDIT_LOG, after)
        page = await desk.audit_log(info.context.desk, wanted, checked_first(first), position)
        items = [(audit_cursor(AUDIT_LOG, e.position), AuditEntry.of(e)) for e in page.items]
        return AuditConnection.of(items, more=page.more, after=after)


def _named(gid: str | None, found: Id | None) -> Id | None:
    if gid is not None and found is None:
        raise RefusedError(Code.BAD_USER_INPUT, f"There is nothing of the id {gid[:60]!r} here.")
    return found
