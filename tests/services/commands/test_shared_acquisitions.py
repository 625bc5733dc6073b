"""Callers of one process who do not wait share the acquisition of a slot's lock."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked, BookOutcome
from slotlock.domain.booking.booking_refusals import Locked
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    CommandResult,
    Decision,
    LoadedState,
)
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.reads.decision_reads import DecisionReader
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.redis.locks.redis_locks import RedisLocks
from slotlock.services import caller_queue, free_place_hints
from slotlock.services.booking.book import (
    BookingOptions,
    BookSlotCommand,
    BookSlotsCommand,
    book_slot,
    book_slots,
)
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.caller_queue import BatchServer
from slotlock.services.caller_queues import CallerQueues
from slotlock.services.commands import executor
from slotlock.services.container import Services
from slotlock.services.previews import Preview, Previews
from slotlock.services.slot_command import SlotCommand
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.model.service_pair import (
    ManualClock,
    PausableSlotWriter,
    open_services,
)
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import acquire_lease, release_lease
from tests.support.stores.slots import insert_new_slots

Processes = tuple[Services, Services]
CALLERS = [Caller(UserId(f"{n:024x}"), Role.MEMBER, "session", NOW) for n in range(1, 51)]


@pytest.fixture
async def processes(servers: EmbeddedServers) -> AsyncIterator[Processes]:
    """Yield the services of two processes."""
    url, clock = database_url(servers, "shared_acquisitions"), ManualClock(NOW)
    async with AsyncExitStack() as stack:
        first, second = [
            await open_services(stack, url, servers.redis_url, clock) for _ in range(2)
        ]
        yield first, second


@pytest.fixture
def acquisitions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the names of the locks that are acquired, in a list that grows."""
    acquired: list[tuple[str, ...]] = []
    original_acquire, original_each = RedisLocks.acquire, RedisLocks.acquire_each

    async def record(self: RedisLocks, names: tuple[str, ...], wait: object) -> LockLease | None:
        acquired.append(names)
        return await original_acquire(self, names, wait)  # type: ignore[arg-type]

    async def record_each(self: RedisLocks, names: Sequence[str]) -> Sequence[LockLease | None]:
        acquired.extend((name,) for name in names)
        return await original_each(self, names)

    monkeypatch.setattr(RedisLocks, "acquire", record)
    monkeypatch.setattr(RedisLocks, "acquire_each", record_each)
    return acquired


