"""What the caller and each of their dependents have of a slot, as clients see it."""

import strawberry
from strawberry import Parent, field

from slotlock.graphql.booking.booking_results import BookingEligibility
from slotlock.graphql.context import Info
from slotlock.graphql.core.outcomes import register_type
from slotlock.graphql.slots.slot_types import Booking, Slot, WaitlistEntry
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.services.booking.eligibility import Eligibility
from slotlock.services.slots import family_places
from slotlock.services.slots.family_places import check_family_eligibility


@strawberry.type(
    description="What the caller, or a dependent of theirs, has of a slot. It is as that user "
    "reads it, with codes and links."
)
class FamilyPlace:
    @field(description="The caller, or the dependent.")
    async def user(place: Parent[family_places.FamilyPlace], info: Info) -> User | None:
        if place.dependent is None:
            return await load_referenced_user(info, place.reader.user_id)
        return User.from_domain(place.dependent, info.context.viewer)

    @field(description="The user's active booking, or the one that was cancelled with the slot.")
    def booking(place: Parent[family_places.FamilyPlace]) -> Booking | None:
        return Slot(place.slot, place.reader).my_booking if place.slot else None

    @field(description="The user's entry on the waiting list.")
    def waitlist_entry(place: Parent[family_places.FamilyPlace]) -> WaitlistEntry | None:
        return Slot(place.slot, place.reader).my_waitlist_entry if place.slot else None

    @field(
        description="Whether the cancellation of the slot took a place from the user, or a "
        "position on the waiting list."
    )
    async def cancelled(place: Parent[family_places.FamilyPlace], info: Info) -> bool:
        slot = Slot(place.slot, place.reader) if place.slot else None
        return slot is not None and await slot.is_cancelled_for_viewer(info)

    @field(
        description="Whether the caller may book a place for the user now, and if not, why.",
        graphql_type=BookingEligibility,
    )
    async def eligibility(place: Parent[family_places.FamilyPlace], info: Info) -> Eligibility:
        return await check_family_eligibility(info.context.services, place)


register_type(family_places.FamilyPlace, FamilyPlace, lambda place, _view: place)
