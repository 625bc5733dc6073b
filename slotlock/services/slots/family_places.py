"""What the caller and each of their dependents have of a slot."""

import asyncio
from collections.abc import Sequence

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import UserBanned
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.listing import SlotSelection
from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.domain.users.user import Caller, User
from slotlock.services.booking.eligibility import Eligibility, check_eligibility
from slotlock.services.container import Services
from slotlock.services.slots import viewer_queries


@value_object
class FamilyPlace:
    """A slot as one of a family reads it; None if they see no such slot.

    `dependent` is None for the caller, who reads it as such.
    """

    reader: Caller
    dependent: User | None
    slot_id: SlotId
    slot: ReadableSlot | None


async def find_family_places(
    services: Services,
    caller: Caller,
    dependents: Sequence[User],
    slot_id: SlotId,
    selection: SlotSelection,
) -> list[FamilyPlace]:
    """Return the places of the caller and of these dependents. Calls at once share their reads."""
    family = [(caller, None), *((caller.as_dependent(each.id), each) for each in dependents)]
    found = await asyncio.gather(
        *(viewer_queries.find_slot(services, slot_id, reader, selection) for reader, _ in family)
    )
    return [
        FamilyPlace(reader, dependent, slot_id, slot)
        for (reader, dependent), slot in zip(family, found, strict=True)
    ]


async def check_family_eligibility(services: Services, place: FamilyPlace) -> Eligibility:
    """Return whether the caller may book the place for its user."""
    if place.dependent is not None and place.dependent.banned:
        return Eligibility(place.reader, UserBanned(place.reader.user_id))
    return await check_eligibility(services, place.reader, place.slot_id)
