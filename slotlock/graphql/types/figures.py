"""A campaign in figures, as organisers see it."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Self, TypeVar

import strawberry
from strawberry import field

from slotlock.domain import figures as domain
from slotlock.domain.bookings import SlotId
from slotlock.domain.listing import Position
from slotlock.graphql.context import Info
from slotlock.graphql.cursors import name_of, position_cursor, position_of, sealed
from slotlock.graphql.types.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    checked_first,
)
from slotlock.graphql.types.slots import Slot

Item = TypeVar("Item")

SLOTS, GROUPS = "campaignFigures.slots", "campaignFigures.groups"


@strawberry.type(description="One published slot of a campaign in figures.")
class SlotFigures:
    places: int = field(description="Places in all.")
    taken: int = field(description="Places that are taken, holds included.")
    held: int = field(description="Of those taken, how many are holds.")
    waiting: int = field(description="How many wait.")
    slot_id: strawberry.Private[SlotId]

    @field(description="The slot that is counted.")
    async def slot(self, info: Info) -> Slot | None:
        found = await info.context.slots.load(self.slot_id)
        return Slot.of(found, info.context.reader) if found else None

    @classmethod
    def of(cls, each: domain.SlotFigures) -> Self:
        return cls(
            places=each.places,
            taken=each.taken,
            held=each.held,
            waiting=each.waiting,
            slot_id=each.slot_id,
        )


@strawberry.type(
    description="One group of people in figures. Whose booking or turn it is, is told by the "
    "groups they carried when it was made."
)
class GroupFigures:
    group: str = field(description="The group, by its name.")
    people: int = field(description="How many people carry it now and may take part.")
    booked: int = field(description="How many of its people have a place.")
    bookings: int = field(description="How many places its people have.")
    waiting: int = field(description="How many turns in waiting lists its people have.")

    @classmethod
    def of(cls, each: domain.GroupFigures) -> Self:
        return cls(
            group=each.group,
            people=each.people,
            booked=each.booked,
            bookings=each.bookings,
            waiting=each.waiting,
        )


@strawberry.type(description="What happened in a campaign in one interval of time.")
class FiguresPoint:
    at: datetime = field(description="When the interval begins.")
    booked: int = field(description="Places that were taken in it, moves here included.")
    given_back: int = field(
        description="Places that were given back in it: cancelled, run out, called off or left by "
        "a move."
    )
    taken: int = field(description="Places that are taken at its end.")

    @classmethod
    def of(cls, point: domain.Point) -> Self:
        return cls(at=point.at, booked=point.booked, given_back=point.given_back, taken=point.taken)


@strawberry.type(
    description="A campaign in figures, all of one instant. Published slots count; drafts and "
    "slots that were called off do not, nor do holds that ran out."
)
class CampaignFigures:
    at: datetime = field(description="When it was so.")
    slot_count: int = field(description="How many slots it has.")
    places: int = field(description="Places in all.")
    taken: int = field(description="Places that are taken, holds included.")
    held: int = field(description="Of those taken, how many are holds.")
    free: int = field(description="Places that are not taken; who waits may be next for some.")
    waiting: int = field(description="Turns in waiting lists; somebody may wait in several.")
    people: int = field(description="How many people have at least one place.")
    over_time: list[FiguresPoint] | None = field(
        description="How it came about, if `overTime` asks for it."
    )
    each_slot: strawberry.Private[Sequence[domain.SlotFigures]]
    each_group: strawberry.Private[Sequence[domain.GroupFigures]]

    @field(description="Each slot by start.")
    def slots(self, first: First = DEFAULT_FIRST, after: After = None) -> Connection[SlotFigures]:
        position = position_of(SLOTS, after)
        seen = position and (position.start, position.id)
        page, more = _page(self.each_slot, _place, seen, checked_first(first))
        items = [
            (position_cursor(SLOTS, Position(*_place(each))), SlotFigures.of(each)) for each in page
        ]
        return Connection[SlotFigures].of(items, more=more, after=after)

    @field(description="Each group that may take part, has a place or waits, by name.")
    def groups(self, first: First = DEFAULT_FIRST, after: After = None) -> Connection[GroupFigures]:
        seen = name_of(GROUPS, after)
        page, more = _page(self.each_group, lambda each: each.group, seen, checked_first(first))
        items = [(sealed(GROUPS, each.group), GroupFigures.of(each)) for each in page]
        return Connection[GroupFigures].of(items, more=more, after=after)

    @classmethod
    def of(cls, found: domain.CampaignFigures) -> Self:
        points = found.over_time
        return cls(
            at=found.at,
            slot_count=len(found.slots),
            places=found.places,
            taken=found.taken,
            held=found.held,
            free=found.places - found.taken,
            waiting=found.waiting,
            people=found.people,
            over_time=None if points is None else [FiguresPoint.of(point) for point in points],
            each_slot=found.slots,
            each_group=found.groups,
        )


def _place(each: domain.SlotFigures) -> tuple[datetime, str]:
    return each.start, each.slot_id


def _page(
    items: Sequence[Item], key: Callable[[Item], Any], seen: Any, first: int
) -> tuple[Sequence[Item], bool]:
    """The next items after the one that was seen last, and whether more follow."""
    begin = 0 if seen is None else bisect_right(items, seen, key=key)
    return items[begin : begin + first], len(items) > begin + first
