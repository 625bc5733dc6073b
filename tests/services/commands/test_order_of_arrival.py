"""Callers who wait for a slot are served in order of arrival, whichever process they reach."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from time import monotonic

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.services import caller_queue, free_place_hints
from slotlock.services.booking.book import BookingOptions, book_slot, book_slots
from slotlock.services.caller_queue import LockedBatch
from slotlock.services.caller_queues import CallerQueues
from slotlock.services.commands.commit import locked_result
from slotlock.services.commands.group_commit import CommandBatchServer
from slotlock.services.container import Services
from slotlock.services.free_place_hints import PLACES_PER_CALLER
from slotlock.services.slot_command import SlotCommand
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.model.service_pair import (
    ManualClock,
    PausableSlotWriter,
    open_services,
)
from tests.support.polling import poll_until
from tests.support.stores.lock_nodes import (
    acquire_lease,
    release_lease,
    stored_lock,
    wait_for_waiters,
    wait_until_free,
)
from tests.support.stores.slots import insert_new_slots

# Between two callers: longer than two messages to Redis take, on a busy machine as well.
MIN_GAP_S, MESSAGES_OF_A_GAP = 0.4, 6
# Longer than a busy machine needs to begin with all callers of a burst.
BURST_S = 20.0
CALLERS = [Caller(UserId(f"{n:024x}"), Role.MEMBER, "session", NOW) for n in range(1, 6)]


@pytest.fixture
async def processes(servers: EmbeddedServers) -> AsyncIterator[Sequence[Services]]:
    """Yield the services of three processes."""
    url, clock = database_url(servers, "order_of_arrival"), ManualClock(NOW)
    async with AsyncExitStack() as stack:
        yield [await open_services(stack, url, servers.redis_url, clock) for _ in range(3)]


async def new_slot(services: Services, capacity: int) -> SlotId:
    """Insert an empty slot and return its id."""
    slot = build_slot(capacity, id=new_slot_id())
    await insert_new_slots(services.slot_writer._database, slot)
    return slot.id


def pausable(services: Services) -> PausableSlotWriter:
    """Return the slot writer, which can be paused."""
    assert isinstance(services.slot_writer, PausableSlotWriter)
    return services.slot_writer


async def book(services: Services, caller: Caller, slot_id: SlotId, wait_s: float = 20.0) -> str:
    """Book a slot, waiting for its lock, and return the type of the outcome."""
    options = BookingOptions(wait_s=wait_s)
    result = await book_slot(services, caller, slot_id, caller.user_id, options)
    return type(result.outcome).__name__


async def leave_gap(services: Services, min_gap_s: float = MIN_GAP_S) -> None:
    """Let time pass until a caller who comes now counts as later than those before."""
    sent_at = monotonic()
    await services.locks.pipeline.send("PING")
    await asyncio.sleep(max(min_gap_s, MESSAGES_OF_A_GAP * (monotonic() - sent_at)))


async def book_alternately(processes: Sequence[Services], capacity: int) -> list[str]:
    """Let callers reach two processes by turns while a third has the lock; return the outcomes."""
    first, second, third = processes
    slot_id = await new_slot(first, capacity)
    lease = await acquire_lease(third.locks, slot_id)
    tasks = []
    for number, caller in enumerate(CALLERS[:4]):
        tasks.append(asyncio.create_task(book((first, second)[number % 2], caller, slot_id)))
        await wait_for_waiters(third.locks, slot_id, min(number + 1, 2))
        await leave_gap(third)
    await release_lease(third.locks, lease)
    return await asyncio.gather(*tasks)


@pytest.mark.parametrize("capacity", [1, 2, 3])
async def test_places_go_to_the_first_callers_of_two_processes(
    processes: Sequence[Services], capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_queue, "SIMULTANEOUS_S", 0.0)
    outcomes = await book_alternately(processes, capacity)
    assert outcomes == ["Booked"] * capacity + ["SlotFull"] * (4 - capacity)


async def test_control_if_all_callers_count_as_simultaneous_a_later_one_gets_a_place(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_queue, "SIMULTANEOUS_S", math.inf)
    outcomes = await book_alternately(processes, capacity=2)
    assert outcomes == ["Booked", "SlotFull", "Booked", "SlotFull"]


async def book_in_a_burst(
    processes: Sequence[Services], slot_id: SlotId, numbers: range
) -> list[str]:
    """Let callers reach two processes by turns at one instant; return the outcomes."""
    first, second, third = processes
    lease = await acquire_lease(third.locks, slot_id)
    callers = [Caller(UserId(f"{n:024x}"), Role.MEMBER, "session", NOW) for n in numbers]
    tasks = [
        asyncio.create_task(book((first, second)[number % 2], caller, slot_id))
        for number, caller in enumerate(callers)
    ]
    await wait_for_waiters(third.locks, slot_id, 2)
    await release_lease(third.locks, lease)
    return await asyncio.gather(*tasks)


async def winners_of_a_burst(processes: Sequence[Services]) -> list[int]:
    """Let 200 callers reach two processes by turns at one instant; return who gets 100 places."""
    slot_id = await new_slot(processes[0], 100)
    outcomes = await book_in_a_burst(processes, slot_id, range(1, 201))
    return [number for number, outcome in enumerate(outcomes) if outcome == "Booked"]


async def test_callers_who_reach_two_processes_together_get_places_alternately(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_queue, "SIMULTANEOUS_S", BURST_S)
    winners = await winners_of_a_burst(processes)
    # A process is ahead of the other by one part at most, a quarter of its callers.
    assert len(winners) == 100
    assert winners[:70] == list(range(70))
    assert winners[-1] < 130


async def test_control_without_alternation_one_process_gets_all_places(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_queue, "SIMULTANEOUS_S", BURST_S)
    monkeypatch.setattr(caller_queue, "MIN_BURST_QUOTA", caller_queue.MAX_BATCH_CALLERS)
    winners = await winners_of_a_burst(processes)
    assert {number % 2 for number in winners} in ({0}, {1})


async def batch_sizes_of_a_burst(
    processes: Sequence[Services], capacity: int, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Let 40 callers reach two processes by turns; return the sizes of their batches.

    Both processes have seen the slot a moment ago.
    """
    monkeypatch.setattr(caller_queue, "SIMULTANEOUS_S", BURST_S)
    monkeypatch.setattr(free_place_hints, "TRUSTED_FOR_S", 60.0)
    slot_id = await new_slot(processes[0], capacity)
    for services, caller in zip(processes, CALLERS, strict=False):
        assert await book(services, caller, slot_id) == "Booked"
    sizes = list[int]()
    take_batch = caller_queue.CallerQueue.take_batch

    def record_size(
        self: caller_queue.CallerQueue[object], next_arrival: float, burst_quota: int = 0
    ) -> list[caller_queue.QueuedCaller[object]]:
        batch = take_batch(self, next_arrival, burst_quota)
        sizes.append(len(batch))
        return batch

    monkeypatch.setattr(caller_queue.CallerQueue, "take_batch", record_size)
    outcomes = await book_in_a_burst(processes, slot_id, range(11, 51))
    assert outcomes == ["Booked"] * 40
    return sizes


