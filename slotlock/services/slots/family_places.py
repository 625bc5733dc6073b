"""What the caller and each of their dependents have of a slot."""

from collections.abc import Sequence

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import UserBanned
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.domain.users.user import Caller, User
from slotlock.services.booking.eligibility import Eligibility, check_eligibilities
from slotlock.services.container import Services


@value_object
class ReadPlace:
    """A slot as one of a family reads it; None if they see no such slot.

    `eligibility` is None unless it was asked for.
    """

    reader: Caller
    slot: ReadableSlot | None
    eligibility: Eligibility | None


async def find_family_places(
    services: Services,
    caller: Caller,
    dependents: Sequence[User],
    slot_id: SlotId,
    slot: ReadableSlot | None,
    *,
    checks_eligibility: bool,
) -> list[ReadPlace]:
    """Return the places of the caller and then of these dependents, from one reading of the slot.

    `slot` is as the caller sees it. Calls for many slots at once share their reads.
    """
    readers = [caller, *(caller.as_dependent(each.id) for each in dependents)]
    checked: Sequence[Eligibility | None] = [None] * len(readers)
    if checks_eligibility:
        checked = await check_eligibilities(services, readers, slot_id)
    places = [ReadPlace(caller, slot, checked[0])]
    if caller.is_organizer and slot and not is_visible(slot.slot, readers[-1]):
        slot = None  # dependents are members
    for dependent, reader, eligibility in zip(dependents, readers[1:], checked[1:], strict=True):
        is_banned = eligibility is not None and dependent.banned
        refused = Eligibility(reader, UserBanned(dependent.id)) if is_banned else eligibility
        places.append(ReadPlace(reader, slot, refused))
    return places