@pytest.fixture
def long_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process remember which slots are full, though a busy machine is slow."""
    monkeypatch.setattr(free_place_hints, "TRUSTED_FOR_S", 60.0)


async def add_slot(services: Services, capacity: int) -> SlotId:
    """Insert an empty slot and return its id."""
    slot = build_slot(capacity, id=new_slot_id())
    await insert_new_slots(slot_writer(services)._database, slot)
    return slot.id


def slot_writer(services: Services) -> PausableSlotWriter:
    """Return the slot writer, which can be paused."""
    assert isinstance(services.slot_writer, PausableSlotWriter)
    return services.slot_writer


async def book(services: Services, caller: Caller, slot_id: SlotId, wait_s: float = 0.0) -> str:
    """Book a slot and return the type of the outcome."""
    options = BookingOptions(wait_s=wait_s)
    result = await book_slot(services, caller, slot_id, caller.user_id, options)
    return type(result.outcome).__name__


async def book_together(
    services: Services, slot_id: SlotId, callers: Sequence[Caller] = CALLERS
) -> list[str]:
    """Book a slot for all callers at once and return the types of the outcomes."""
    return await asyncio.gather(*(book(services, caller, slot_id) for caller in callers))


async def test_callers_who_come_together_share_one_acquisition_and_all_get_a_place(
    processes: Processes, acquisitions: list[tuple[str, ...]]
) -> None:
    slot_id = await add_slot(processes[0], capacity=50)
    assert await book_together(processes[0], slot_id) == ["Booked"] * 50
    assert acquisitions == [(slot_id,)]


async def test_control_without_sharing_callers_of_one_process_refuse_each_other(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def acquire_alone(
        self: CallerQueues[BookSlotCommand],
        slot_id: SlotId,
        command: BookSlotCommand,
        wait_s: float,
        server: BatchServer[BookSlotCommand],
    ) -> CommandResult[object] | None:
        results = await executor.run_with_lock(processes[0], [command], wait_s)
        return results[0] if results else None

    monkeypatch.setattr(CallerQueues, "submit", acquire_alone)
    slot_id = await add_slot(processes[0], capacity=50)
    assert "Locked" in await book_together(processes[0], slot_id)


async def test_callers_who_share_an_acquisition_are_served_in_order_of_arrival(
    processes: Processes,
) -> None:
    slot_id = await add_slot(processes[0], capacity=3)
    outcomes = await book_together(processes[0], slot_id)
    assert outcomes == ["Booked"] * 3 + ["SlotFull"] * 47


async def test_callers_who_share_an_acquisition_that_fails_learn_the_truth(
    processes: Processes,
) -> None:
    slot_id = await add_slot(processes[0], capacity=2)
    assert await book(processes[0], CALLERS[0], slot_id) == "Booked"
    lease = await acquire_lease(processes[1].locks, slot_id, wait_s=20.0)
    counts = Counter(await book_together(processes[0], slot_id))
    assert counts == {"AlreadyBooked": 1, "Locked": 49}
    await release_lease(processes[1].locks, lease)
    assert await book(processes[0], CALLERS[1], slot_id) == "Booked"
    await acquire_lease(processes[1].locks, slot_id, wait_s=20.0)
    counts = Counter(await book_together(processes[0], slot_id))
    assert counts == {"AlreadyBooked": 2, "SlotFull": 48}


async def book_during_a_release(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> str:
    """Book a slot whose lock another process releases just after the acquisition has failed."""
    slot_id = await add_slot(processes[0], capacity=2)
    lease = await acquire_lease(processes[1].locks, slot_id)
    original_decide = Previews.decide

    async def release_first(self: Previews, command: SlotCommand[object]) -> Preview:
        await release_lease(processes[1].locks, lease)
        return await original_decide(self, command)

    monkeypatch.setattr(Previews, "decide", release_first)
    return await book(processes[0], CALLERS[0], slot_id)


async def test_a_release_that_comes_just_after_the_next_caller_does_not_refuse_that_caller(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await book_during_a_release(processes, monkeypatch) == "Booked"


async def test_control_with_one_acquisition_a_release_under_way_refuses_the_next_caller(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "ACQUISITIONS_WITHOUT_WAIT", 1)
    assert await book_during_a_release(processes, monkeypatch) == "Locked"


async def test_while_a_batch_of_this_process_is_served_callers_learn_the_truth_without_the_lock(
    processes: Processes, acquisitions: list[tuple[str, ...]]
) -> None:
    services = processes[0]
    slot_id = await add_slot(services, capacity=2)
    assert await book(services, CALLERS[0], slot_id) == "Booked"
    paused = slot_writer(services).pause_next_commit()
    serving = asyncio.create_task(book(services, CALLERS[1], slot_id))
    await paused.wait()
    acquisitions.clear()
    try:
        counts = Counter(await book_together(services, slot_id, [CALLERS[0], *CALLERS[2:]]))
    finally:
        slot_writer(services).resume_event.set()
    assert counts == {"AlreadyBooked": 1, "Locked": 48}
    assert acquisitions == []
    assert await serving == "Booked"


async def test_callers_of_a_full_slot_learn_the_truth_without_the_lock(
    processes: Processes, acquisitions: list[tuple[str, ...]], long_hints: None
) -> None:
    slot_id = await add_slot(processes[0], capacity=2)
    await book_together(processes[0], slot_id, CALLERS[:2])
    acquisitions.clear()
    counts = Counter(await book_together(processes[0], slot_id))
    assert counts == {"AlreadyBooked": 2, "SlotFull": 48}
    assert acquisitions == []


@pytest.mark.parametrize("count", [1, 2])
async def test_a_request_that_a_ticket_reports_as_lost_meanwhile_is_locked(
    processes: Processes, count: int
) -> None:
    services, caller = processes[0], CALLERS[0]
    claims = [(await add_slot(services, capacity=2), caller.user_id) for _ in range(count)]
    options = BookingOptions(key=f"0123456789abcdef{count}")
    booking: Coroutine[Any, Any, CommandResult[Any]]
    if count == 1:
        key = options.to_idempotency_key(caller, BookSlotCommand.name, *claims[0])
        booking = book_slot(services, caller, *claims[0], options)
    else:
        key = options.to_idempotency_key(caller, BookSlotsCommand.name, *claims)
        booking = book_slots(services, caller, claims, options)
    assert key is not None
    paused = slot_writer(services).pause_next_commit()
    task = asyncio.create_task(booking)
    await paused.wait()
    await services.idempotency_records.save(key.lost_record(NOW))
    slot_writer(services).resume_event.set()
    assert isinstance((await task).outcome, Locked)


async def test_callers_of_full_slots_share_one_read(
    processes: Processes, long_hints: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = processes[0]
    slot_ids = [await add_slot(services, capacity=1) for _ in range(5)]
    for slot_id in slot_ids:
        assert await book(services, CALLERS[0], slot_id) == "Booked"
    reads: list[set[SlotId]] = []
    original_read_each = DecisionReader.read_each

    async def record(self: DecisionReader, ids: set[SlotId], *rest: Any) -> Any:
        reads.append(ids)
        return await original_read_each(self, ids, *rest)

    monkeypatch.setattr(DecisionReader, "read_each", record)
    outcomes = await asyncio.gather(
        *(book(services, caller, slot_id) for caller in CALLERS for slot_id in slot_ids)
    )
    assert Counter(outcomes) == {"AlreadyBooked": 5, "SlotFull": 245}
    assert reads == [set(slot_ids)]


async def test_a_refusal_that_fails_leaves_its_neighbors_unharmed(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = processes[0]
    slot_id = await add_slot(services, capacity=1)
    assert await book(services, CALLERS[0], slot_id) == "Booked"
    original_preview = BookSlotCommand.preview

    def preview(
        self: BookSlotCommand, state: LoadedState, now: datetime
    ) -> Decision[BookOutcome] | None:
        if self.caller == CALLERS[1]:
            raise ZeroDivisionError
        return original_preview(self, state, now)

    monkeypatch.setattr(BookSlotCommand, "preview", preview)
    outcomes = await asyncio.gather(
        *(book(services, caller, slot_id) for caller in CALLERS), return_exceptions=True
    )
    assert isinstance(outcomes.pop(1), ZeroDivisionError)
    assert outcomes == ["AlreadyBooked", *["SlotFull"] * 48]


async def test_a_place_that_another_process_freed_is_booked_although_the_slot_was_full(
    processes: Processes,
) -> None:
    slot_id = await add_slot(processes[0], capacity=1)
    options = BookingOptions()
    booked = await book_slot(processes[0], CALLERS[0], slot_id, CALLERS[0].user_id, options)
    assert isinstance(booked.outcome, Booked)
    assert await book(processes[0], CALLERS[1], slot_id) == "SlotFull"
    request = BookingChangeRequest(slot_id, booked.outcome.booking.id, CALLERS[0], wait_s=20.0)
    await change_booking(processes[1], cancel, request)
    await processes[1].locks.wait_for_releases()
    assert await book(processes[0], CALLERS[1], slot_id) == "Booked"


async def test_a_caller_who_waits_is_served_though_those_who_do_not_are_refused(
    processes: Processes,
) -> None:
    services = processes[0]
    slot_id = await add_slot(services, capacity=50)
    lease = await acquire_lease(processes[1].locks, slot_id)
    waiting = asyncio.create_task(book(services, CALLERS[0], slot_id, wait_s=20))
    # These join the acquisition of the caller who waits, until the lock turns out to be taken.
    outcomes = await book_together(services, slot_id, CALLERS[1:20])
    assert set(outcomes) == {"Locked"}
    # These come while the lock is known to be taken.
    assert set(await book_together(services, slot_id, CALLERS[20:])) == {"Locked"}
    await release_lease(processes[1].locks, lease)
    assert await waiting == "Booked"


async def test_a_caller_who_does_not_wait_joins_the_acquisition_of_one_who_does(
    processes: Processes, acquisitions: list[tuple[str, ...]]
) -> None:
    slot_id = await add_slot(processes[0], capacity=2)
    outcomes = await asyncio.gather(
        book(processes[0], CALLERS[0], slot_id, wait_s=20), book(processes[0], CALLERS[1], slot_id)
    )
    assert list(outcomes) == ["Booked", "Booked"]
    assert acquisitions == [(slot_id,)]


async def test_of_an_acquisition_whose_first_caller_is_cancelled_the_others_get_all_places(
    processes: Processes,
) -> None:
    slot_id = await add_slot(processes[0], capacity=49)
    tasks = [asyncio.create_task(book(processes[0], each, slot_id)) for each in CALLERS]
    await asyncio.sleep(0)
    tasks[0].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1:] == ["Booked"] * 49


async def test_an_acquisition_that_all_callers_left_leaves_no_lock(processes: Processes) -> None:
    slot_id = await add_slot(processes[0], capacity=50)
    tasks = [asyncio.create_task(book(processes[0], each, slot_id)) for each in CALLERS]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    async def is_free() -> bool:
        return await processes[1].locks.acquire(slot_id) is not None

    await eventually(is_free, "the lock")


class PoisonedCommand(BookSlotCommand):
    """A booking that cannot be decided."""

    def apply(self, state: LoadedState, now: datetime) -> Decision[BookOutcome]:
        """Raise: ValueError."""
        raise ValueError("poison", state, now)

    preview = apply


async def book_with_a_poisoned_neighbor(
    services: Services, slot_id: SlotId
) -> list[CommandResult[BookOutcome] | BaseException]:
    """Book a slot for three callers at once, of whom the second has a poisoned command."""
    commands = [
        cls.create(caller, slot_id, caller.user_id, False, None)
        for cls, caller in zip(
            (BookSlotCommand, PoisonedCommand, BookSlotCommand), CALLERS, strict=False
        )
    ]
    executing = (executor.execute(services, command) for command in commands)
    return await asyncio.gather(*executing, return_exceptions=True)


async def test_a_poisoned_command_fails_alone(processes: Processes) -> None:
    slot_id = await add_slot(processes[0], capacity=3)
    first, second, third = await book_with_a_poisoned_neighbor(processes[0], slot_id)
    assert isinstance(second, ValueError)
    assert isinstance(first, CommandResult)
    assert isinstance(first.outcome, Booked)
    assert isinstance(third, CommandResult)
    assert isinstance(third.outcome, Booked)


async def test_control_without_isolation_a_poisoned_command_fails_its_neighbors(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_queue, "is_unavailable", lambda _: True)
    slot_id = await add_slot(processes[0], capacity=3)
    results = await book_with_a_poisoned_neighbor(processes[0], slot_id)
    assert [type(result) for result in results] == [ValueError] * 3
