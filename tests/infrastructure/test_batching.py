"""Batches: each caller gets the result of its own item, and failures affect no other caller."""

import asyncio
import contextvars
import itertools
import math

import pytest

from slotlock.infrastructure import batching
from slotlock.infrastructure.batching import DEFAULT_BATCH_SIZE, Batcher, GroupBatcher

caller: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="nobody")


async def test_an_item_that_fails_fails_only_for_its_own_caller() -> None:
    async def run(items: list[int]) -> list[int | Exception]:
        return [ValueError("odd") if item % 2 else item for item in items]

    batcher: Batcher[int, int] = Batcher(run, max_batch_size=3)
    results = await asyncio.gather(*map(batcher.submit, range(8)), return_exceptions=True)
    assert [each for each in results if isinstance(each, int)] == [0, 2, 4, 6]
    assert [str(each) for each in results if isinstance(each, ValueError)] == ["odd"] * 4


@pytest.mark.parametrize(("is_outage", "failed_count"), [(False, 2), (True, 5)])
async def test_a_batch_that_fails_fails_for_all_its_callers_and_in_an_outage_for_all_queued(
    is_outage: bool, failed_count: int
) -> None:
    failures = itertools.chain([True], itertools.repeat(False))

    async def run(items: list[int]) -> list[int | Exception]:
        if next(failures):
            raise OSError("unavailable")
        return list(items)

    batcher: Batcher[int, int] = Batcher(run, max_batch_size=2, is_outage=lambda _: is_outage)
    results = await asyncio.gather(*map(batcher.submit, range(5)), return_exceptions=True)
    assert [isinstance(each, OSError) for each in results].count(True) == failed_count
    assert results[failed_count:] == list(range(failed_count, 5))
    assert await batcher.submit(9) == 9


async def test_a_cancelled_caller_neither_withdraws_its_item_nor_harms_the_others() -> None:
    ran: list[int] = []

    async def run(items: list[int]) -> list[int | Exception]:
        await asyncio.sleep(0)
        ran.extend(items)
        return list(items)

    batcher: Batcher[int, int] = Batcher(run)
    leaving = asyncio.create_task(batcher.submit(1))
    staying = asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == 2
    assert ran == [1, 2]


async def test_a_batch_does_not_run_in_the_context_of_its_first_caller() -> None:
    async def run(items: list[int]) -> list[str | Exception]:
        return [caller.get() for _ in items]

    caller.set("first")
    assert await Batcher(run).submit(1) == "nobody"


@pytest.mark.parametrize(
    ("idle_iteration_s", "max_batch_size", "batches"),
    [
        pytest.param(0.0, DEFAULT_BATCH_SIZE, [[1, 2]], id="while the event loop is busy"),
        pytest.param(math.inf, DEFAULT_BATCH_SIZE, [[1], [2]], id="on an idle event loop"),
        pytest.param(0.0, 1, [[1], [2]], id="a full batch"),
    ],
)
async def test_while_the_event_loop_is_busy_a_batch_that_is_not_full_waits_for_more_callers(
    idle_iteration_s: float,
    max_batch_size: int,
    batches: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Every iteration counts as busy, or none.
    monkeypatch.setattr(batching, "IDLE_ITERATION_S", idle_iteration_s)
    monkeypatch.setattr(batching, "MAX_INTERVAL_S", 0.5)
    ran: list[list[int]] = []

    async def run(items: list[int]) -> list[int | Exception]:
        ran.append(items)
        return list(items)

    batcher: Batcher[int, int] = Batcher(run, max_batch_size)
    await batcher.submit(0)
    first = batcher.submit_nowait(1)
    for _ in range(10):
        await asyncio.sleep(0)
    await asyncio.gather(first, batcher.submit(2))
    assert ran == [[0], *batches]


async def test_a_batch_waits_for_a_busy_event_loop_no_longer_than_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "IDLE_ITERATION_S", 0.0)

    async def run(items: list[int]) -> list[int | Exception]:
        return list(items)

    batcher: Batcher[int, int] = Batcher(run)
    assert [await batcher.submit(number) for number in range(3)] == [0, 1, 2]


async def test_groups_share_batches_and_each_gets_its_results_in_order() -> None:
    batches: list[list[int]] = []

    async def run(items: list[int]) -> list[int | Exception]:
        batches.append(items)
        return [ValueError(f"{item}") if item < 0 else 10 * item for item in items]

    batcher: GroupBatcher[int, int] = GroupBatcher(run)
    large = list(range(DEFAULT_BATCH_SIZE + 1))
    results = await asyncio.gather(
        batcher.submit([3, 1]),
        batcher.submit([]),
        batcher.submit([2, -1, 5]),
        batcher.submit(large),
        return_exceptions=True,
    )
    assert [*results[:2]] == [[30, 10], []]
    assert isinstance(results[2], ValueError)
    assert results[3] == [10 * item for item in large]
    assert [len(batch) for batch in batches] == [DEFAULT_BATCH_SIZE, 6]
