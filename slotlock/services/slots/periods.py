"""Use case of the periods of a school day: replace them all."""

from collections.abc import Sequence

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import (
    Period,
    PeriodsSaved,
    SetPeriodsOutcome,
    build_periods,
    loses_period,
)
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import UserId
from slotlock.services.container import Services


async def set_periods(
    services: Services, periods: Sequence[Period], organizer_id: UserId
) -> SetPeriodsOutcome:
    """Replace all periods. No slot changes: those whose times are in no period now are counted."""
    built = build_periods(periods)
    if isinstance(built, InvalidInput):
        return built
    now = services.now()
    before = await services.period_list.save(built, organizer_id, now)
    services.periods.set(built)
    if not set(before) - set(built):  # each meeting is still in what it was in
        return PeriodsSaved(built, 0)

    def is_unmatched(meetings: Sequence[Meeting], time_zone: str) -> bool:
        return loses_period(meetings, time_zone, before, built)

    return PeriodsSaved(built, await services.period_list.count_future_slots(now, is_unmatched))
