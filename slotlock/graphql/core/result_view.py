"""The inputs of the presentation of a result, besides its outcome."""

from collections.abc import Mapping
from dataclasses import field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import Caller


@value_object
class ResultView:
    """The viewer of a result, and the slots that its outcome names."""

    viewer: Caller | None
    slots: Mapping[SlotId, SlotState] = field(default_factory=dict)
