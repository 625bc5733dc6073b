"""The inputs of the presentation of a result, besides its outcome."""

from collections.abc import Mapping
from dataclasses import field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import Caller, UserId


@value_object
class ResultView:
    """The viewer of a result, the slots that its outcome names, and whom the request was for.

    `booked_for` is None if that is not known, as for the tickets of an organizer and for the
    bookings that an organizer changes.
    """

    viewer: Caller | None
    slots: Mapping[SlotId, SlotState] = field(default_factory=dict)
    booked_for: UserId | None = None

    def address(self, user_id: UserId | None, *, own: str, other: str, neutral: str) -> str:
        """Choose the message for a viewer who reads about themselves, or about somebody else.

        `user_id` is the user that the outcome names, if it names one.
        """
        about = user_id or self.booked_for
        if about is None or self.viewer is None:
            return neutral
        return own if about == self.viewer.user_id else other
