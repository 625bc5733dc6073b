"""The permission to book for other users: teammates, and all users for organizers."""

from collections.abc import Collection, Sequence

from slotlock.domain.booking.booking_refusals import (
    NotTeammate,
    OnBehalfRefusal,
    UserBanned,
    UserNotFound,
)
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import Caller, UserId
from slotlock.services.container import Services


@value_object
class BookingPermissions:
    """For which users the caller may not book, and the teams that permit the others."""

    refusals: dict[UserId, OnBehalfRefusal]
    team_versions: tuple[TeamVersion, ...] = ()


async def check_booking_permissions(
    services: Services, caller: Caller, user_ids: Sequence[UserId]
) -> BookingPermissions:
    """Check for which of these users the caller may book now."""
    others = {user_id for user_id in user_ids if user_id != caller.user_id}
    if not others:
        return BookingPermissions({})
    permitted: Collection[UserId] = others
    versions: tuple[TeamVersion, ...] = ()
    if not caller.is_organizer:
        permitted, versions = await services.teams.find_teammates(caller.user_id, others)
    refusals: dict[UserId, OnBehalfRefusal] = {
        user_id: NotTeammate(user_id) for user_id in others if user_id not in permitted
    }
    users = await services.users.find_many(permitted)
    refusals |= {user_id: UserNotFound(user_id) for user_id in permitted if user_id not in users}
    refusals |= {user.id: UserBanned(user.id) for user in users.values() if user.banned}
    return BookingPermissions(refusals, versions)
