"""Guards of campaigns and of resources, switched off one by one as the five designs lacked them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pymongo import UpdateOne

from slotlock.domain import limits, meetings
from slotlock.domain.meetings import Meeting
from slotlock.domain.slots import Slot
from slotlock.domain.terms import CampaignState, Terms
from slotlock.stores import guards
from slotlock.stores.campaigns import Campaigns
from slotlock.stores.guards import Guard, ResourceSeen
from tests.support.variants.points import instead, reach

state, spread, held = Terms.state, Campaigns.spread, guards.held
SECOND = timedelta(seconds=1)


def _none(*_: Any) -> None:
    return None


def limits_nobody_compares() -> None:
    """How many of a class may have a place is there to be read, and that is all (D3)."""
    Slot.full_group = _none  # type: ignore[method-assign,assignment]


def _the_same(one: Sequence[Meeting], other: Sequence[Meeting]) -> tuple[Meeting, Meeting] | None:
    return next(((here, here) for here in one if here in other), None)


def only_the_same_times_clash() -> None:
    """Times that overlap and are not the same are both given (D1)."""
    instead(meetings.first_overlap, _the_same)


def clashes_unseen() -> None:
    """Nobody looks for clashes when a place is given (D3)."""
    instead(limits._conflict, _none)


async def _nowhere(*_: Any) -> None:
    return None


def terms_stay_where_they_are() -> None:
    """What became of a campaign does not reach its slots before it is answered."""
    Campaigns.spread = _nowhere  # type: ignore[method-assign,assignment]


def _opened_by_the_second(self: Terms, now: datetime) -> CampaignState:
    return state(self, now.replace(microsecond=0))


def opened_by_a_job() -> None:
    """A job that runs each second opens and closes."""
    Terms.state = _opened_by_the_second  # type: ignore[method-assign]


def _opened_ahead(self: Terms, now: datetime) -> CampaignState:
    return state(self, now.replace(microsecond=0) + SECOND)


def opened_ahead() -> None:
    """The same, and it opens all that will open before it runs again."""
    Terms.state = _opened_ahead  # type: ignore[method-assign]


def _whatever_was_seen(guard: Guard) -> tuple[str, UpdateOne]:
    if isinstance(guard, ResourceSeen):
        return "resources", UpdateOne({"_id": guard.name}, {"$inc": {"version": 1}}, upsert=True)
    return held(guard)


def resources_unguarded() -> None:
    """Whether a resource is free is looked up, and nothing keeps it so until the write."""
    instead(held, _whatever_was_seen)


GUARDS = {
    "group-limits": limits_nobody_compares,
    "overlaps": only_the_same_times_clash,
    "clashes": clashes_unseen,
    "terms": terms_stay_where_they_are,
    "opening": opened_by_a_job,
    "not-before": opened_ahead,
    "resources": resources_unguarded,
}


async def _late_spread(self: Campaigns, *arguments: Any) -> None:
    await reach("spread")
    await spread(self, *arguments)


def pausable() -> None:
    """Let a change of a campaign be stopped before it reaches the campaign's slots."""
    Campaigns.spread = _late_spread  # type: ignore[method-assign,assignment]
