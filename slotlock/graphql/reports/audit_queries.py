"""The query with which organizers read the audit log."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, TypeVar

import strawberry
from strawberry import argument, field

from slotlock.domain.audit.log import AuditFilter
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, First, require_valid_first
from slotlock.graphql.core.cursors import decode_audit_position, encode_audit_position
from slotlock.graphql.core.enums import AuditAction
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.reports.audit_types import AuditConnection, AuditEntry
from slotlock.services.campaigns import reports

AUDIT_LOG_CURSOR = "auditLog"
Id = TypeVar("Id")


@strawberry.input(
    description="The entries to find. A field that is left out matches every entry. At least one "
    "of `campaignId`, `slotId`, `userId` and `by` is required unless `actions` excludes everything "
    "that happens to bookings and on waiting lists."
)
class AuditLogFilter:
    campaign_id: strawberry.ID | None = field(
        default=None, description="Only entries about this campaign and its slots."
    )
    slot_id: strawberry.ID | None = field(default=None, description="Only entries about this slot.")
    user_id: strawberry.ID | None = field(
        default=None,
        description="Only entries about this user, or about their bookings and waiting list "
        "entries.",
    )
    by: strawberry.ID | None = field(
        default=None, description="Only actions that this user carried out."
    )
    by_nobody: bool = field(
        default=False,
        description="Only actions without a user: of the waiting list, the clock and the command "
        "line.",
    )
    actions: list[AuditAction] | None = field(
        default=None, description="Only entries with one of these actions."
    )
    from_: datetime | None = field(
        default=None, name="from", description="Only entries of this time or later."
    )
    until: datetime | None = field(default=None, description="Only entries before this time.")

    def to_domain(self) -> AuditFilter:
        """Convert the filter to the domain's. Errors: BAD_USER_INPUT."""
        require_valid_period("from", self.from_, "until", self.until)
        audit_filter = AuditFilter(
            campaign_id=_require_valid_id(
                "campaignId", "campaign", self.campaign_id, ids.parse_campaign_id
            ),
            slot_id=_require_valid_id("slotId", "slot", self.slot_id, ids.parse_slot_id),
            user_id=_require_valid_id("userId", "user", self.user_id, ids.parse_user_id),
            by=_require_valid_id("by", "user", self.by, ids.parse_user_id),
            system_only=self.by_nobody,
            actions=None if self.actions is None else frozenset(self.actions),
            since=self.from_,
            before=self.until,
        )
        if not audit_filter.is_bounded:
            raise bad_input(
                "filter",
                "The filter needs a campaign, a slot, a user, or actions that are not about "
                "bookings and waiting lists.",
            )
        return audit_filter


def _require_valid_id(
    field_name: str, kind: str, global_id: str | None, parse: Callable[[str], Id | None]
) -> Id | None:
    if global_id is None:
        return None
    parsed_id = parse(global_id)
    if parsed_id is None:
        raise bad_input(field_name, f"`{field_name}` must be the id of a {kind}.")
    return parsed_id


AuditFilterArgument = Annotated[AuditLogFilter, argument(description="The entries to find.")]


@strawberry.type
class AuditQueries:
    @field(
        description="The audit log, newest entries first: everything that happened to bookings and "
        "on waiting lists, and all changes by organizers. Organizers only."
    )
    async def audit_log(
        self,
        info: Info,
        filter: AuditFilterArgument,  # noqa: A002
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> AuditConnection:
        info.context.require_organizer()
        audit_filter = filter.to_domain()
        position = decode_audit_position(AUDIT_LOG_CURSOR, after)
        page = await reports.audit_log(
            info.context.services, audit_filter, require_valid_first(first), position
        )
        items = [
            (
                encode_audit_position(AUDIT_LOG_CURSOR, entry.position),
                AuditEntry.from_domain(entry),
            )
            for entry in page.items
        ]
        return AuditConnection.from_items(items, has_more=page.has_more, after=after)
