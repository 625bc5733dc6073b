"""Guards of campaigns and resources, and a pause point in the propagation of terms.

D1 to D5 are the five published designs that docs/defects.md compares.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from slotlock.domain.booking.rules import limits
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignState, CampaignTerms
from slotlock.domain.schedule import meetings
from slotlock.domain.schedule.meetings import Meeting
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots import write_set
from slotlock.infrastructure.mongo.slots.write_set import Precondition, ResourceVersion
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

original_state_at, original_propagate_terms, original_version_check = (
    CampaignTerms.state_at,
    CampaignRepository.propagate_terms,
    write_set.version_check,
)
ONE_SECOND = timedelta(seconds=1)


def _return_none(*_: Any) -> None:
    return None


def ignore_group_limits() -> None:
    """Never enforce a group limit (D3)."""
    SlotState.exceeded_group_limit = _return_none  # type: ignore[method-assign,assignment]


def _first_identical(
    one: Sequence[Meeting], other: Sequence[Meeting]
) -> tuple[Meeting, Meeting] | None:
    return next(((meeting, meeting) for meeting in one if meeting in other), None)


def detect_only_identical_times() -> None:
    """Treat overlapping times as a conflict only if they are identical (D1)."""
    replace_everywhere(meetings.first_overlap, _first_identical)


def ignore_time_conflicts() -> None:
    """Book without checking for time conflicts (D3)."""
    replace_everywhere(limits._time_conflict, _return_none)


async def _propagate_nothing(*_: Any) -> None:
    return None


def skip_terms_propagation() -> None:
    """Do not copy changed terms of a campaign to its slots."""
    CampaignRepository.propagate_terms = _propagate_nothing  # type: ignore[method-assign,assignment]


def _state_at_last_second(self: CampaignTerms, now: datetime) -> CampaignState:
    return original_state_at(self, now.replace(microsecond=0))


def open_by_periodic_job() -> None:
    """Open and close campaigns on full seconds, as a periodic job would."""
    CampaignTerms.state_at = _state_at_last_second  # type: ignore[method-assign]


def _state_at_next_second(self: CampaignTerms, now: datetime) -> CampaignState:
    return original_state_at(self, now.replace(microsecond=0) + ONE_SECOND)


def open_ahead_by_periodic_job() -> None:
    """Open and close campaigns up to one second early, as a job that looks ahead would."""
    CampaignTerms.state_at = _state_at_next_second  # type: ignore[method-assign]


def _unversioned_check(precondition: Precondition) -> tuple[str, Document]:
    if isinstance(precondition, ResourceVersion):
        update = {"q": {"_id": precondition.name}, "u": {"$inc": {"version": 1}}, "upsert": True}
        return "resources", update
    return original_version_check(precondition)


def ignore_resource_version() -> None:
    """Check that a resource is free without comparing its version in the write."""
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


def _pause_before_propagation() -> None:
    CampaignRepository.propagate_terms = _propagate_after_pause  # type: ignore[method-assign,assignment]


PAUSES: dict[str, Callable[[], None]] = {"propagate": _pause_before_propagation}
