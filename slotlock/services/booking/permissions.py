"""What callers may do for other users, or in slots that they lead; organizers may do it for all."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import (
    NotTeammate,
    OnBehalfRefusal,
    UserBanned,
    UserNotFound,
)
from slotlock.domain.resources.resource import LEADS_AFTER_END
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import Caller, UserId
from slotlock.services.container import Services

# For which user the caller asks for a place in which slot.
Claim = tuple[SlotId, UserId]


@value_object
class BookingPermissions:
    """Which claims the caller may not make, and the teams that permit the others."""

    refusals: Mapping[Claim, OnBehalfRefusal]
    team_versions: tuple[TeamVersion, ...] = ()


async def check_booking_permissions(
    services: Services, caller: Caller, claims: Collection[Claim]
) -> BookingPermissions:
    """Check which of these claims the caller may make now."""
    others = {user_id for _, user_id in claims if user_id != caller.user_id}
    if not others:
        return BookingPermissions({})
    users = await services.users.find_many(others)
    permitted: Collection[UserId] = others
    versions: tuple[TeamVersion, ...] = ()
    if not caller.is_organizer:
        permitted, versions = await services.teams.find_teammates(caller.user_id, others)
    refusals: dict[Claim, OnBehalfRefusal] = {}
    for claim in claims:
        _, user_id = claim
        if user_id not in others:
            continue
        if user_id not in permitted:
            refusals[claim] = NotTeammate(user_id)
        elif (user := users.get(user_id)) is None:
            refusals[claim] = UserNotFound(user_id)
        elif user.banned:
            refusals[claim] = UserBanned(user_id)
    return BookingPermissions(refusals, versions)


async def with_led_slots(
    services: Services, caller: Caller, slot_ids: Collection[SlotId]
) -> Caller:
    """Return the caller with those of these slots that they lead now.

    They lead the published slots of a resource whose leader they are, until some time after the
    end.
    """
    since = services.now() - LEADS_AFTER_END
    led = await services.resources.find_led_slots(caller.user_id, slot_ids, since)
    return replace(caller, leads=led) if led else caller
