"""The parts of a mail about a user's bookings: one for each booking, by its latest change."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    BookingRef,
    BookingStatus,
    SlotId,
    WaitlistEntryId,
)
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.notifications.mail_kinds import CANCELLED, EDITED, REMINDER, WAITLIST_ENDED
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.reports.calendar_events import CalendarEvent, EventStatus, events_of_booking
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.schedule_texts import format_schedule, format_time
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mail.mail_message import CalendarInvitation
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services
from slotlock.services.slots.calendars import with_descriptions

# Calendars have the event of a reminder already.
WITHOUT_EVENTS = {WAITLIST_ENDED.name, REMINDER.name}
# What calendars do with the events of a mail, in this order.
METHODS = ("REQUEST", "CANCEL")


@value_object
class BookingPart:
    """What a mail says about a booking: the values of its template, and events for calendars."""

    kind: str
    values: Mapping[str, object]
    events: tuple[CalendarEvent, ...] = ()


async def load_booking_parts(
    services: Services, entries: Sequence[OutboxEntry], language: str, board_url: str
) -> list[BookingPart]:
    """Return the parts about the bookings of these entries, as they are now.

    Slots that are over, deleted or hidden have none. The note of a campaign stands in one part.
    """
    by_booking: dict[BookingId, list[OutboxEntry]] = {}
    for entry in sorted(entries, key=lambda each: each.at):
        if entry.booking_id is not None:
            by_booking.setdefault(entry.booking_id, []).append(entry)
    parts = []
    for of_booking in by_booking.values():
        part = await _load_part(services, of_booking, language, board_url)
        if part is not None:
            parts.append(part)
    notes = [part.values["note"] for part in parts]
    return [
        part if notes.index(note) == number else replace(part, values={**part.values, "note": ""})
        for number, (part, note) in enumerate(zip(parts, notes, strict=True))
    ]


async def _load_part(
    services: Services, entries: Sequence[OutboxEntry], language: str, board_url: str
) -> BookingPart | None:
    latest, now = entries[-1], services.now()
    ref = BookingRef(latest.slot_id or SlotId(""), latest.booking_id or BookingId(""))
    found = await _find_booking(services, ref)
    if found is None:
        return None
    slot, booking = found
    if slot.end <= now or (slot.is_hidden and latest.kind != CANCELLED.name):
        return None
    if latest.kind == REMINDER.name and not _is_still_right(latest, slot, booking):
        return None
    events = list(events_of_booking(slot, booking, now))
    by = UserId(latest.data["by"]) if "by" in latest.data else None
    link = slot.meeting_url_for(booking)
    values: dict[str, object] = {
        **await slot_values(services, slot, language, board_url, link),
        "by": await _find_name(services, by, booking) if by != booking.user_id else None,
        "by_user": by == booking.user_id,
        "slot_cancelled": slot.cancellation is not None,
    }
    if "held_until" in latest.data:
        deadline = datetime.fromisoformat(latest.data["held_until"])
        values["deadline"] = format_time(deadline, slot.time_zone, language)
    if latest.kind == EDITED.name:
        values |= _values_before(slot, booking, entries, language)
    elif booking.moved_from is not None:
        old = await _find_booking(services, booking.moved_from)
        if old is not None:
            events += events_of_booking(*old, now)
            values |= old_values(old[0], language)
    if latest.kind in WITHOUT_EVENTS:
        return BookingPart(latest.kind, values)
    described = await with_descriptions(services, events, board_url, language)
    return BookingPart(latest.kind, values, tuple(described))


def _is_still_right(reminder: OutboxEntry, slot: Slot, booking: Booking) -> bool:
    """Return whether the booking and the start are still those that a mail reminds of."""
    return (
        slot.status is SlotStatus.PUBLISHED
        and booking.status is BookingStatus.CONFIRMED
        and slot.start.isoformat() == reminder.data["start"]
    )


async def load_slot_values(
    services: Services, slot_id: SlotId, language: str, board_url: str
) -> dict[str, object] | None:
    """Return what a mail about a slot shows of it; None if it is over, deleted or hidden."""
    state = await services.slots.find(SlotQuery(slot_id, services.now()))
    if state is None or state.slot.end <= services.now() or state.slot.is_hidden:
        return None
    return {**await slot_values(services, state.slot, language, board_url), "note": ""}


async def _find_booking(services: Services, ref: BookingRef) -> tuple[Slot, Booking] | None:
    """Return a booking with its slot; a waitlist entry that ended counts as one."""
    query = SlotQuery(ref.slot_id, services.now(), booking_ids=[ref.booking_id])
    state = await services.slots.find(query)
    if state is None:
        return None
    booking = state.booking_by_id(ref.booking_id)
    booking = booking or await services.ended_bookings.find(ref.booking_id)
    if booking is None:
        entry_id = WaitlistEntryId(ref.booking_id)
        ended = await services.ended_bookings.find_waitlist_entry(entry_id)
        booking = ended.to_booking() if ended else None
    return None if booking is None else (state.slot, booking)


async def _find_name(services: Services, by: UserId | None, booking: Booking) -> str | None:
    """Return the name of who changed a booking. Strangers read no names but of organizers."""
    user = await services.users.find_soon(by) if by else None
    if user is None or user.role.is_organizer:
        return user.name if user else None
    reader = await services.users.find_soon(booking.user_id)
    return user.name if reader and reader.has_known_name else None


async def slot_values(
    services: Services, slot: Slot, language: str, board_url: str, link: str | None = None
) -> dict[str, object]:
    """Return what `booking.txt` shows of a slot, with the link for users who may see it."""
    campaign = await services.campaigns.find(slot.terms.campaign_id) if slot.terms else None
    return {
        **_schedule_values(slot, language, link),
        "url": f"{board_url}#/slot/slot_{slot.id}" if board_url else "",
        "note": (campaign.mail_note if campaign else None) or "",
    }


def _schedule_values(slot: Slot, language: str, link: str | None) -> dict[str, object]:
    return {
        "title": slot.title,
        "when": format_schedule(slot.all_meetings, slot.time_zone, language, "\n"),
        "place": slot.place or "",
        "link": link or "",
    }


def old_values(slot: Slot, language: str, link: str | None = None) -> dict[str, object]:
    """Return what mails show of a slot as it was."""
    return {f"old_{name}": each for name, each in _schedule_values(slot, language, link).items()}


def _values_before(
    slot: Slot, booking: Booking, entries: Sequence[OutboxEntry], language: str
) -> dict[str, object]:
    """Return when and where the slot was before the edits of these entries."""
    before: dict[str, str | None] = {}
    for entry in entries:
        for field, old, _ in json.loads(entry.data.get("edits", "[]")):
            before.setdefault(field, old)
    start, end = (
        datetime.fromisoformat(text) if (text := before.get(name)) else current
        for name, current in (("startTime", slot.start), ("endTime", slot.end))
    )
    meetings = slot.meetings
    if "meetings" in before:
        meetings = (
            tuple(map(_to_meeting, (before["meetings"] or "").split(", ")))
            if before["meetings"]
            else ()
        )
    old = replace(
        slot,
        start=start,
        end=end,
        meetings=meetings,
        time_zone=before.get("timeZone") or slot.time_zone,
        location=before.get("location", slot.location),
        meeting_url=before.get("meetingUrl", slot.meeting_url),
    )
    if "resources" in before or "resource" in before:
        names = before.get("resources") or before.get("resource") or ""
        old = replace(old, resource=None, several_resources=tuple(filter(None, names.split(", "))))
    return old_values(old, language, old.meeting_url_for(booking))


def _to_meeting(text: str) -> Meeting:
    start, end = map(datetime.fromisoformat, text.split("/"))
    return Meeting(start, end)


async def invitations_of(
    parts: Sequence[BookingPart], organizer: tuple[str, str], attendee: tuple[str, str]
) -> list[CalendarInvitation]:
    """Return the calendars that add the events of a mail, and those that remove them."""
    # Most processes send no mail, and the import takes longer than one.
    from slotlock.infrastructure.ical import render_invitation

    events = [event for part in parts for event in part.events]
    return [
        CalendarInvitation(method, await render_invitation(method, chosen, organizer, attendee))
        for method in METHODS
        if (
            chosen := [
                event
                for event in events
                if (event.status is EventStatus.CANCELLED) == (method == "CANCEL")
            ]
        )
    ]
