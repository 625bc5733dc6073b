"""What callers may do for other users, or in slots that they lead; organizers may do it for all."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import (
    NotTeammate,
    OnBehalfRefusal,
    UserBanned,
    UserNotFound,
)
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.campaigns.terms import has_group_of
from slotlock.domain.resources.resource import LEADS_AFTER_END
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import Caller, User, UserFilter, UserId
from slotlock.services.container import Services

Outcome = TypeVar("Outcome")

# For which user the caller asks for a place in which slot.
Claim = tuple[SlotId, UserId]


@value_object
class BookingPermissions:
    """Which claims the caller may not make, and what permits the others.

    That is the caller, with the users for whom they act; a team, whose version must stay the same
    until the write; or the lead of a slot, for the claims `as_leader`.
    """

    caller: Caller
    refusals: Mapping[Claim, OnBehalfRefusal]
    team_versions: tuple[TeamVersion, ...] = ()
    as_leader: frozenset[Claim] = frozenset()

    def permit(self, slot_id: SlotId, request: BookingRequest) -> BookingRequest:
        """Return a request with what the booking is made as."""
        is_led = (slot_id, request.user_id) in self.as_leader
        return request.made_by(self.caller, leads=is_led)


async def check_booking_permissions(
    services: Services, caller: Caller, claims: Collection[Claim]
) -> BookingPermissions:
    """Check which of these claims the caller may make now."""
    others = {user_id for _, user_id in claims if user_id != caller.user_id}
    if not others:
        return BookingPermissions(caller, {})
    users = await services.users.find_many(others)
    caller = with_known_dependents(caller, users.values())
    permitted = set(others if caller.is_organizer else caller.acts_for)
    versions: tuple[TeamVersion, ...] = ()
    as_leader: list[Claim] = []
    if left := others - permitted:
        teammates, versions = await services.teams.find_teammates(caller.user_id, left)
        permitted.update(teammates)
        asked = [claim for claim in claims if claim[1] in left.difference(teammates)]
        as_leader = await _led_claims(services, caller, asked, users)
    refusals: dict[Claim, OnBehalfRefusal] = {}
    for claim in claims:
        _, user_id = claim
        if user_id not in others:
            continue
        if user_id not in permitted and claim not in as_leader:
            refusals[claim] = NotTeammate(user_id)
        elif refusal := account_refusal(user_id, users.get(user_id)):
            refusals[claim] = refusal
    if as_leader:
        caller = replace(caller, leads=caller.leads | {slot_id for slot_id, _ in as_leader})
    return BookingPermissions(caller, refusals, versions, frozenset(as_leader))


def account_refusal(user_id: UserId, user: User | None) -> UserNotFound | UserBanned | None:
    """Return why nobody can book for a user; None if others may."""
    if user is None:
        return UserNotFound(user_id)
    return UserBanned(user_id) if user.banned else None


def with_known_dependents(caller: Caller, users: Iterable[User]) -> Caller:
    """Return the caller with those of these users whose guardian they are."""
    acts_for = frozenset(user.id for user in users if caller.user_id in user.guardians)
    return replace(caller, acts_for=acts_for) if acts_for else caller


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
    return with_known_dependents(caller, await services.users.find_dependents([caller.user_id]))


async def with_reader(
    services: Services, caller: Caller, result: CommandResult[Outcome], *user_ids: UserId
) -> CommandResult[Outcome]:
    """Return a result about these users with its caller, whose relations a replay lacks."""
    if result.caller or caller.is_organizer or {caller.user_id}.issuperset(user_ids):
        return result
    caller = await with_dependents(services, caller)
    if not {caller.user_id, *caller.acts_for}.issuperset(user_ids):
        caller = await with_led_slots(services, caller, result.slots)
    return replace(result, caller=caller)


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
    slot_id: SlotId | None,
    text: str | None,
    first: int,
    after: str | None,
) -> Page[User]:
    """Return the next users whom the leader of a slot may book there, by `sort_name`."""
    groups = (await _find_led(services, caller, [slot_id])).get(slot_id, ()) if slot_id else ()
    if not groups:
        return Page((), False)
    bookable = UserFilter(text, banned=False, group_patterns=groups)
    return await services.users.page(bookable, first, after)
