"""Whether a caller may book a place now, decided as for a booking, without a write."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import BookingRefusal, UserBanned
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.container import Services
from slotlock.services.previews import Preview
from slotlock.services.slot_command import UnexpectedOutcomeError


@value_object
class Eligibility:
    """The refusal that a caller would get, with the slots that it shows; None if they may book."""

    caller: Caller
    refusal: BookingRefusal | UserBanned | None = None
    slots: Mapping[SlotId, SlotState] = field(default_factory=dict)


async def check_eligibility(services: Services, caller: Caller, slot_id: SlotId) -> Eligibility:
    """Return whether the caller may book a place. Calls for many slots at once share their reads.

    In a slot for the queue only, it is the decision about a request of the queue: the caller has
    to know before they wait whether they can get a place.

    Raises:
        PyMongoError: MongoDB is unavailable.
    """
    return _eligibility(caller, await services.previews.decide(_command(caller, slot_id)))


async def check_eligibilities(
    services: Services, callers: Sequence[Caller], slot_id: SlotId
) -> list[Eligibility]:
    """Return whether each caller may book a place, as `check_eligibility` does."""
    commands = [_command(caller, slot_id) for caller in callers]
    refused = await services.previews.decide_all(commands)
    return list(map(_eligibility, callers, refused))


def _command(caller: Caller, slot_id: SlotId) -> BookSlotCommand:
    return BookSlotCommand.create(
        caller, slot_id, caller.user_id, hold=False, key=None, is_queued=True
    )


def _eligibility(caller: Caller, refused: Preview) -> Eligibility:
    if refused is None:
        return Eligibility(caller)
    if not isinstance(refused.outcome, BookingRefusal):
        raise UnexpectedOutcomeError(refused.outcome)
    return Eligibility(caller, refused.outcome, refused.slots)
