"""The data of users that decisions in a slot depend on: groups and other bookings."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime

from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.slot import Slot
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId


@value_object
class OtherBooking:
    """A booking in another slot, with the facts of that slot, on which limits depend."""

    booking: Booking
    slot: Slot


@value_object
class UserContext:
    """The groups of a user, and the bookings that count for decisions in other slots.

    `email_verified` is false only if it was loaded, and the user has an address without proof.

    `version` grows with every booking of the user in a slot where other bookings count. A decision
    that depends on `bookings` is written only if the version is still the same.
    """

    user_id: UserId
    groups: tuple[str, ...] = ()
    version: int = 0
    bookings: tuple[OtherBooking, ...] = ()
    email_verified: bool = True


@value_object
class UserContexts:
    """The contexts of the users that were loaded for a decision.

    `require_verified_email` is a setting of the site, for all slots.
    """

    by_user: Mapping[UserId, UserContext] = field(default_factory=dict)
    require_verified_email: bool = False

    def context_of(self, user_id: UserId) -> UserContext | None:
        """Return the context of a user, if it was loaded."""
        return self.by_user.get(user_id)

    def groups_for(self, slot: Slot, user_id: UserId) -> tuple[str, ...]:
        """Return the groups of a user, if decisions in this slot depend on groups."""
        context = self.by_user.get(user_id)
        return context.groups if context and slot.needs_user_groups else ()

    def lacks_verification(self, user_id: UserId) -> bool:
        """Return whether the user has an address that is not verified."""
        context = self.by_user.get(user_id)
        return context is not None and not context.email_verified

    def other_bookings_for(
        self, slot: Slot, user_id: UserId, now: datetime
    ) -> tuple[OtherBooking, ...]:
        """Return the user's unexpired bookings in other slots, if decisions depend on them."""
        context = self.by_user.get(user_id)
        if context is None or not slot.depends_on_other_bookings:
            return ()
        return tuple(
            other
            for other in context.bookings
            if other.slot.id != slot.id and not other.booking.is_expired_at(now)
        )

    def with_bookings(self, slot: Slot, bookings: Iterable[Booking]) -> "UserContexts":
        """Return the contexts with new bookings in a slot, for decisions in other slots."""
        by_user = dict(self.by_user)
        for booking in bookings:
            if context := by_user.get(booking.user_id):
                known = (*context.bookings, OtherBooking(booking, slot))
                by_user[booking.user_id] = replace(context, bookings=known)
        return UserContexts(by_user, self.require_verified_email)

    def without_booking(self, booking: Booking) -> "UserContexts":
        """Return the contexts as if the user did not have this booking."""
        context = self.by_user.get(booking.user_id)
        if context is None:
            return self
        others = tuple(each for each in context.bookings if each.booking.id != booking.id)
        by_user = {**self.by_user, booking.user_id: replace(context, bookings=others)}
        return UserContexts(by_user, self.require_verified_email)


NO_CONTEXTS = UserContexts()
