"""The periods of a school day, as everybody reads them and organizers set them."""

from datetime import time
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.schedule import periods
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import Weekday
from slotlock.graphql.core.outcomes import Result, ResultView, register_value
from slotlock.services.slots.periods import set_periods


@strawberry.type(
    description="A period of a school day, such as the third lesson. Slots have times only: one is "
    "in a period if it starts and ends with it, in its own time zone."
)
class Period:
    name: str = field(description="The name, such as `3`.")
    start_time: time = field(description="When it starts, in minutes.")
    end_time: time = field(description="When it ends on the same day, in minutes.")
    weekdays: list[Weekday] = field(description="Its weekdays; none means every day.")

    @classmethod
    def from_domain(cls, period: periods.Period) -> Self:
        weekdays = list(period.weekdays)
        return cls(
            name=period.name, start_time=period.start, end_time=period.end, weekdays=weekdays
        )


register_value(periods.Period, Period, lambda each, _outcome, _view: Period.from_domain(each))
SET_PERIODS = Result[periods.SetPeriodsOutcome](
    "SetPeriodsResult", "The periods that were saved, or a refusal."
)


@strawberry.input(description="A period of a school day.")
class PeriodInput:
    name: str = field(
        description="The name, 1 to 20 characters. No other period of a weekday has it."
    )
    start_time: time = field(description="When it starts.")
    end_time: time = field(description="When it ends, later on the same day.")
    weekdays: list[Weekday] = field(
        default_factory=list, description="Its weekdays; none means every day."
    )

    def to_domain(self) -> periods.Period:
        """Convert the period to the domain's."""
        return periods.Period(self.name, self.start_time, self.end_time, tuple(self.weekdays))


@strawberry.type
class PeriodQueries:
    @field(description="The periods of a school day, by start. Everybody may read them.")
    async def periods(self, info: Info) -> list[Period]:
        return [Period.from_domain(each) for each in await info.context.services.period_list.find()]


@strawberry.type
class PeriodMutations:
    @SET_PERIODS.mutation(
        "Replace all periods of a school day, 0 to 100. Slots keep their times. Organizers only."
    )
    async def set_periods(
        self,
        info: Info,
        periods: Annotated[list[PeriodInput], argument(description="All periods from now on.")],
    ) -> object:
        viewer = info.context.require_organizer()
        outcome = await set_periods(
            info.context.services, [each.to_domain() for each in periods], viewer.user_id
        )
        return SET_PERIODS.present(outcome, ResultView(viewer))
