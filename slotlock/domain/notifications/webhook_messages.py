"""The messages of webhooks: which changes they follow from, and what they say.

A message has ids and a version only. Its reader asks the API for the rest, so that no message is
wrong because it arrives late. The version grows with the changes of the object that it is about.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from slotlock.domain.audit.audit_log import AuditAction, AuditEntry, NoteAction
from slotlock.domain.booking.booking import Booking, BookingAction, BookingId, SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.notifications.slot_changes import SlotChanges
from slotlock.domain.notifications.webhooks import PING, Webhook, WebhookEvent
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

_EVENT_OF = {
    BookingAction.BOOKED: WebhookEvent.BOOKING_CONFIRMED,
    BookingAction.CONFIRMED: WebhookEvent.BOOKING_CONFIRMED,
    BookingAction.HELD: WebhookEvent.BOOKING_HELD,
    BookingAction.OFFERED: WebhookEvent.BOOKING_HELD,
    BookingAction.PROMOTED: WebhookEvent.BOOKING_PROMOTED,
    BookingAction.MOVED: WebhookEvent.BOOKING_MOVED,
    BookingAction.CANCELLED: WebhookEvent.BOOKING_CANCELLED,
    BookingAction.EXPIRED: WebhookEvent.BOOKING_EXPIRED,
    BookingAction.CHECKED_IN: WebhookEvent.BOOKING_CHECKED_IN,
    BookingAction.NO_SHOW: WebhookEvent.BOOKING_NO_SHOW,
}
# The waiting list fills no slot that was not full before.
_FILLING_ACTIONS = {BookingAction.BOOKED, BookingAction.HELD, BookingAction.MOVED}
_SLOT_EVENT_OF: Mapping[AuditAction, WebhookEvent] = {
    NoteAction.SLOT_PUBLISHED: WebhookEvent.SLOT_PUBLISHED,
    NoteAction.SLOT_EDITED: WebhookEvent.SLOT_EDITED,
    NoteAction.SLOT_CANCELLED: WebhookEvent.SLOT_CANCELLED,
}

_DRAW_EVENT_OF: Mapping[AuditAction, WebhookEvent] = {
    NoteAction.DRAW_CLOSED: WebhookEvent.DRAW_CLOSED,
    NoteAction.DRAW_PUBLISHED: WebhookEvent.DRAW_PUBLISHED,
}


@value_object
class WebhookMessage:
    """What happened at `at`. Its id follows from the change; `ids` are those that clients see."""

    event: str
    id: str
    at: datetime
    version: int
    ids: dict[str, str]
    campaign_id: CampaignId | None = None
    slot_id: SlotId | None = None
    booking_id: BookingId | None = None
    user_id: UserId | None = None

    def to_entry(self, webhook: Webhook) -> OutboxEntry:
        """Return the entry that sends the message to a webhook."""
        data = {**self.ids, "version": self.version}
        timestamp = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        body = {"type": self.event, "timestamp": timestamp, "data": data}
        return OutboxEntry(
            f"{self.event}:{self.id}:{webhook.id}",
            Channel.WEBHOOK,
            self.event,
            self.at,
            self.at,
            self.user_id,
            self.slot_id,
            self.booking_id,
            data={"webhook": webhook.id, "body": json.dumps(body, separators=(",", ":"))},
        )


@value_object
class SiteChanges:
    """What happened from a time to another besides the changes of slots.

    `campaigns` are the published ones that were open in between, `notes` those about campaigns and
    users.
    """

    since: datetime
    until: datetime
    campaigns: Sequence[Campaign]
    notes: Sequence[AuditEntry]
    new_users: Sequence[tuple[UserId, datetime]]


def entries_for(
    webhooks: Sequence[Webhook], messages: Iterable[WebhookMessage]
) -> Iterator[OutboxEntry]:
    """Yield the entries of these messages for each webhook that gets them."""
    for message in messages:
        for webhook in webhooks:
            is_new = message.at >= webhook.enabled_at
            if is_new and webhook.wants(message.event, message.campaign_id):
                yield message.to_entry(webhook)


def ping_message(at: datetime, id_: str) -> WebhookMessage:
    """Return a message about nothing."""
    return WebhookMessage(PING, id_, at, 1, {})


def messages_about(changes: SlotChanges) -> Iterator[WebhookMessage]:
    """Yield what happened to a slot, its bookings and its waiting list."""
    for booking in changes.bookings:
        yield from _booking_messages(changes, booking)
    slot = changes.state.slot
    if slot.cancellation is not None and slot.cancellation.at >= changes.since:
        for booking in changes.state.bookings:
            cancelled = booking.with_entry(slot.cancellation.to_history_entry())
            yield _booking_message(changes, cancelled, len(booking.history))
    yield from _waitlist_messages(changes)
    yield from _slot_messages(changes)


def _booking_messages(changes: SlotChanges, booking: Booking) -> Iterator[WebhookMessage]:
    for index, entry in enumerate(booking.history):
        goes_on = entry.action is BookingAction.MOVED and booking.moved_to is not None
        if entry.at >= changes.since and entry.action in _EVENT_OF and not goes_on:
            yield _booking_message(changes, booking, index)


def _booking_message(changes: SlotChanges, booking: Booking, index: int) -> WebhookMessage:
    entry = booking.history[index]
    ids = {
        "bookingId": f"booking_{booking.slot_id}{booking.id}",
        "userId": f"user_{booking.user_id}",
        **_slot_ids(changes),
    }
    if entry.action is BookingAction.MOVED and (old := booking.moved_from):
        ids["movedFromId"] = f"booking_{old.slot_id}{old.booking_id}"
    return WebhookMessage(
        _EVENT_OF[entry.action],
        f"{booking.id}:{index}",
        entry.at,
        index + 1,
        ids,
        _campaign_id(changes),
        booking.slot_id,
        booking.id,
        booking.user_id,
    )


def _waitlist_messages(changes: SlotChanges) -> Iterator[WebhookMessage]:
    """Yield who joined the list, also if the entry has ended or become a booking, and who left."""
    joined = [(each.id, each.user_id, each.since) for each in changes.state.waitlist]
    joined += [(e.entry.id, e.entry.user_id, e.entry.since) for e in changes.ended_entries]
    left = [(each.entry.id, each.entry.user_id, each.at) for each in changes.ended_entries]
    promoted = [
        (booking.id, booking.user_id, booking.waited_since)
        for booking in changes.bookings
        if booking.waited_since is not None
        and booking.history[0].action in (BookingAction.PROMOTED, BookingAction.OFFERED)
    ]
    for event, version, entries in (
        (WebhookEvent.WAITLIST_JOINED, 1, [*joined, *promoted]),
        (WebhookEvent.WAITLIST_LEFT, 2, left),
    ):
        for entry_id, user_id, at in entries:
            if at >= changes.since:
                ids = {
                    "waitlistEntryId": f"waitlistEntry_{changes.state.id}{entry_id}",
                    "userId": f"user_{user_id}",
                    **_slot_ids(changes),
                }
                yield WebhookMessage(
                    event,
                    f"{entry_id}:{version}",
                    at,
                    version,
                    ids,
                    _campaign_id(changes),
                    changes.state.id,
                    user_id=user_id,
                )


def _slot_messages(changes: SlotChanges) -> Iterator[WebhookMessage]:
    for note in changes.notes:
        event = _SLOT_EVENT_OF.get(note.action)
        if note.action is NoteAction.SLOT_CREATED and _has_edit(
            note, "status", SlotStatus.PUBLISHED.name
        ):
            event = WebhookEvent.SLOT_PUBLISHED
        if event is not None:
            yield _slot_message(changes, event, note.position.id, note.at)
    if changes.state.is_booked and changes.state.slot.status is SlotStatus.PUBLISHED:
        filled = [
            (entry.at, f"{booking.id}:{index}")
            for booking in changes.state.bookings
            for index, entry in enumerate(booking.history)
            if entry.action in _FILLING_ACTIONS and entry.at >= changes.since
        ]
        if filled:
            at, cause = max(filled)
            yield _slot_message(changes, WebhookEvent.SLOT_FULL, cause, at)


def _slot_message(
    changes: SlotChanges, event: WebhookEvent, cause: str, at: datetime
) -> WebhookMessage:
    state = changes.state
    return WebhookMessage(
        event,
        f"{state.id}:{cause}",
        at,
        state.version,
        _slot_ids(changes),
        _campaign_id(changes),
        state.id,
    )


def site_messages_about(changes: SiteChanges) -> Iterator[WebhookMessage]:
    """Yield what happened to campaigns and users."""
    for campaign in changes.campaigns:
        for event, at in (
            (WebhookEvent.CAMPAIGN_OPENED, campaign.terms.opens_at),
            (WebhookEvent.CAMPAIGN_CLOSED, campaign.terms.closes_at),
        ):
            if changes.since <= at <= changes.until:
                yield _campaign_message(event, campaign.id, at)
    for note in changes.notes:
        if note.action is NoteAction.USER_ERASED and note.user_id is not None:
            yield _user_message(WebhookEvent.USER_ERASED, note.user_id, note.at, 2)
        elif note.campaign_id is not None and note.action in _DRAW_EVENT_OF:
            yield _campaign_message(_DRAW_EVENT_OF[note.action], note.campaign_id, note.at)
        elif note.campaign_id is not None and _has_edit(note, "published", "true"):
            yield _campaign_message(WebhookEvent.CAMPAIGN_PUBLISHED, note.campaign_id, note.at)
    for user_id, at in changes.new_users:
        yield _user_message(WebhookEvent.USER_CREATED, user_id, at, 1)


def _campaign_message(event: WebhookEvent, campaign_id: CampaignId, at: datetime) -> WebhookMessage:
    version = round(at.timestamp() * 1000)
    ids = {"campaignId": f"campaign_{campaign_id}"}
    return WebhookMessage(event, f"{campaign_id}:{version}", at, version, ids, campaign_id)


def _user_message(
    event: WebhookEvent, user_id: UserId, at: datetime, version: int
) -> WebhookMessage:
    ids = {"userId": f"user_{user_id}"}
    return WebhookMessage(event, user_id, at, version, ids, user_id=user_id)


def _has_edit(note: AuditEntry, field: str, after: str) -> bool:
    return any(edit.field == field and edit.after == after for edit in note.edits)


def _campaign_id(changes: SlotChanges) -> CampaignId | None:
    terms = changes.state.slot.terms
    return terms.campaign_id if terms else None


def _slot_ids(changes: SlotChanges) -> dict[str, str]:
    campaign_id = _campaign_id(changes)
    campaign = {"campaignId": f"campaign_{campaign_id}"} if campaign_id else {}
    return {"slotId": f"slot_{changes.state.id}", **campaign}
