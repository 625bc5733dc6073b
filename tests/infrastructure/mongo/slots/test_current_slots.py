"""Lists of slots that are not over, or meet in a period: exact, and as cheap whatever is over."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from random import Random

import pytest
from bson import ObjectId

from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.indexes.time_spans import spans_at, spans_of
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.slot_document_updates import to_update
from slotlock.infrastructure.mongo.slots.slot_documents import to_document
from slotlock.infrastructure.mongo.slots.slot_list_queries import list_query
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.previews import Previews
from tests.support.domain.builders import HOUR, INSTANT, NOW, build_caller, build_slot
from tests.support.domain.selections import NOTHING
from tests.support.stores.query_plans import CommandRecorder, recorded_commands, values_of

__all__ = ["recorded_commands"]

Recorded = tuple[Database, CommandRecorder]
DAY = timedelta(days=1)
LIST_FIELDS = {"searchWords", "titleKey", "spans"}
PAGE_SIZE = 20
DURATIONS = [HOUR / 2, HOUR, 3 * HOUR, DAY, 3 * DAY, 20 * DAY, 100 * DAY, 400 * DAY, 4000 * DAY]


def build_slots(count: int) -> list[SlotState]:
    """Return slots that are over, in progress or still to come; every third is a course."""
    random, slots = Random(7), []
    for number in range(count):
        duration = random.choice(DURATIONS)
        start = NOW + random.uniform(-1.2, 0.8) * max(duration, 2 * DAY)
        start = start.replace(minute=30 * random.randrange(2), second=0, microsecond=0)
        meetings: tuple[Meeting, ...] = ()
        if number % 3 == 0 and duration > DAY:
            times = [start + each * duration / 7 for each in range(7)]
            meetings = tuple(Meeting(each, each + HOUR) for each in times)
        end = meetings[-1].end if meetings else start + duration
        facts = {"start": start, "end": end, "meetings": meetings}
        title = random.choice(["Éclair", "eclair", "Zoo", "apple", "Übung"])
        slots.append(build_slot(3, id=new_slot_id(), title=title, **facts))
    return slots


async def insert(database: Database, slots: Iterable[SlotState]) -> SlotRepository:
    """Insert slots into a database with all indexes."""
    repositories = Repositories(database)
    await repositories.indexes.build_missing()
    await database["slots"].insert_many(map(to_document, slots))
    return repositories.slots


def is_wanted(slot: Slot, wanted: SlotFilter) -> bool:
    """Return whether a filter by time selects a slot."""
    begin, end = wanted.meets_from, wanted.meets_before
    meets = any(
        (begin is None or meeting.end > begin) and (end is None or meeting.start < end)
        for meeting in slot.all_meetings
    )
    return (
        (wanted.include_past or slot.end > NOW)
        and (wanted.starts_from is None or slot.start >= wanted.starts_from)
        and (wanted.starts_before is None or slot.start < wanted.starts_before)
        and meets
    )


FILTERS = [
    SlotFilter(),
    SlotFilter(include_past=True),
    SlotFilter(starts_from=NOW - 30 * DAY, starts_before=NOW + DAY),
    SlotFilter(starts_from=NOW + DAY),
    SlotFilter(starts_before=NOW - DAY),
    SlotFilter(meets_from=NOW + DAY, meets_before=NOW + 8 * DAY),
    SlotFilter(meets_from=NOW - 3 * DAY, meets_before=NOW + 2 * HOUR),
    SlotFilter(meets_from=NOW - 60 * DAY, meets_before=NOW - 50 * DAY, include_past=True),
    SlotFilter(meets_from=NOW - 10 * DAY, include_past=True),
    SlotFilter(meets_before=NOW - 10 * DAY),
]


async def all_ids(slots: SlotRepository, wanted: SlotFilter, order: SlotOrder) -> list[str]:
    """Return the ids on all pages of 17 slots."""
    ids: list[str] = []
    after, selection = None, replace(NOTHING, facts=order.facts)
    while True:
        page = await slots.page(wanted, order, 17, after, NOW, selection)
        ids += [each.id for each in page.items]
        if not page.has_more:
            return ids
        after = order.position_of(page.items[-1].slot)


def sort_key_of(order: SlotOrder, state: SlotState) -> tuple[datetime | str, str]:
    """Return what an order compares."""
    position = order.position_of(state.slot)
    key = position.start if isinstance(position, Position) else position.sort_key
    return key, position.id


async def test_pages_have_exactly_the_slots_of_the_period_in_their_order(
    recorded_commands: Recorded,
) -> None:
    stored = build_slots(120)
    slots = await insert(recorded_commands[0], stored)
    for wanted, order in product(FILTERS, SlotOrder):
        matching = [state for state in stored if is_wanted(state.slot, wanted)]
        assert matching, wanted
        matching.sort(key=partial(sort_key_of, order), reverse=order.direction == -1)
        expected = [state.id for state in matching]
        assert await all_ids(slots, wanted, order) == expected, (wanted, order)


async def test_titles_are_in_order_whatever_their_case_and_accents(
    recorded_commands: Recorded,
) -> None:
    titles = ["zoo", "Éclair", "apple", "Übung", "eclair 2", "Apple 2", "utopia"]
    stored = [build_slot(id=new_slot_id(), title=title) for title in titles]
    slots = await insert(recorded_commands[0], stored)
    by_id = {str(state.id): state.slot.title for state in stored}
    found = await all_ids(slots, SlotFilter(), SlotOrder.TITLE_ASC)
    in_order = ["apple", "Apple 2", "Éclair", "eclair 2", "Übung", "utopia", "zoo"]
    assert [by_id[slot_id] for slot_id in found] == in_order


def many_documents() -> list[Document]:
    """Return 3,000 slots that are over and 300 others, an hour each, and 150 courses."""
    base = to_document(build_slot(3, id=new_slot_id()))
    times = [(NOW + number * HOUR, HOUR) for number in range(-3000, 300)]
    times += [(NOW + number * 5 * DAY, 100 * DAY) for number in range(-130, 20)]
    starts = ((start + timedelta(minutes=1), duration) for start, duration in times)
    return [
        {
            **base,
            "_id": ObjectId(),
            "start": start,
            "end": start + duration,
            "spans": spans_of(start, start + duration),
            "titleKey": f"{number % 97} slot",
        }
        for number, (start, duration) in enumerate(starts)
    ]


async def explain(
    database: Database, query: Document, order: SlotOrder
) -> tuple[Document, Document]:
    """Return the plan that MongoDB chose for the first page, and what its execution read."""
    key = "titleKey" if order.is_by_title else "start"
    sort = {key: order.direction, "_id": order.direction}
    command = {"find": "slots", "filter": query, "sort": sort, "limit": PAGE_SIZE + 1}
    if order.is_by_title:
        command["hint"] = "title"
    explained = await database.command("explain", command, verbosity="executionStats")
    return explained["queryPlanner"]["winningPlan"], explained["executionStats"]


async def test_a_page_of_what_is_not_over_reads_no_document_but_its_own(
    recorded_commands: Recorded,
) -> None:
    database = recorded_commands[0]
    await Repositories(database).indexes.build_missing()
    await database["slots"].insert_many(many_documents())
    in_progress = Position(NOW - 30 * DAY, new_slot_id())
    week = SlotFilter(meets_from=NOW + DAY, meets_before=NOW + 8 * DAY)
    for order, wanted, after in [
        (SlotOrder.START_ASC, SlotFilter(), None),
        (SlotOrder.START_ASC, SlotFilter(), in_progress),
        (SlotOrder.START_DESC, SlotFilter(), in_progress),
        (SlotOrder.START_ASC, week, None),
        (SlotOrder.TITLE_ASC, SlotFilter(), None),
    ]:
        plan, stats = await explain(database, list_query(wanted, order, after, NOW), order)
        assert stats["totalDocsExamined"] <= PAGE_SIZE + 5, (order, wanted, after)
        assert stats["totalKeysExamined"] <= 20 * PAGE_SIZE, (order, wanted, after)
        assert "SORT" not in set(values_of("stage", plan))


async def test_control_without_spans_a_page_reads_what_is_over(recorded_commands: Recorded) -> None:
    database = recorded_commands[0]
    await Repositories(database).indexes.build_missing()
    await database["slots"].insert_many(many_documents())
    order = SlotOrder.START_ASC
    naive = {"status": "published", "campaign.published": {"$ne": False}, "end": {"$gt": NOW}}
    _, stats = await explain(database, naive, order)
    assert stats["totalDocsExamined"] > 10 * PAGE_SIZE


def test_a_list_from_now_on_is_the_query_of_the_start_alone() -> None:
    wanted = SlotFilter(starts_from=NOW, starts_before=NOW + DAY)
    assert list_query(wanted, SlotOrder.START_ASC, None, NOW) == {
        "status": "published",
        "campaign.published": {"$ne": False},
        "start": {"$gte": NOW, "$lt": NOW + DAY},
    }


@pytest.mark.parametrize("duration", [INSTANT, *DURATIONS, 300_000 * DAY])
def test_what_is_in_progress_is_in_one_of_its_two_spans(duration: timedelta) -> None:
    for start in (NOW, NOW - 3 * HOUR, datetime.min.replace(tzinfo=NOW.tzinfo)):
        spans = spans_of(start, start + duration)
        assert 1 <= len(spans) <= 2
        for instant in (start, start + duration / 2, start + duration - INSTANT):
            assert set(spans) & set(spans_at(instant))


async def test_a_repair_scans_no_slots_while_its_indexes_are_missing(
    recorded_commands: Recorded,
) -> None:
    database, _ = recorded_commands
    await insert(database, build_slots(3))
    await database["slots"].update_many({}, {"$unset": {"searchWords": ""}})
    outdated = [each async for each in database["slots"].find()]
    await database["slots"].drop_index("folding")
    repositories = Repositories(database)
    await repositories.slot_writer.backfill_list_fields()
    assert [each async for each in database["slots"].find()] == outdated
    await repositories.indexes.build_missing()  # for the next test of this database


def test_an_edit_writes_what_lists_find_a_slot_by_even_if_it_concerns_something_else() -> None:
    before = build_slot(3, id=new_slot_id())
    edited = replace(before.slot, capacity=4)
    update = to_update(before, replace(before, slot=edited, change=before.change.with_edit()))
    assert isinstance(update, list)
    written = {name: each for name, each in update[0]["$set"].items() if name in LIST_FIELDS}
    assert written.keys() == LIST_FIELDS
    assert written["spans"] == {"$literal": spans_of(edited.start, edited.end)}


async def test_the_eligibility_for_a_page_of_slots_is_one_read_for_all(
    recorded_commands: Recorded,
) -> None:
    database, recorder = recorded_commands
    stored = [build_slot(id=new_slot_id(), choice_group="week") for _ in range(PAGE_SIZE)]
    slots = await insert(database, stored)
    caller = build_caller("0" * 24)
    previews = Previews(slots, lambda: NOW)
    recorder.commands.clear()
    commands = [
        BookSlotCommand.create(caller, state.id, UserId(caller.user_id), hold=False, key=None)
        for state in stored
    ]
    assert set(await asyncio.gather(*map(previews.decide, commands))) == {None}
    collections = sorted(command["find"] for command in recorder.commands)
    assert collections == ["slots", "slots", "user_versions"]
