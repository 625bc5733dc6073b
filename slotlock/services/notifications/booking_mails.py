"""The parts of a mail about a user's bookings: one for each booking, as it is now."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from slotlock.domain.audit.audit_notes import SCHEDULE_FIELDS, edits_shown_with, field_edits
from slotlock.domain.audit.staff_edits import parts_of, resource_names, with_staff_apart
from slotlock.domain.booking.booking import Booking, BookingId, BookingRef, SlotId, WaitlistEntryId
from slotlock.domain.booking.rules.expiry import without_expired
from slotlock.domain.booking.slot import Slot
from slotlock.domain.notifications.booking_news import (
    STATUS_KINDS,
    BookingNews,
    Place,
    current_news,
    is_news,
)
from slotlock.domain.notifications.mail_kinds import (
    CANCELLED,
    EDITED,
    KINDS_WITH_NOTE,
    WAITLIST_ENDED,
    first_mail,
)
from slotlock.domain.notifications.outbox import MAX_RETRIED, OutboxEntry, OutboxState
from slotlock.domain.reports.calendar_events import (
    CalendarEvent,
    EventStatus,
    events_of_booking,
    removed_events,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.schedule_texts import format_schedule, format_time
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mail.mail_message import CalendarInvitation
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services
from slotlock.services.notifications.recipients import names_of, to_guardian
from slotlock.services.slots.calendars import with_descriptions

# What calendars do with the events of a mail, in this order.
METHODS = ("REQUEST", "CANCEL")
OVER = "it is over, or nobody sees it any more"
OVERTAKEN = "a later change has a mail of its own"


@value_object
class BookingPart:
    """What a mail says about a booking: the values of its template, and events for calendars."""

    booking_id: BookingId
    kind: str
    values: Mapping[str, object]
    events: tuple[CalendarEvent, ...] = ()


@value_object
class UserPlace(Place):
    """A place, the one that its user has in the slot instead, and whether the user waits there.

    `reader_id` is who reads of it: the user, or a guardian.
    """

    reader_id: UserId
    other: Booking | None = None
    is_waiting: bool = False


async def load_booking_parts(
    services: Services,
    entries: Sequence[OutboxEntry],
    language: str,
    board_url: str,
    dependents: Mapping[UserId, User],
) -> list[BookingPart] | str:
    """Return the parts about the bookings of these entries, as they are now, or why there are none.

    Entries that are overtaken have no part, nor do slots that are over, deleted or hidden. The note
    of a campaign stands in one part, which is about a place that the user keeps. All entries have
    one reader: the user of the bookings, or a guardian of these dependents.
    """
    is_repeated = entries[0].attempts > 1
    entries = sorted(entries, key=lambda each: each.at)
    places = await _load_places(services, entries)
    reason, parts = OVER, dict[BookingId, BookingPart]()
    for place in places.values():
        moved_to = place.booking.moved_to if place else None
        if place is None or (moved_to and moved_to.booking_id in places):
            continue
        moves = await _load_moves(services, place, places, {entry.change_id for entry in entries})
        ids = {each.booking.id for each in moves}
        of_booking = [entry for entry in entries if entry.booking_id in ids]
        if is_repeated and await _is_edited_again(services, of_booking):
            reason = OVERTAKEN
            continue
        dependent = dependents.get(place.booking.user_id)
        child = names_of([dependent] if dependent else [])
        part = await _load_part(services, of_booking, moves, language, board_url, child)
        if isinstance(part, BookingPart):
            # The place that replaced an ended one has its calendars, too.
            before = parts.get(part.booking_id)
            events = {each.uid: each for each in (*(before.events if before else ()), *part.events)}
            parts[part.booking_id] = replace(part, events=tuple(events.values()))
        elif part == OVERTAKEN:
            reason = OVERTAKEN
    if not parts:
        return reason
    notes = [part.values["note"] if part.kind in KINDS_WITH_NOTE else "" for part in parts.values()]
    return [
        replace(part, values={**part.values, "note": note if notes.index(note) == number else ""})
        for number, (part, note) in enumerate(zip(parts.values(), notes, strict=True))
    ]


async def _load_places(
    services: Services, entries: Sequence[OutboxEntry]
) -> dict[BookingId, UserPlace | None]:
    """Return the bookings that these entries are about, by the time of their first entries."""
    refs = {
        entry.booking_id: (
            BookingRef(entry.slot_id, entry.booking_id),
            entry.about_id,
            entry.user_id,
        )
        for entry in entries
        if entry.booking_id and entry.slot_id and entry.about_id and entry.user_id
    }
    return {
        booking_id: await _find_place(services, ref, user_id, reader_id)
        for booking_id, (ref, user_id, reader_id) in refs.items()
    }


async def _load_moves(
    services: Services,
    place: UserPlace,
    places: Mapping[BookingId, UserPlace | None],
    ids: set[str],
) -> list[UserPlace]:
    """Return a booking and those that were moved to it, the oldest first.

    The oldest one is that of which the user knows, if there is one.
    """
    moves = [place]
    while (ref := moves[0].booking.moved_from) is not None:
        if not is_news(moves[0], ids) and not await _is_waiting(services, moves[0]):
            break
        before = places.get(ref.booking_id) or await _find_place(
            services, ref, place.booking.user_id, place.reader_id
        )
        if before is None:
            break
        moves.insert(0, before)
    return moves


async def _is_waiting(services: Services, place: UserPlace) -> bool:
    """Return whether the first mail about a booking has not left, such as after a refusal."""
    mail = first_mail(place.booking)
    if mail and place.reader_id != place.booking.user_id:
        mail = to_guardian(mail, place.reader_id)
    entry = await services.outbox.find(mail.id) if mail else None
    return entry is not None and entry.state is not OutboxState.SENT


async def _load_part(
    services: Services,
    entries: Sequence[OutboxEntry],
    moves: Sequence[UserPlace],
    language: str,
    board_url: str,
    child: str,
) -> BookingPart | str:
    """Return what these entries say about a booking, or why they say nothing."""
    now, is_hidden, reader_id = services.now(), moves[-1].slot.is_hidden, moves[-1].reader_id
    news = current_news(entries, moves)
    if moves[-1].slot.end <= now or (is_hidden and not (news and news.kind == CANCELLED.name)):
        return OVER
    about = next((place for place in moves if news and place.booking == news.about.booking), None)
    if news is None or about is None or (news.kind == WAITLIST_ENDED.name and about.is_waiting):
        return OVERTAKEN
    if about.other is not None:
        if not news.removed:
            return OVERTAKEN
        # The user has a place there again, and may read of that only; calendars lose the old one.
        place = Place(about.slot, about.other)
        kind = STATUS_KINDS[about.other.status]
        news = BookingNews(kind, place, added=place, removed=news.removed)
    slot, booking = news.about.slot, news.about.booking
    values: dict[str, object] = {
        **await slot_values(services, slot, language, board_url, slot.meeting_url_for(booking)),
        "child": child,
        "by": await _find_name(services, news.by, reader_id)
        if news.by not in (booking.user_id, reader_id)
        else None,
        "by_user": news.by == reader_id,
        "slot_cancelled": news.is_for_all,
        "cancel_reason": slot.cancellation.reason if slot.cancellation else None,
        "has_others": slot.terms is not None,
    }
    if booking.held_until is not None:
        values["deadline"] = format_time(booking.held_until, slot.time_zone, language)
    if news.kind == EDITED.name:
        old = await _find_old_values(services, news.about, reader_id, entries, language)
        if old is None:
            return OVERTAKEN
        values |= old
    elif news.before is not None:
        values |= old_values(news.before.slot, language)
    ids = {entry.change_id for entry in entries}
    events = await _changed_events(services, news, reader_id, ids, now)
    if events:
        events = await with_descriptions(services, events, board_url, language)
        events = [event.named_for(child) for event in events]
    return BookingPart(booking.id, news.kind, values, tuple(events))


async def _changed_events(
    services: Services, news: BookingNews, reader_id: UserId, ids: set[str], now: datetime
) -> Sequence[CalendarEvent]:
    """Return the events that calendars add, and those that they remove."""
    events: list[CalendarEvent] = []
    for place in (*((news.added,) if news.added else ()), *news.removed):
        slot, booking = place.slot, place.booking
        events += events_of_booking(slot, booking, now)
        if not is_news(place, ids):
            known = await _find_known_slot(services, place, reader_id, ids)
            events += removed_events(known, slot, booking, now)
    return events


async def _find_old_values(
    services: Services,
    place: Place,
    reader_id: UserId,
    entries: Sequence[OutboxEntry],
    language: str,
) -> dict[str, object] | None:
    """Return what a mail about edits shows of the slot before, and says that they changed.

    Return None if they were undone.

    Those before them, whose mails did not leave, may not be undone.
    """
    slot, booking = place.slot, place.booking
    own = [entry for entry in entries if entry.booking_id == booking.id]
    known = await _find_known_slot(services, place, reader_id, {each.change_id for each in own})
    for before in (_slot_before(slot, own), known):
        old, new = (
            old_values(each, language, each.meeting_url_for(booking)) for each in (before, slot)
        )
        if old == new:
            continue
        edits = edits_shown_with(booking, field_edits(SCHEDULE_FIELDS, before, slot))
        names = resource_names(edits)
        resources = await services.resources.find_all(names) if names else {}
        if changed := parts_of(with_staff_apart(edits, resources)):
            return {**old, "changed": changed}
    return None


async def _find_known_slot(
    services: Services, place: Place, reader_id: UserId, ids: set[str]
) -> Slot:
    """Return the slot of a booking as the reader of its mails knows it.

    That is before the edits of these entries, and of others whose mails did not leave.
    """
    edits, booking = [], place.booking
    of_reader = OutboxFilter(user_id=reader_id, kind=EDITED.name)
    for entry in (await services.outbox.page(of_reader, MAX_RETRIED)).items:
        if entry.booking_id != booking.id:
            continue
        if entry.state is OutboxState.SENT and entry.change_id not in ids:
            break
        edits.append(entry)
    return _slot_before(place.slot, edits[::-1])


async def _is_edited_again(services: Services, entries: Sequence[OutboxEntry]) -> bool:
    """Return whether these are edits, and a mail about a later one has left, or will."""
    last = entries[-1]
    if last.kind != EDITED.name:
        return False
    edits = OutboxFilter(user_id=last.user_id, kind=EDITED.name, since=last.at)
    found = await services.outbox.page(edits, MAX_RETRIED)
    return any(
        entry.booking_id == last.booking_id
        and entry.at > last.at
        and entry.state not in (OutboxState.FAILED, OutboxState.SUPPRESSED)
        for entry in found.items
    )


async def load_slot_values(
    services: Services, slot_id: SlotId, user_id: UserId, language: str, board_url: str
) -> dict[str, object] | str:
    """Return what a mail to a user without a place shows of a slot, or why there is none."""
    now = services.now()
    state = await services.slots.find(SlotQuery(slot_id, now, [user_id]))
    if state is None or state.slot.end <= now or state.slot.is_hidden:
        return OVER
    if without_expired(state, now).booking_of(user_id):
        return OVERTAKEN
    return {**await slot_values(services, state.slot, language, board_url), "note": ""}


async def _find_place(
    services: Services, ref: BookingRef, user_id: UserId, reader_id: UserId
) -> UserPlace | None:
    """Return a booking with its slot; a waitlist entry that ended counts as one."""
    now = services.now()
    loaded = await services.slots.find(SlotQuery(ref.slot_id, now, [user_id], [ref.booking_id]))
    if loaded is None:
        return None
    state = without_expired(loaded, now)
    found = (*state.bookings, *state.change.ended)
    booking = next((each for each in found if each.id == ref.booking_id), None)
    booking = booking or await services.ended_bookings.find(ref.booking_id)
    if booking is None:
        entry_id = WaitlistEntryId(ref.booking_id)
        ended = await services.ended_bookings.find_waitlist_entry(entry_id)
        booking = ended.to_booking() if ended else None
    if booking is None:
        return None
    other = None if booking.status.is_live else state.booking_of(booking.user_id)
    is_waiting = state.waitlist_entry_of(booking.user_id) is not None
    return UserPlace(state.slot, booking, reader_id, other, is_waiting)


async def _find_name(services: Services, by: UserId | None, reader_id: UserId) -> str | None:
    """Return the name of who changed a booking. Strangers read no names but of organizers."""
    user = await services.users.find_soon(by) if by else None
    if user is None or user.role.is_organizer:
        return user.name if user else None
    reader = await services.users.find_soon(reader_id)
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


def _slot_before(slot: Slot, entries: Sequence[OutboxEntry]) -> Slot:
    """Return the slot as it was before the edits of these entries, the oldest first."""
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
    if "resources" in before:
        names = (before["resources"] or "").split(", ")
        old = replace(old, resource=None, several_resources=tuple(filter(None, names)))
    return old


def _to_meeting(text: str) -> Meeting:
    start, end = map(datetime.fromisoformat, text.split("/"))
    return Meeting(start, end)


async def invitations_of(
    parts: Sequence[BookingPart],
    organizer: tuple[str, str],
    attendee: tuple[str, str],
    now: datetime,
) -> list[CalendarInvitation]:
    """Return the calendars that add the events of a mail, and those that remove others."""
    # Most processes send no mail, and the import takes longer than one.
    from slotlock.infrastructure.ical import render_invitation

    events = [event for part in parts for event in part.events]
    return [
        CalendarInvitation(method, await render_invitation(method, event, organizer, attendee, now))
        for method in METHODS
        for event in events
        if (event.status is EventStatus.CANCELLED) == (method == "CANCEL")
    ]
