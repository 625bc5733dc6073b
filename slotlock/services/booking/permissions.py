"""What callers may do for other users, or in slots that they lead; organizers may do it for all."""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from datetime import timedelta

from slotlock.domain.booking.booking import MadeAs, SlotId
from slotlock.domain.booking.booking_refusals import (
    NotTeammate,
    OnBehalfRefusal,
    UserBanned,
    UserNotFound,
)
from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.campaigns.terms import has_group_of
from slotlock.domain.resources.resource import LEADS_AFTER_END
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import Caller, User, UserFilter, UserId
from slotlock.services.container import Services

# For which user the caller asks for a place in which slot.
Claim = tuple[SlotId, UserId]


@value_object
class BookingPermissions:
    """Which claims the caller may not make, and what permits the others.

    That is a team, whose version must stay the same until the write, or what the caller makes a
    booking as.
    """

    refusals: Mapping[Claim, OnBehalfRefusal]
    team_versions: tuple[TeamVersion, ...] = ()
    made_as: Mapping[Claim, MadeAs] = field(default_factory=dict)

    def permit(self, slot_id: SlotId, request: BookingRequest) -> BookingRequest:
        """Return a request with what the booking is made as."""
        return replace(request, made_as=self.made_as.get((slot_id, request.user_id)))


async def check_booking_permissions(
    services: Services, caller: Caller, claims: Collection[Claim]
) -> BookingPermissions:
    """Check which of these claims the caller may make now."""
    others = {user_id for _, user_id in claims if user_id != caller.user_id}
    if not others:
        return BookingPermissions({})
    users = await services.users.find_many(others)
    teammates: Collection[UserId] = others
    versions: tuple[TeamVersion, ...] = ()
    made_as: Mapping[Claim, MadeAs] = {}
    if not caller.is_organizer:
        teammates, versions = await services.teams.find_teammates(caller.user_id, others)
        left = [claim for claim in claims if claim[1] in others.difference(teammates)]
        made_as = dict.fromkeys(await _led_claims(services, caller, left, users), MadeAs.LEADER)
    refusals: dict[Claim, OnBehalfRefusal] = {}
    for claim in claims:
        _, user_id = claim
        if user_id not in others:
            continue
        if user_id not in teammates and claim not in made_as:
            refusals[claim] = NotTeammate(user_id)
        elif (user := users.get(user_id)) is None:
            refusals[claim] = UserNotFound(user_id)
        elif user.banned:
            refusals[claim] = UserBanned(user_id)
    return BookingPermissions(refusals, versions, made_as)


async def _led_claims(
    services: Services, caller: Caller, claims: Collection[Claim], users: Mapping[UserId, User]
) -> list[Claim]:
    """Return the claims for slots that the caller leads and for users whom leaders may book."""
    led: Mapping[SlotId, tuple[str, ...]] = {}
    if claims:
        led = await _find_led(services, caller, {slot_id for slot_id, _ in claims})
    return [
        (slot_id, user_id)
        for slot_id, user_id in claims
        if (user := users.get(user_id)) and has_group_of(led.get(slot_id, ()), user.groups)
    ]


async def with_dependents(services: Services, caller: Caller) -> Caller:
    """Return the caller with the users whose guardian they are now."""
    dependents = await services.users.find_dependents([caller.user_id])
    if not dependents:
        return caller
    return replace(caller, acts_for=frozenset(user.id for user in dependents))


async def is_guardian(services: Services, guardian_id: UserId, user_id: UserId) -> bool:
    """Return whether one user is a guardian of another now. Calls at once share a read."""
    user = await services.users.find_soon(user_id)
    return user is not None and guardian_id in user.guardians


async def with_led_slots(
    services: Services, caller: Caller, slot_ids: Collection[SlotId]
) -> Caller:
    """Return the caller with those of these slots that they lead now.

    They lead the published slots of a resource whose leader they are, until some time after the
    end.
    """
    led = await _find_led(services, caller, slot_ids, LEADS_AFTER_END)
    return replace(caller, leads=frozenset(led)) if led else caller


async def _find_led(
    services: Services,
    caller: Caller,
    slot_ids: Collection[SlotId],
    after_end: timedelta = timedelta(),
) -> Mapping[SlotId, tuple[str, ...]]:
    """Return the slots that the caller leads, each with the groups that leaders book.

    They are not over, or not longer than this.
    """
    since = services.now() - after_end
    return await services.resources.find_led_slots(caller.user_id, slot_ids, since)


async def find_bookable_users(
    services: Services,
    caller: Caller,
    slot_id: SlotId,
    text: str | None,
    first: int,
    after: str | None,
) -> Page[User]:
    """Return the next users whom the leader of a slot may book there, by `sort_name`."""
    groups = (await _find_led(services, caller, [slot_id])).get(slot_id, ())
    if not groups:
        return Page((), False)
    bookable = UserFilter(text, banned=False, group_patterns=groups)
    return await services.users.page(bookable, first, after)
