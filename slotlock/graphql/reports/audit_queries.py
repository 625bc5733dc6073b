"""What organisers can read of the past: who did what, when and to whom."""

from datetime import datetime
from typing import Annotated, TypeVar

import strawberry
from strawberry import argument, field

from slotlock.domain.audit.log import AuditAction, AuditFilter
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, First, require_valid_first
from slotlock.graphql.core.cursors import decode_audit_position, encode_audit_position
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.reports.audit_types import AuditConnection, AuditEntry
from slotlock.services.campaigns import reports

AUDIT_LOG_CURSOR = "auditLog"
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
    actions: list[AuditAction] | None = field(
        default=None, description="What happened: one of these."
    )
    from_: datetime | None = field(
        default=None, name="from", description="It was at this time or later."
    )
    until: datetime | None = field(default=None, description="It was before this time.")

    def to_domain(self) -> AuditFilter:
        """The same as the desk knows it. Errors: BAD_USER_INPUT."""
        wanted = AuditFilter(
            campaign_id=_require_found(
                self.campaign_id, ids.parse_campaign_id(self.campaign_id or "")
            ),
            slot_id=_require_found(self.slot_id, ids.parse_slot_id(self.slot_id or "")),
            user_id=_require_found(self.user_id, ids.parse_user_id(self.user_id or "")),
            by=_require_found(self.by, ids.parse_user_id(self.by or "")),
            system_only=self.by_nobody,
            actions=None if self.actions is None else frozenset(self.actions),
            since=self.from_,
            before=self.until,
        )
        if not wanted.is_bounded:
            text = "Say which campaign, slot or person it is about, who did it, or what it was."
            raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, text)
        return wanted


AuditFilterArgument = Annotated[AuditLogFilter, argument(description="Which entries.")]


@strawberry.type
class AuditQueries:
    @field(
        description="Everything that happened to bookings and in waiting lists, and what "
        "organisers did besides, the newest first. Organisers only."
    )
    async def audit_log(
        self,
        info: Info,
        filter: AuditFilterArgument,  # noqa: A002
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> AuditConnection:
        _ = info.context.require_organizer
        wanted, position = filter.to_domain(), decode_audit_position(AUDIT_LOG_CURSOR, after)
        page = await reports.audit_log(
            info.context.services, wanted, require_valid_first(first), position
        )
        items = [
            (encode_audit_position(AUDIT_LOG_CURSOR, e.position), AuditEntry.from_domain(e))
            for e in page.items
        ]
        return AuditConnection.from_items(items, has_more=page.has_more, after=after)


def _require_found(global_id: str | None, parsed: Id | None) -> Id | None:
    if global_id is not None and parsed is None:
        raise GraphQLRequestError(
            ErrorCode.BAD_USER_INPUT, f"There is nothing of the id {global_id[:60]!r} here."
        )
    return parsed
