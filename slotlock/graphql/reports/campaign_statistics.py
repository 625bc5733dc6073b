"""A campaign in figures, as organisers see it."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Self, TypeVar

import strawberry
from strawberry import field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.reports import campaign_reports
from slotlock.domain.shared.pagination import Position
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import (
    decode_name,
    decode_position,
    encode_cursor,
    encode_position,
)
from slotlock.graphql.slots.types import Slot

Item = TypeVar("Item")

SLOT_STATISTICS_CURSOR, GROUP_STATISTICS_CURSOR = (
    "campaignStatistics.slots",
    "campaignStatistics.groups",
)


@strawberry.type(description="One published slot of a campaign in figures.")
class SlotStatistics:
    places: int = field(description="Places in all.")
    taken: int = field(description="Places that are taken, holds included.")
    held: int = field(description="Of those taken, how many are holds.")
    waiting: int = field(description="How many wait.")
    slot_id: strawberry.Private[SlotId]

    @field(description="The slot that is counted.")
    async def slot(self, info: Info) -> Slot | None:
        found = await info.context.slots.load(self.slot_id)
        return Slot.from_domain(found, info.context.viewer) if found else None

    @classmethod
    def from_domain(cls, statistics: campaign_reports.SlotStatistics) -> Self:
        return cls(
            places=statistics.places,
            taken=statistics.taken,
            held=statistics.held,
            waiting=statistics.waiting,
            slot_id=statistics.slot_id,
        )


@strawberry.type(
    description="One group of people in figures. Whose booking or turn it is, is told by the "
    "groups they carried when it was made."
)
class GroupStatistics:
    group: str = field(description="The group, by its name.")
    people: int = field(description="How many people carry it now and may take part.")
    booked: int = field(description="How many of its people have a place.")
    bookings: int = field(description="How many places its people have.")
    waiting: int = field(description="How many turns in waiting lists its people have.")

    @classmethod
    def from_domain(cls, statistics: campaign_reports.GroupStatistics) -> Self:
        return cls(
            group=statistics.group,
            people=statistics.people,
            booked=statistics.booked,
            bookings=statistics.bookings,
            waiting=statistics.waiting,
        )


@strawberry.type(description="What happened in a campaign in one interval of time.")
class StatisticsPoint:
    at: datetime = field(description="When the interval begins.")
    booked: int = field(description="Places that were taken in it, moves here included.")
    given_back: int = field(
        description="Places that were given back in it: cancelled, run out, called off or left by "
        "a move."
    )
    taken: int = field(description="Places that are taken at its end.")

    @classmethod
    def from_domain(cls, point: campaign_reports.TimeSeriesPoint) -> Self:
        return cls(at=point.at, booked=point.booked, given_back=point.given_back, taken=point.taken)


@strawberry.type(
    description="A campaign in figures, all of one instant. Published slots count; drafts and "
    "slots that were called off do not, nor do holds that ran out."
)
class CampaignStatistics:
    at: datetime = field(description="When it was so.")
    slot_count: int = field(description="How many slots it has.")
    places: int = field(description="Places in all.")
    taken: int = field(description="Places that are taken, holds included.")
    held: int = field(description="Of those taken, how many are holds.")
    free: int = field(description="Places that are not taken; who waits may be next for some.")
    waiting: int = field(description="Turns in waiting lists; somebody may wait in several.")
    people: int = field(description="How many people have at least one place.")
    time_series: list[StatisticsPoint] | None = field(
        description="How it came about, if `timeSeries` asks for it."
    )
    slot_statistics: strawberry.Private[Sequence[campaign_reports.SlotStatistics]]
    group_statistics: strawberry.Private[Sequence[campaign_reports.GroupStatistics]]

    @field(description="Each slot by start.")
    def slots(
        self, first: First = DEFAULT_FIRST, after: After = None
    ) -> Connection[SlotStatistics]:
        position = decode_position(SLOT_STATISTICS_CURSOR, after)
        seen = position and (position.start, position.id)
        page, more = _page_after(
            self.slot_statistics, _slot_sort_key, seen, require_valid_first(first)
        )
        items = [
            (
                encode_position(SLOT_STATISTICS_CURSOR, Position(*_slot_sort_key(each))),
                SlotStatistics.from_domain(each),
            )
            for each in page
        ]
        return Connection[SlotStatistics].from_items(items, has_more=more, after=after)

    @field(description="Each group that may take part, has a place or waits, by name.")
    def groups(
        self, first: First = DEFAULT_FIRST, after: After = None
    ) -> Connection[GroupStatistics]:
        seen = decode_name(GROUP_STATISTICS_CURSOR, after)
        page, more = _page_after(
            self.group_statistics, lambda each: each.group, seen, require_valid_first(first)
        )
        items = [
            (encode_cursor(GROUP_STATISTICS_CURSOR, each.group), GroupStatistics.from_domain(each))
            for each in page
        ]
        return Connection[GroupStatistics].from_items(items, has_more=more, after=after)

    @classmethod
    def from_domain(cls, statistics: campaign_reports.CampaignStatistics) -> Self:
        points = statistics.time_series
        return cls(
            at=statistics.at,
            slot_count=len(statistics.slots),
            places=statistics.places,
            taken=statistics.taken,
            held=statistics.held,
            free=statistics.places - statistics.taken,
            waiting=statistics.waiting,
            people=statistics.people,
            time_series=None
            if points is None
            else [StatisticsPoint.from_domain(point) for point in points],
            slot_statistics=statistics.slots,
            group_statistics=statistics.groups,
        )


def _slot_sort_key(statistics: campaign_reports.SlotStatistics) -> tuple[datetime, str]:
    return statistics.start, statistics.slot_id


def _page_after(
    items: Sequence[Item], key: Callable[[Item], Any], last_key: Any, first: int
) -> tuple[Sequence[Item], bool]:
    """The next items after the one that was seen last, and whether more follow."""
    begin = 0 if last_key is None else bisect_right(items, last_key, key=key)
    return items[begin : begin + first], len(items) > begin + first
