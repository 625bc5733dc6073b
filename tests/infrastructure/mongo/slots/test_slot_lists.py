"""Concurrent readers of lists share a command, and each gets the page of its own query."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from bson import ObjectId
from pymongo.errors import OperationFailure

from slotlock.domain.shared.pagination import Page
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.reads import slot_lists
from slotlock.infrastructure.mongo.slots.reads.slot_lists import (
    MAX_LISTS,
    EqualLists,
    FoundPage,
    SlotListReader,
    SlotListRequest,
)
from slotlock.infrastructure.mongo.slots.slot_list_queries import list_query
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.selections import EVERYTHING, NOTHING, SELECTIONS
from tests.support.stores.query_plans import (
    SESSION_FIELDS,
    CommandRecorder,
    recorded_commands,
    values_of,
)
from tests.support.stores.slot_store import ADA, BEN
from tests.support.stores.slots import insert_new_slots

__all__ = ["recorded_commands"]

Recorded = tuple[Database, CommandRecorder]
START_ORDERS = (SlotOrder.START_ASC, SlotOrder.START_DESC)


def list_read(slots: SlotFilter | Document, **fields: object) -> SlotListRequest:
    """Return the read of three slots by start, with these other fields."""
    read = SlotListRequest(slots, SlotOrder.START_ASC, 3, None, NOW, NOTHING, ())
    return replace(read, **fields)  # type: ignore[arg-type]


async def create_reader(recorded: Recorded) -> SlotListReader:
    """Insert ten slots on ten days, some with a booking of Ada. Return a reader of their lists."""
    database, recorder = recorded
    await Repositories(database).indexes.build_missing()
    states = [
        build_slot(3, id=new_slot_id(), title=f"Slot {day}", start=NOW + timedelta(days=day))
        for day in range(10)
    ]
    await insert_new_slots(database, *states)
    booking = {"id": ObjectId(), "user": ObjectId(ADA), "at": NOW}
    await database["slots"].update_many(
        {"title": {"$in": ["Slot 1", "Slot 4"]}},
        {"$set": {"bookings": [booking], "remaining": 2, "nextDeadline": NOW}},
    )
    recorder.commands.clear()
    return SlotListReader(database["slots"], ConcurrencyLimiter(3))


def reads_of_every_kind() -> list[SlotListRequest]:
    """Return reads with different filters, orders, lengths, selections and users."""
    queries: tuple[SlotFilter | Document, ...] = (
        SlotFilter(include_past=True),
        {"status": "published"},
        {"status": "published", "start": {"$gte": NOW + timedelta(days=8)}},
        {"status": "draft"},
        {"bookings.user": ObjectId(ADA)},
    )
    selections = (NOTHING, EVERYTHING, *SELECTIONS[3::7])
    return [
        list_read(query, order=order, first=first, selection=selection, user_ids=users)
        for query, order, first, selection, users in product(
            queries, START_ORDERS, (1, 9, 10, 50), selections, ((ADA,), (BEN, ADA), ())
        )
    ]


async def test_each_reader_gets_the_page_that_its_query_alone_returns(
    recorded_commands: Recorded,
) -> None:
    reader = await create_reader(recorded_commands)
    reads = reads_of_every_kind()
    alone = [await reader.read_alone(read) for read in reads]
    together = await asyncio.gather(*map(reader.read, reads))
    assert together == alone
    assert {len(page.items) for page in alone} == {0, 1, 2, 9, 10}
    assert {page.has_more for page in alone} == {False, True}


async def test_control_pages_in_the_wrong_order_are_seen(
    recorded_commands: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await create_reader(recorded_commands)
    stages = slot_lists._page_stages
    monkeypatch.setattr(slot_lists, "_page_stages", lambda number, read: stages(5 - number, read))
    reads = [list_read({"status": "published"}, first=first) for first in range(1, 13)]
    alone = [await reader.read_alone(read) for read in reads]
    assert list(await asyncio.gather(*map(reader.read, reads))) != alone


async def test_concurrent_lists_are_one_command_for_many(recorded_commands: Recorded) -> None:
    reader, recorder = await create_reader(recorded_commands), recorded_commands[1]
    reads = [list_read({"status": "published"}, first=first) for first in range(1, MAX_LISTS + 1)]
    await asyncio.gather(*map(reader.read, reads * 2))
    assert [next(iter(command)) for command in recorder.commands] == ["aggregate"] * 2


async def test_equal_lists_of_several_users_are_read_once_and_show_each_user_only_the_own_parts(
    recorded_commands: Recorded,
) -> None:
    reader, recorder = await create_reader(recorded_commands), recorded_commands[1]
    own = replace(EVERYTHING, booked_by=False)
    reads = [
        list_read(SlotFilter(include_past=True), first=10, selection=own, user_ids=users)
        for users in ((ADA,), (BEN,), (), (BEN, ADA))
    ]
    alone = [await reader.read_alone(read) for read in reads]
    recorder.commands.clear()
    assert await asyncio.gather(*map(reader.read, reads)) == alone
    # The free places of some slots are read again, for each reader.
    assert next(iter(recorder.commands[0])) == "find"
    booked = [[len(slot.bookings) for slot in page.items] for page in alone]
    assert [sum(each) for each in booked] == [2, 0, 0, 2]


async def test_equal_lists_are_read_as_of_the_last_request(recorded_commands: Recorded) -> None:
    reader = await create_reader(recorded_commands)
    reads = [list_read(SlotFilter(), first=10, now=now) for now in (NOW, NOW + timedelta(days=2))]
    first, last = [await reader.read_alone(read) for read in reads]
    assert len(first.items) > len(last.items)
    assert await asyncio.gather(*map(reader.read, reads)) == [last, last]


async def test_no_list_waits_for_a_command_that_takes_long(
    recorded_commands: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, may_end = await create_reader(recorded_commands), asyncio.Event()
    slow, quick = list_read({"status": "draft"}), list_read({"status": "published"})
    find = reader._find

    async def find_slowly(reads: EqualLists) -> FoundPage:
        if slow in reads:
            await may_end.wait()
        return await find(reads)

    monkeypatch.setattr(reader, "_find", find_slowly)
    waiting = asyncio.create_task(reader.read(slow))
    await asyncio.sleep(2 * slot_lists.SLOW_AFTER_S)
    async with asyncio.timeout(20):
        assert len((await reader.read(quick)).items) == 3
    assert not waiting.done()
    may_end.set()
    assert (await waiting).items == ()


async def test_a_single_list_is_a_plain_query(recorded_commands: Recorded) -> None:
    reader, recorder = await create_reader(recorded_commands), recorded_commands[1]
    await reader.read(list_read({"status": "published"}))
    assert [next(iter(command)) for command in recorder.commands] == ["find"]


async def test_every_page_of_a_shared_command_comes_in_the_order_of_the_index(
    recorded_commands: Recorded,
) -> None:
    reader, (database, recorder) = await create_reader(recorded_commands), recorded_commands
    from_now_on = SlotFilter(starts_from=NOW)
    reads = [
        list_read(list_query(wanted, order, None, NOW), order=order, first=first)
        for order in START_ORDERS
        for wanted in (from_now_on, SlotFilter())
        for first in range(1, 5)
    ]
    await asyncio.gather(*map(reader.read, reads))
    (command,) = recorder.commands
    plain = {name: value for name, value in command.items() if name not in SESSION_FIELDS}
    reply = await database.command("explain", plain, verbosity="queryPlanner")
    plans = list(values_of("winningPlan", reply))
    assert len(plans) == len(reads)
    for plan in plans:
        assert set(values_of("indexName", plan)) <= {"list", "in_progress"}
        assert not {"SORT", "COLLSCAN"} & set(values_of("stage", plan))


async def read_all(
    reader: SlotListReader, reads: Sequence[SlotListRequest]
) -> list[Page[ReadableSlot] | BaseException]:
    """Read lists at the same time. Return the page or the error of each."""
    return await asyncio.gather(*map(reader.read, reads), return_exceptions=True)


async def test_a_query_that_fails_fails_its_own_reader_only(recorded_commands: Recorded) -> None:
    reader = await create_reader(recorded_commands)
    good = list_read({"status": "published"})
    page = await reader.read(good)
    bad = list_read({"$expr": {"$divide": ["$capacity", 0]}})
    found = await read_all(reader, [good, good, bad, bad, good, good])
    errors = [each for each in found if isinstance(each, OperationFailure)]
    assert len(errors) == 2
    assert [each for each in found if each not in errors] == [page] * 4


async def test_a_document_that_is_broken_fails_the_readers_of_its_page_only(
    recorded_commands: Recorded,
) -> None:
    reader, database = await create_reader(recorded_commands), recorded_commands[0]
    await database["slots"].update_one({"title": "Slot 9"}, {"$unset": {"location": ""}})
    await database["slots"].update_one({"title": "Slot 9"}, {"$unset": {"title": ""}})
    first, last = (list_read({"status": "published"}, order=order) for order in START_ORDERS)
    found = await read_all(reader, [first, last, first, last])
    assert [isinstance(each, KeyError) for each in found] == [False, True, False, True]
