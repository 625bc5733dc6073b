"""A queue that serves its clients by round robin, so that none waits for all jobs of another."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.infrastructure import fair_scheduler
from slotlock.infrastructure.fair_scheduler import (
    JOBS_IN_MEAN,
    MAX_RETRY_AFTER_S,
    TIME_AFTER_WAIT_S,
    FairScheduler,
    Priority,
    SchedulerFullError,
)
from slotlock.infrastructure.request_deadline import (
    RESERVE_S,
    RequestDeadlines,
    within_deadline,
)

FLOODER, OTHER = "192.0.2.1", "192.0.2.2"
HIGH, NORMAL, LOW = Priority
JOB_S = 60.0


class Scene:
    """A queue whose first job runs until `release`, and the jobs that it ran since, in order."""

    def __init__(self, max_waiting: int = 100) -> None:
        self.queue = FairScheduler[str](1, max_wait_s=max_waiting * JOB_S, expected_job_s=JOB_S)
        self.served: list[str] = []
        self.release = asyncio.Event()

    async def block(self) -> "asyncio.Task[str]":
        """Occupy the queue."""

        async def wait() -> str:
            await self.release.wait()
            return "blocker"

        task = asyncio.create_task(self.queue.run("198.51.100.1", wait))
        await asyncio.sleep(0)
        return task

    async def send(
        self,
        client: str | None,
        name: str,
        *,
        key: str | None = None,
        priority: Priority = NORMAL,
    ) -> str:
        """Send a job, which returns its name."""

        async def serve() -> str:
            self.served.append(name)
            return name

        return await self.queue.run(client, serve, key=key, priority=priority)

    async def outcomes(self, *sent: "asyncio.Task[str]") -> list[str]:
        """Serve all jobs; return the result of each, or the name of its error."""
        await asyncio.sleep(0)
        self.release.set()
        results = await asyncio.gather(*sent, return_exceptions=True)
        return [each if isinstance(each, str) else type(each).__name__ for each in results]


async def send_flood_and_one_of_another(flooder: str | None, other: str | None) -> list[str]:
    """Send twenty jobs of one client and then one of another; return the order of service."""
    scene = Scene()
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(flooder, f"flood {n}")) for n in range(20)]
    await scene.outcomes(*jobs, asyncio.create_task(scene.send(other, "other")))
    return scene.served


async def test_a_client_waits_for_one_job_of_another_however_many_that_one_sent() -> None:
    served = await send_flood_and_one_of_another(FLOODER, OTHER)
    assert served.index("other") == 1


async def test_control_in_order_of_arrival_a_client_waits_for_all_jobs_of_another() -> None:
    served = await send_flood_and_one_of_another(None, None)
    assert served.index("other") == 20


async def test_higher_jobs_go_first_but_every_fourth_job_is_a_lower_one() -> None:
    scene = Scene()
    jobs = [await scene.block()]  # the first job
    jobs += [asyncio.create_task(scene.send(FLOODER, "low", priority=LOW)) for _ in range(2)]
    jobs += [asyncio.create_task(scene.send(FLOODER, "normal")) for _ in range(4)]
    jobs += [asyncio.create_task(scene.send(OTHER, "high", priority=HIGH)) for _ in range(12)]
    await scene.outcomes(*jobs)
    order = [*["high"] * 3, "normal"]
    assert scene.served == [*order[1:], *order * 2, *order[:3], "low", "high", "normal", "low"]


async def test_a_client_that_is_alone_may_use_all_places() -> None:
    scene = Scene(max_waiting=20)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(FLOODER, "job")) for _ in range(22)]
    assert await scene.outcomes(*jobs) == ["blocker", *["job"] * 20, *["SchedulerFullError"] * 2]


async def test_a_flood_of_lower_jobs_takes_no_place_that_higher_ones_use() -> None:
    scene = Scene(max_waiting=16)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(f"{n}", "low", priority=LOW)) for n in range(30)]
    jobs += [asyncio.create_task(scene.send(OTHER, "high", priority=HIGH)) for _ in range(15)]
    outcomes = await scene.outcomes(*jobs)
    assert outcomes.count("high") == 15
    assert outcomes.count("low") == 1


async def test_a_flood_of_higher_jobs_takes_no_place_that_lower_ones_may_use() -> None:
    scene = Scene(max_waiting=16)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(OTHER, "high", priority=HIGH)) for _ in range(30)]
    jobs.append(asyncio.create_task(scene.send(OTHER, "low", priority=LOW)))
    jobs += [asyncio.create_task(scene.send(OTHER, "high", priority=HIGH)) for _ in range(30)]
    assert (await scene.outcomes(*jobs)).count("low") == 1


async def test_as_many_jobs_wait_as_can_begin_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, now = Scene(max_waiting=10), 0.0

    async def take_twice_as_long() -> str:
        nonlocal now
        now += 2 * JOB_S
        return ""

    with monkeypatch.context() as measured:
        measured.setattr(fair_scheduler, "monotonic", lambda: now)
        for _ in range(10 * JOBS_IN_MEAN):
            await scene.queue.run(OTHER, take_twice_as_long)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(OTHER, "job")) for _ in range(10)]
    assert await scene.outcomes(*jobs) == ["blocker", *["job"] * 5, *["SchedulerFullError"] * 5]


async def waits_of_refused(scene: Scene, *clients: str) -> list[float]:
    """Let these clients send a job each; return how many jobs later the refused may come back."""
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(each, "job")) for each in clients]
    await asyncio.sleep(0)
    scene.release.set()
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)
    return [
        each.retry_after_ms / 1000 / JOB_S
        for each in outcomes
        if isinstance(each, SchedulerFullError)
    ]


async def test_refused_jobs_return_one_by_one_once_half_of_those_before_them_have_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_scheduler, "MAX_RETRY_AFTER_S", math.inf)
    waits = await waits_of_refused(Scene(max_waiting=9), *[OTHER] * 209)
    # The line had one job more when they were refused.
    assert waits == pytest.approx([5 + number for number in range(1, 201)], abs=0.1)


async def test_refused_jobs_of_two_clients_return_as_fast_as_each_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_scheduler, "MAX_RETRY_AFTER_S", math.inf)
    waits = await waits_of_refused(Scene(max_waiting=20), *[FLOODER, OTHER] * 30)
    assert max(waits) == pytest.approx(10.5 + 40, rel=0.1)


async def test_a_refused_job_returns_as_soon_as_those_of_its_priority_have_begun() -> None:
    scene = Scene(max_waiting=64)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(FLOODER, "low", priority=LOW)) for _ in range(63)]
    late = RequestDeadlines().begin()
    with within_deadline():
        late.at = monotonic() + RESERVE_S + TIME_AFTER_WAIT_S
        with pytest.raises(SchedulerFullError) as refused:
            await scene.send(OTHER, "high", priority=HIGH)
    await scene.outcomes(*jobs)
    assert refused.value.retry_after_ms < 2 * JOB_S * 1000


async def test_the_time_until_a_return_is_limited_if_others_never_return() -> None:
    waits_s = [JOB_S * each for each in await waits_of_refused(Scene(9), *[OTHER] * 1_000)]
    assert MAX_RETRY_AFTER_S / 2 <= min(waits_s[-500:]) < max(waits_s) <= MAX_RETRY_AFTER_S
    assert len(set(waits_s[-500:])) > 400


async def test_a_full_queue_refuses_the_newest_job_of_the_client_with_the_most() -> None:
    scene = Scene(max_waiting=3)
    jobs = [await scene.block()]
    for client, name in ((FLOODER, "1"), (FLOODER, "2"), (OTHER, "3"), ("192.0.2.3", "4")):
        jobs.append(asyncio.create_task(scene.send(client, name)))
    assert await scene.outcomes(*jobs) == ["blocker", "1", "SchedulerFullError", "3", "4"]


async def test_of_clients_with_equally_many_jobs_the_newest_job_is_refused() -> None:
    scene = Scene(max_waiting=2)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(f"192.0.2.{n}", str(n))) for n in range(1, 5)]
    full = ["SchedulerFullError"] * 2
    assert await scene.outcomes(*jobs) == ["blocker", "1", "2", *full]


async def refusals_for_equals(arrivals: Sequence[tuple[str, Priority]], places: int) -> list[str]:
    """Let jobs arrive, each of a client and a priority; return the refusals that are unfair.

    A refusal is unfair if a job of its priority waits on that came later, and whose client has as
    many.
    """
    scene, waiting, unfair = Scene(places), dict[int, asyncio.Task[str]](), list[str]()
    blocker = await scene.block()
    for number, (client, priority) in enumerate(arrivals):
        waiting[number] = asyncio.create_task(scene.send(client, "", priority=priority))
        for _ in range(2):  # the job arrives, and the one that is refused ends
            await asyncio.sleep(0)
        lengths = Counter(arrivals[each] for each in waiting)
        for refused in [each for each in waiting if waiting[each].done()]:
            waiting.pop(refused).exception()
            unfair += [
                f"{refused} was refused for {other}"
                for other in waiting
                if other > refused
                and arrivals[other][1] is arrivals[refused][1]
                and lengths[arrivals[other]] >= lengths[arrivals[refused]]
            ]
    assert len(waiting) <= places
    await scene.outcomes(blocker, *waiting.values())
    return unfair


@given(
    arrivals=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(Priority)), max_size=40),
    places=st.integers(1, 20),
)
def test_nobody_is_refused_for_one_who_came_later_with_as_many_jobs(
    arrivals: list[tuple[str, Priority]], places: int
) -> None:
    assert asyncio.run(refusals_for_equals(arrivals, places)) == []


def test_control_the_first_of_the_longest_queues_loses_its_place_to_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def newest_of_first(self: FairScheduler[str]) -> object:
        return next(reversed(max(self._queues[NORMAL].values(), key=len).values()))

    monkeypatch.setattr(FairScheduler, "_job_to_refuse", newest_of_first)
    arrivals = [(client, NORMAL) for client in "abcd"]
    assert asyncio.run(refusals_for_equals(arrivals, places=2)) != []


async def test_waiting_jobs_of_a_client_with_the_same_key_are_one_job() -> None:
    scene = Scene(max_waiting=2)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(FLOODER, f"{n}", key="k")) for n in range(3)]
    jobs += [asyncio.create_task(scene.send(OTHER, "other", key="k"))]
    assert await scene.outcomes(*jobs) == ["blocker", "0", "0", "0", "other"]
    assert scene.served == ["0", "other"]


async def test_a_job_that_nobody_waits_for_any_more_does_not_run() -> None:
    scene = Scene(max_waiting=1)
    blocker = await scene.block()
    abandoned = [asyncio.create_task(scene.send(FLOODER, f"{n}", key="k")) for n in range(2)]
    await asyncio.sleep(0)
    for task in abandoned:
        task.cancel()
    await asyncio.gather(*abandoned, return_exceptions=True)
    later = asyncio.create_task(scene.send(FLOODER, "later"))  # its place is free again
    assert await scene.outcomes(blocker, later) == ["blocker", "later"]
    assert scene.served == ["later"]


async def test_a_job_whose_request_would_end_too_late_does_not_run() -> None:
    scene = Scene()
    blocker = await scene.block()
    deadline = RequestDeadlines().begin()
    with within_deadline():
        deadline.at = monotonic() + RESERVE_S + TIME_AFTER_WAIT_S
        with pytest.raises(SchedulerFullError):
            await scene.send(OTHER, "late")
    assert await scene.outcomes(blocker) == ["blocker"]
    assert scene.served == []


async def test_a_queue_that_rests_lets_other_tasks_run_between_two_jobs() -> None:
    queue = FairScheduler[float](1, max_wait_s=60, expected_job_s=0.01, rest_factor=3)

    async def block_event_loop() -> float:
        started_at = monotonic()
        while monotonic() < started_at + 0.01:
            pass
        return started_at

    first, second = await asyncio.gather(*(queue.run(OTHER, block_event_loop) for _ in range(2)))
    assert second - first >= 0.04


async def test_a_permit_lasts_until_its_context_ends_however_it_ends() -> None:
    queue, order = FairScheduler[None](1, max_wait_s=60, expected_job_s=1), list[str]()

    async def take(name: str, error: type[BaseException] | None = None) -> None:
        async with queue.permit(OTHER):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")
            if error:
                raise error

    errors = [None, ValueError, asyncio.CancelledError, None]
    taking = (take(f"{number}", error) for number, error in enumerate(errors))
    outcomes = await asyncio.gather(*taking, return_exceptions=True)
    assert [type(each) for each in outcomes if each] == [ValueError, asyncio.CancelledError]
    assert order == [f"{number} {each}" for number in range(4) for each in ("begins", "ends")]


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
async def test_a_job_that_fails_passes_its_error_on_and_frees_its_place(
    error: Callable[[], BaseException],
) -> None:
    scene = Scene()

    async def fail() -> str:
        raise error()

    with pytest.raises(type(error())):
        await scene.queue.run(OTHER, fail)
    assert await scene.send(OTHER, "next") == "next"
