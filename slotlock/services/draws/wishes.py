"""Users and teams rank the slots that they wish for; organizers see the demand."""

import asyncio
import secrets
from collections.abc import Sequence

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import NotTeammate
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawId
from slotlock.domain.draws.draw import (
    MAX_WISHES,
    Draw,
    DrawNotFound,
    DrawState,
    WrongDrawState,
)
from slotlock.domain.draws.wish_closing import SeenWishes, Wishes
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.draws.wish_repository import SlotDemand
from slotlock.infrastructure.request_deadline import allow_wait
from slotlock.services.booking.permissions import with_dependents
from slotlock.services.container import Services

SALT_BYTES = 16
# How long a request waits for the root to see whether its wishes count, and between two looks.
ROOT_WAIT_S, ROOT_INTERVAL_S = 15.0, 0.25


@value_object
class WishesSaved:
    """The wishes are stored, and count when the draw closes. None if they were removed."""

    wishes: Wishes | None


SetWishesOutcome = WishesSaved | DrawNotFound | WrongDrawState | NotTeammate | InvalidInput


async def set_wishes(
    services: Services,
    caller: Caller,
    campaign_id: CampaignId,
    slot_ids: Sequence[SlotId],
    team_id: TeamId | None = None,
    user_ids: Sequence[UserId] = (),
    seen: SeenWishes | None = None,
) -> SetWishesOutcome:
    """Replace the ranked wishes of the caller, of the team with the caller in it, or of users.

    These are the caller's dependents, also together with the caller, and get places together or
    none. What they wished for before ends, and others with whom they wished stay: another guardian
    may act for these, or one of them alone. Only a list of a team of the caller ends for all. No
    slots remove the wishes. Nothing changes if the first of the users has others than those seen.
    """
    draw = await services.draws.find_latest(campaign_id)
    if draw is None or not draw.is_active:
        return DrawNotFound(campaign_id)
    now = services.now()
    if not draw.accepts_wishes_at(now):
        return WrongDrawState(draw.state)
    if problem := await _slots_problem(services, campaign_id, slot_ids):
        return InvalidInput((FieldProblem("slotIds", problem),))
    senders = user_ids or (caller.user_id,)
    if stranger := await _find_stranger(services, caller, senders):
        return NotTeammate(stranger)
    users = await _members(services, caller, team_id) if team_id else senders
    if users is None:
        return InvalidInput((FieldProblem("teamId", ProblemCode.NOT_IN_TEAM.problem()),))
    wishes = Wishes(tuple(users), tuple(slot_ids), _new_salt(), caller.user_id, now)
    teams = () if user_ids else await services.teams.find_by_user(caller.user_id)
    mates = [member.user_id for team in teams for member in team.members]
    if code := await services.wishes.save(draw, wishes, senders, mates, seen):
        field = "expectedChangedAt" if code is ProblemCode.WISHES_CHANGED else "teamId"
        return InvalidInput((FieldProblem(field, code.problem()),))
    # A closing that began after this read finds the wishes. One that began before may have not.
    after = await services.draws.find(draw.id)
    is_open = after is not None and after.state is DrawState.COLLECTING
    if not is_open and not await _are_counted(services, draw.id, senders[0], tuple(slot_ids)):
        return WrongDrawState(DrawState.CLOSED)
    return WishesSaved(await services.wishes.find(draw.id, senders[0]))


async def _are_counted(
    services: Services, draw_id: DrawId, user_id: UserId, slot_ids: tuple[SlotId, ...]
) -> bool:
    """Wait for the root of a closed draw, and return whether these are a user's wishes in it.

    Raises:
        CommitUnknownError: it takes too long.
    """
    allow_wait(ROOT_WAIT_S)
    for _ in range(round(ROOT_WAIT_S / ROOT_INTERVAL_S)):
        draw = await services.draws.find(draw_id)
        if draw is None or draw.root is not None:
            own = await services.draws.find_result(draw, user_id) if draw else None
            return (own.wishes if own else ()) == slot_ids
        await asyncio.sleep(ROOT_INTERVAL_S)
    raise CommitUnknownError("the wishes are still being closed")


async def copy_wishes(services: Services, former: Draw, draw: Draw, by: UserId) -> None:
    """Let a draw begin with the wishes that counted in another one, under new pseudonyms."""
    basis = await services.draws.load_basis(former)
    entries, now = await services.draws.find_entries(former), services.now()
    lists = [
        Wishes(entries[each.leaf].user_ids, each.wishes, _new_salt(), by, now)
        for each in basis.entries
        if entries[each.leaf].user_ids
    ]
    await services.wishes.insert(draw, lists)


def _new_salt() -> str:
    return secrets.token_hex(SALT_BYTES)


async def _slots_problem(
    services: Services, campaign_id: CampaignId, slot_ids: Sequence[SlotId]
) -> Problem | None:
    if len(slot_ids) > MAX_WISHES:
        return ProblemCode.TOO_MANY_WISHES.problem(maximum=MAX_WISHES)
    if len(set(slot_ids)) < len(slot_ids):
        return ProblemCode.WISHED_TWICE.problem()
    if not slot_ids:
        return None
    found = await services.campaigns.find_slot_ids(
        campaign_id,
        slot_ids,
        ends_after=services.now(),
        limit=len(slot_ids),
        include_hidden=False,
    )
    return None if set(found) == set(slot_ids) else ProblemCode.NOT_IN_CAMPAIGN.problem()


async def _find_stranger(
    services: Services, caller: Caller, user_ids: Sequence[UserId]
) -> UserId | None:
    """Return the first user who is neither the caller nor a dependent; None if there is none."""
    others = [user_id for user_id in user_ids if user_id != caller.user_id]
    acts_for = (await with_dependents(services, caller)).acts_for if others else ()
    return next((user_id for user_id in others if user_id not in acts_for), None)


async def _members(
    services: Services, caller: Caller, team_id: TeamId
) -> tuple[UserId, ...] | None:
    team = await services.teams.find(team_id)
    if team is None or not team.has_member(caller.user_id):
        return None
    return tuple(member.user_id for member in team.members)


async def my_wishes(services: Services, caller: Caller, campaign_id: CampaignId) -> Wishes | None:
    """Return the wishes that the caller has in the latest draw, alone or with a team."""
    draw = await services.draws.find_latest(campaign_id)
    return await services.wishes.find(draw.id, caller.user_id) if draw else None


async def wishes_of(services: Services, user_id: UserId) -> list[tuple[Draw, Wishes]]:
    """Return the draws in which a user has wishes, alone or with a team, the newest first."""
    found = await services.wishes.find_of_user(user_id)
    draws = await services.draws.find_each([draw_id for draw_id, _ in found])
    return [(draw, own) for draw, (_, own) in zip(draws, found, strict=True) if draw]


async def find_changeable(services: Services, user_id: UserId) -> Sequence[DrawId]:
    """Return the draws that still collect wishes, in which a user has some."""
    found = await wishes_of(services, user_id)
    return [draw.id for draw, _ in found if draw.state is DrawState.COLLECTING]


async def wish_statistics(
    services: Services, caller: Caller, campaign_id: CampaignId
) -> Sequence[SlotDemand] | None:
    """Return the demand for each slot; None if the caller may not see it."""
    draw = await services.draws.find_latest(campaign_id)
    if draw is None or not (caller.is_organizer or draw.settings.shows_demand):
        return None
    return await services.demand.find(draw)
