"""The outbox, as organizers see it: which mails and calls were sent, wait or failed.

Admins let what failed be sent again.
"""

import asyncio
from datetime import datetime
from functools import partial
from typing import Annotated

import strawberry
from strawberry import Parent, argument, field

from slotlock.domain.notifications import outbox
from slotlock.domain.shared.pagination import Position
from slotlock.domain.shared.validation import InvalidInput
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_OUTBOX_ENTRY, ListCursors
from slotlock.graphql.core.enums import Channel, OutboxState
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.outcomes import Result, ResultView, register_value
from slotlock.graphql.slots.slot_types import Slot, load_slot
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter, OutboxRepository
from slotlock.services.notifications.outbox_retry import retry_chosen, retry_entry


@strawberry.type(description="A mail or a webhook call that was sent, is to be sent, or failed.")
class OutboxEntry:
    id: strawberry.ID = field(
        description="What it is about: its kind, its subject and the version of the subject."
    )
    channel: Channel = field(description="How it is sent.")
    kind: str = field(description="What it says, such as `booked` or `cancelled`.")
    state: OutboxState = field(description="What became of it.")
    at: datetime = field(description="When that happened of which it tells.")
    attempts: int = field(description="How often somebody tried to send it.")
    recipient: str | None = field(
        description="The address to which it was sent, or is to be sent if the user has another."
    )
    note: str | None = field(description="The last response, or the reason why it was not sent.")
    done_at: datetime | None = field(
        description="When it was sent, failed or was suppressed; null while it waits."
    )

    @field(description="When it is sent, or sent again; null once that is over.")
    def due_at(entry: Parent[outbox.OutboxEntry]) -> datetime | None:
        return entry.due_at if entry.done_at is None else None

    @field(
        description="Whether `retryOutboxEntry` can send it again: it failed, its address was "
        "undeliverable, or it waits after an attempt, and it still has what it says."
    )
    def can_retry(entry: Parent[outbox.OutboxEntry]) -> bool:
        return entry.can_retry

    @field(description="The user who gets it; null for a call, and without an account.")
    async def user(entry: Parent[outbox.OutboxEntry], info: Info) -> User | None:
        return await load_referenced_user(info, entry.user_id) if entry.user_id else None

    @field(description="The users whom it is about, if `user` gets it as their guardian.")
    async def dependents(entry: Parent[outbox.OutboxEntry], info: Info) -> list[User]:
        found = await asyncio.gather(*(load_referenced_user(info, id_) for id_ in entry.dependents))
        return [user for user in found if user is not None]

    @field(description="The slot that it is about; null for another subject.")
    async def slot(entry: Parent[outbox.OutboxEntry], info: Info) -> Slot | None:
        return await load_slot(info, entry.slot_id) if entry.slot_id else None


@strawberry.input(description="The entries to find. A field that is left out matches every entry.")
class OutboxFilterInput:
    state: OutboxState | None = field(default=None, description="Only entries of this state.")
    channel: Channel | None = field(default=None, description="Only mails, or only calls.")
    user_id: strawberry.ID | None = field(
        default=None, description="Only what was sent to this user, or to guardians about them."
    )
    slot_id: strawberry.ID | None = field(default=None, description="Only what is about this slot.")
    kind: str | None = field(default=None, description="Only this kind, such as `invitation`.")
    since: datetime | None = field(
        default=None, description="Only what is about something that happened since this time."
    )

    def to_domain(self) -> OutboxFilter:
        """Convert the filter. Errors: BAD_USER_INPUT."""
        user_id = self.user_id and ids.parse_user_id(self.user_id)
        slot_id = self.slot_id and ids.parse_slot_id(self.slot_id)
        if self.user_id and user_id is None:
            raise bad_input("userId", "`userId` must be the id of a user.")
        if self.slot_id and slot_id is None:
            raise bad_input("slotId", "`slotId` must be the id of a slot.")
        return OutboxFilter(
            self.state,
            self.channel,
            None,
            slot_id or None,
            self.kind,
            self.since,
            user_id or None,
        )


register_value(outbox.OutboxEntry, OutboxEntry, None)
RETRY_OUTBOX_ENTRY = Result[outbox.OutboxEntryQueued | InvalidInput](
    "RetryOutboxEntryResult", "The entry, or why it is not sent again."
)
RETRY_FAILED = Result[outbox.OutboxEntriesQueued | InvalidInput](
    "RetryFailedOutboxEntriesResult", "How many entries are sent again, or a refusal."
)
MAX_COUNT = 1000
OutboxConnection = Connection[OutboxEntry]
OUTBOX = ListCursors("outbox", BY_OUTBOX_ENTRY, lambda entry: Position(entry.at, entry.id))
OutboxFilterArgument = Annotated[
    OutboxFilterInput | None, argument(description="The entries to find.")
]


async def _count(entries: OutboxRepository, chosen: OutboxFilter) -> int | None:
    count = await entries.count(chosen, MAX_COUNT + 1)
    return count if count <= MAX_COUNT else None


@strawberry.type(description="How many addresses of users get no mail.")
class UndeliverableAddresses:
    count: int = field(description="How many are undeliverable: a mail server rejected them.")
    first_at: datetime | None = field(description="When the first of them was; null without one.")
    last_at: datetime | None = field(description="When the last of them was; null without one.")


@strawberry.type
class OutboxQueries:
    @field(
        description="How many users get no mail because their address is undeliverable. "
        "Organizers only."
    )
    async def undeliverable_addresses(self, info: Info) -> UndeliverableAddresses:
        info.context.require_organizer()
        found = await info.context.services.users.count_undeliverable()
        return UndeliverableAddresses(
            count=found.count, first_at=found.first_at, last_at=found.last_at
        )

    @field(
        description="The mails and webhook calls of the last 30 days, the newest first. Organizers "
        "only."
    )
    async def outbox(
        self,
        info: Info,
        filter: OutboxFilterArgument = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> OutboxConnection:
        info.context.require_organizer()
        chosen = filter.to_domain() if filter else OutboxFilter()
        entries = info.context.services.outbox
        page = await entries.page(chosen, *page_start(OUTBOX, first, after))
        return OutboxConnection(page, page.items, OUTBOX, after, partial(_count, entries, chosen))


@strawberry.type
class OutboxMutations:
    @RETRY_OUTBOX_ENTRY.mutation(
        "Send an entry that failed, whose address was undeliverable, or that waits for its next "
        "attempt, at once. What is sent with it is one mail with it. The address of its user "
        "counts as deliverable again. Admins only."
    )
    async def retry_outbox_entry(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The entry.")],
    ) -> object:
        admin, services = info.context.require_admin(), info.context.services
        outcome = await retry_entry(services.outbox, services.users, id, services.now())
        return RETRY_OUTBOX_ENTRY.present(outcome, ResultView(admin))

    @RETRY_FAILED.mutation(
        "Send again what failed, or was suppressed because the address was undeliverable: at most "
        "1000 entries that the filter finds, the newest first. Those that `canRetry` excludes "
        "stay. The addresses of their users count as deliverable again. Admins only."
    )
    async def retry_failed_outbox_entries(
        self, info: Info, filter: OutboxFilterArgument = None
    ) -> object:
        admin, services = info.context.require_admin(), info.context.services
        chosen = filter.to_domain() if filter else OutboxFilter()
        outcome = await retry_chosen(services.outbox, services.users, chosen, services.now())
        return RETRY_FAILED.present(outcome, ResultView(admin))
