"""What a mail says about a booking, and what it changes in calendars: both follow from its state.

A mail leaves a minute after a change, or hours later. Until then, the booking may have changed
again, and each change has an entry of its own: an entry that is not the newest says nothing.
"""

from collections.abc import Sequence

from slotlock.domain.booking.booking import Booking, BookingAction, BookingStatus
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.notifications.mail_kinds import (
    BOOKED,
    CANCELLED,
    EDITED,
    HELD,
    MOVED,
    REMINDER,
    WAITLIST_ENDED,
    first_mail,
    newest_mail,
)
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

# Calendars have the event of a reminder already.
WITHOUT_EVENTS = {WAITLIST_ENDED.name, REMINDER.name}
STATUS_KINDS = {BookingStatus.CONFIRMED: BOOKED.name, BookingStatus.HELD: HELD.name}


@value_object
class Place:
    """A booking with its slot, both as they are now."""

    slot: Slot
    booking: Booking


@value_object
class BookingNews:
    """The kind of a mail, the place that it is about, and who changed it.

    `before` is the place from which the booking was moved. Calendars add `added` and remove
    `removed`, of which the user knows, or may know.
    """

    kind: str
    about: Place
    by: UserId | None = None
    before: Place | None = None
    added: Place | None = None
    removed: tuple[Place, ...] = ()

    @property
    def is_for_all(self) -> bool:
        """Whether the place, or the wait for one, ended with its slot."""
        slot, booking = self.about.slot, self.about.booking
        has_waited = booking.history[-1].action is BookingAction.WAITLIST_LEFT
        return slot.cancellation is not None and (booking.status.is_live or has_waited)


def is_news(place: Place, ids: set[str]) -> bool:
    """Return whether these entries are the first that say anything of the booking."""
    mail = first_mail(place.booking)
    return mail is not None and mail.id in ids


def current_news(entries: Sequence[OutboxEntry], places: Sequence[Place]) -> BookingNews | None:
    """Return what entries about a booking say now; None if they are overtaken.

    The last one of `places` is the booking as it is now, and the others are those that were moved
    to it, the oldest first: all since the one of which the user knows.
    """
    ids = {entry.change_id for entry in entries}
    place, oldest = places[-1], places[0]
    slot, booking = place.slot, place.booking
    if entries[-1].kind == REMINDER.name:
        is_right = _is_still_right(entries[-1], place)
        return BookingNews(REMINDER.name, place) if is_right else None
    newest = newest_mail(slot, booking)
    is_live = booking.status.is_live and slot.cancellation is None
    if newest is None or newest.id not in ids:
        is_edited = any(
            entry.kind == EDITED.name and entry.booking_id == booking.id for entry in entries
        )
        return BookingNews(EDITED.name, place, added=place) if is_live and is_edited else None
    is_known = not is_news(oldest, ids)
    removed = tuple(
        each for each in places if not is_news(each, ids) and not (is_live and each is place)
    )
    if newest.kind == WAITLIST_ENDED.name and slot.cancellation is not None:
        return BookingNews(CANCELLED.name, place, slot.cancellation.by)
    if newest.kind in WITHOUT_EVENTS:
        return BookingNews(newest.kind, place)
    if not is_live:
        about = oldest if is_known else place
        return BookingNews(newest.kind, about, _by(newest), removed=removed)
    kind, before = _kind_of_place(newest.kind, places, is_known=is_known)
    by = booking.history[0].by if kind == MOVED.name else _by(newest)
    return BookingNews(kind, place, by, before, added=place, removed=removed)


def _kind_of_place(
    newest_kind: str, places: Sequence[Place], *, is_known: bool
) -> tuple[str, Place | None]:
    """Return the kind of a mail about a place that the user has, and the place before."""
    place, oldest = places[-1], places[0]
    is_move, status_kind = newest_kind == MOVED.name, STATUS_KINDS[place.booking.status]
    # A hold of which the user does not know has a deadline to say.
    names_both = is_known or (is_move and status_kind == BOOKED.name)
    if names_both and oldest.slot.id != place.slot.id:
        return MOVED.name, oldest
    return (status_kind if is_move else newest_kind), None


def _by(mail: OutboxEntry) -> UserId | None:
    return UserId(mail.data["by"]) if "by" in mail.data else None


def _is_still_right(reminder: OutboxEntry, place: Place) -> bool:
    """Return whether the booking and the start are still those that a mail reminds of."""
    slot, booking = place.slot, place.booking
    return (
        slot.status is SlotStatus.PUBLISHED
        and booking.status is BookingStatus.CONFIRMED
        and slot.start.isoformat() == reminder.data["start"]
    )
