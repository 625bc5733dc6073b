"""Guards of campaigns and of resources, switched off one by one as the five designs lacked them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pymongo import UpdateOne

from slotlock.domain.booking import limits
from slotlock.domain.booking.slot import Slot
from slotlock.domain.campaigns.terms import CampaignState, CampaignTerms
from slotlock.domain.schedule import meetings
from slotlock.domain.schedule.meetings import Meeting
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.slots import preconditions
from slotlock.infrastructure.mongo.slots.preconditions import Precondition, ResourceVersion
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

original_state_at, original_propagate_terms, original_version_check = (
    CampaignTerms.state_at,
    CampaignRepository.propagate_terms,
    preconditions.version_check,
)
ONE_SECOND = timedelta(seconds=1)


def _return_none(*_: Any) -> None:
    return None


def ignore_group_limits() -> None:
    """How many of a class may have a place is there to be read, and that is all (D3)."""
    Slot.exceeded_group_limit = _return_none  # type: ignore[method-assign,assignment]


def _first_identical(
    one: Sequence[Meeting], other: Sequence[Meeting]
) -> tuple[Meeting, Meeting] | None:
    return next(((here, here) for here in one if here in other), None)


def detect_only_identical_times() -> None:
    """Times that overlap and are not the same are both given (D1)."""
    replace_everywhere(meetings.first_overlap, _first_identical)


def ignore_time_conflicts() -> None:
    """Nobody looks for clashes when a place is given (D3)."""
    replace_everywhere(limits._time_conflict, _return_none)


async def _propagate_nothing(*_: Any) -> None:
    return None


def skip_terms_propagation() -> None:
    """What became of a campaign does not reach its slots before it is answered."""
    CampaignRepository.propagate_terms = _propagate_nothing  # type: ignore[method-assign,assignment]


def _state_at_last_second(self: CampaignTerms, now: datetime) -> CampaignState:
    return original_state_at(self, now.replace(microsecond=0))


def open_by_periodic_job() -> None:
    """A job that runs each second opens and closes."""
    CampaignTerms.state_at = _state_at_last_second  # type: ignore[method-assign]


def _state_at_next_second(self: CampaignTerms, now: datetime) -> CampaignState:
    return original_state_at(self, now.replace(microsecond=0) + ONE_SECOND)


def open_ahead_by_periodic_job() -> None:
    """The same, and it opens all that will open before it runs again."""
    CampaignTerms.state_at = _state_at_next_second  # type: ignore[method-assign]


def _unversioned_check(precondition: Precondition) -> tuple[str, UpdateOne]:
    if isinstance(precondition, ResourceVersion):
        return "resources", UpdateOne(
            {"_id": precondition.name}, {"$inc": {"version": 1}}, upsert=True
        )
    return original_version_check(precondition)


def ignore_resource_version() -> None:
    """Whether a resource is free is looked up, and nothing keeps it so until the write."""
    replace_everywhere(original_version_check, _unversioned_check)


GUARDS = {
    "group-limits": ignore_group_limits,
    "partial-overlaps": detect_only_identical_times,
    "time-conflicts": ignore_time_conflicts,
    "terms": skip_terms_propagation,
    "opening": open_by_periodic_job,
    "not-before": open_ahead_by_periodic_job,
    "resources": ignore_resource_version,
}


async def _propagate_after_pause(self: CampaignRepository, *arguments: Any) -> None:
    await pause_if_selected("propagate")
    await original_propagate_terms(self, *arguments)


def install_pauses() -> None:
    """Let a change of a campaign be stopped before it reaches the campaign's slots."""
    CampaignRepository.propagate_terms = _propagate_after_pause  # type: ignore[method-assign,assignment]