async def test_with_places_for_all_a_batch_takes_all_callers_of_its_process(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = await batch_sizes_of_a_burst(processes, 40 * PLACES_PER_CALLER, monkeypatch)
    assert sizes == [20, 20]


async def test_with_many_places_a_batch_has_a_quarter_as_many_callers(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = await batch_sizes_of_a_burst(processes, 3 + 15 * PLACES_PER_CALLER, monkeypatch)
    assert sizes[0] == 15


async def test_control_with_few_places_batches_end_where_another_caller_came_first(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = await batch_sizes_of_a_burst(processes, 50, monkeypatch)
    assert len(sizes) > 2


async def book_while_the_first_is_written(
    processes: Sequence[Services], wait_s: float, joining_count: int
) -> list[str]:
    """Let callers reach two processes by turns while the first has the lock for its first caller.

    That caller waits for `wait_s`. Returns the outcomes of five callers for three places once
    `joining_count` processes have waited for the lock.
    """
    first, second, third = processes
    slot_id = await new_slot(first, 3)
    paused = pausable(first).pause_next_commit()
    tasks = [asyncio.create_task(book(first, CALLERS[0], slot_id, wait_s))]
    await paused.wait()
    for number, caller in enumerate(CALLERS[1:], start=1):
        services = (first, second)[number % 2]
        tasks.append(asyncio.create_task(book(services, caller, slot_id)))
        await wait_for_waiters(third.locks, slot_id, min(number, joining_count))
        await leave_gap(third)
    pausable(first).resume_event.set()
    return await asyncio.gather(*tasks)


@pytest.mark.parametrize("wait_s", [0.0, 20.0])
async def test_callers_whose_process_has_the_lock_wait_in_the_order_of_both_processes(
    processes: Sequence[Services], wait_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_queue, "SIMULTANEOUS_S", 0.0)
    outcomes = await book_while_the_first_is_written(processes, wait_s, joining_count=2)
    assert outcomes == ["Booked"] * 3 + ["SlotFull"] * 2


async def test_control_if_they_wait_after_the_release_only_a_later_one_gets_a_place(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_queue, "SIMULTANEOUS_S", 0.0)
    monkeypatch.setattr(CallerQueues, "_wait_for_lock", lambda *_: None)
    outcomes = await book_while_the_first_is_written(processes, 20.0, joining_count=1)
    assert outcomes == ["Booked", "Booked", "SlotFull", "Booked", "SlotFull"]


async def test_a_caller_who_waits_does_not_wait_for_a_group(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CallerQueues, "_start_group", lambda *_: None)
    slot_id = await new_slot(processes[0], 2)
    callers = zip(CALLERS, (0.0, 20.0), strict=False)
    booking = [book(processes[0], caller, slot_id, wait_s) for caller, wait_s in callers]
    assert await asyncio.gather(*booking) == ["Booked", "Booked"]


async def test_callers_whose_batch_lost_every_attempt_stay_in_their_order(
    processes: Sequence[Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = processes
    slot_id, serve = await new_slot(first, 1), CommandBatchServer.serve

    async def lose_once(
        self: CommandBatchServer, batch: LockedBatch[SlotCommand[object]]
    ) -> tuple[CommandResult[object], ...]:
        monkeypatch.setattr(CommandBatchServer, "serve", serve)
        assert len(batch.commands) == 3
        await first.locks.release(batch.lease)
        return tuple(locked_result(command) for command in batch.commands)

    monkeypatch.setattr(CommandBatchServer, "serve", lose_once)
    lease = await acquire_lease(second.locks, slot_id)
    tasks = [asyncio.create_task(book(first, caller, slot_id)) for caller in CALLERS[:3]]
    await wait_for_waiters(second.locks, slot_id, 1)
    await release_lease(second.locks, lease)
    assert await asyncio.gather(*tasks) == ["Booked", "SlotFull", "SlotFull"]


async def test_a_command_for_two_slots_waits_for_both_at_the_place_of_its_arrival(
    processes: Sequence[Services],
) -> None:
    first, second, third = processes
    ids = [await new_slot(first, 1) for _ in range(2)]
    leases = [await acquire_lease(third.locks, slot_id) for slot_id in ids]
    claims = [(slot_id, CALLERS[0].user_id) for slot_id in ids]
    options = BookingOptions(wait_s=20)
    both = asyncio.create_task(book_slots(first, CALLERS[0], claims, options))
    await wait_for_waiters(third.locks, ids[0], 1)
    # Its place for the second lock is reckoned when Redis runs its command, maybe late.
    await leave_gap(third, 2.0)
    later = asyncio.create_task(book(second, CALLERS[1], ids[1]))
    await wait_for_waiters(third.locks, ids[1], 1)
    await release_lease(third.locks, leases[0])

    await wait_for_waiters(third.locks, ids[1], 2)
    await release_lease(third.locks, leases[1])
    assert (type((await both).outcome).__name__, await later) == ("AllBooked", "SlotFull")


async def test_a_lock_that_is_granted_after_its_callers_have_left_is_released(
    processes: Sequence[Services],
) -> None:
    first, second, third = processes
    slot_id = await new_slot(first, 4)
    lease = await acquire_lease(third.locks, slot_id)
    tasks = []
    for services, caller, count in zip((first, second, first), CALLERS, (1, 2, 2), strict=False):
        tasks.append(asyncio.create_task(book(services, caller, slot_id)))
        await wait_for_waiters(third.locks, slot_id, count)
        await leave_gap(third)
    paused = pausable(first).pause_next_commit()
    await release_lease(third.locks, lease)
    await paused.wait()
    # The first process has the lock for its first caller, and waits again for its second one.
    tasks[1].cancel()

    await wait_for_waiters(third.locks, slot_id, 1)
    before = await stored_lock(third.locks, slot_id)
    await third.locks.pipeline.send("DEL", lock_keys(slot_id).lock)
    await poll_until(
        lambda: stored_lock(third.locks, slot_id),
        lambda lock: lock not in (None, before),
        "the lock is granted to the second caller",
    )
    tasks[2].cancel()
    await asyncio.gather(*tasks[1:], return_exceptions=True)
    pausable(first).resume_event.set()
    assert await tasks[0] == "Booked"
    await wait_until_free(third.locks, slot_id)
