"""A queue that serves its clients by round robin, so that none waits for all jobs of another."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.infrastructure.fair_scheduler import (
    TIME_AFTER_WAIT_S,
    FairScheduler,
    SchedulerFullError,
)
from slotlock.infrastructure.request_deadline import (
    RESERVE_S,
    RequestDeadlines,
    within_deadline,
)

FLOODER, OTHER = "192.0.2.1", "192.0.2.2"


class Scene:
    """A queue whose first job runs until `release`, and the jobs that it ran since, in order."""

    def __init__(self, max_waiting: int = 100, max_waiting_per_client: int = 100) -> None:
        self.queue = FairScheduler[str](
            1, max_waiting=max_waiting, max_waiting_per_client=max_waiting_per_client
        )
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
        self, client: str | None, name: str, *, key: str | None = None, is_urgent: bool = False
    ) -> str:
        """Send a job, which returns its name."""

        async def serve() -> str:
            self.served.append(name)
            return name

        return await self.queue.run(client, serve, key=key, is_urgent=is_urgent)

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


async def test_urgent_jobs_go_first_but_every_fourth_job_is_another_one() -> None:
    scene = Scene()
    jobs = [await scene.block()]  # the first job
    jobs += [asyncio.create_task(scene.send(FLOODER, "other")) for _ in range(3)]
    jobs += [asyncio.create_task(scene.send(OTHER, "urgent", is_urgent=True)) for _ in range(5)]
    await scene.outcomes(*jobs)
    assert scene.served == [*["urgent"] * 2, "other", *["urgent"] * 3, *["other"] * 2]


async def test_a_client_has_a_limited_number_of_waiting_jobs() -> None:
    scene = Scene(max_waiting_per_client=2)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(FLOODER, "flood")) for _ in range(4)]
    jobs += [asyncio.create_task(scene.send(OTHER, "other"))]
    refused = ["SchedulerFullError"] * 2
    assert await scene.outcomes(*jobs) == ["blocker", "flood", "flood", *refused, "other"]


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


async def refusals_for_equals(arrivals: Sequence[tuple[str, bool]], max_waiting: int) -> list[str]:
    """Let jobs arrive, each of a client and urgent or not; return the refusals that are unfair.

    A refusal is unfair if a job waits on that came later, and whose client has as many jobs.
    """
    scene, waiting, unfair = Scene(max_waiting), dict[int, asyncio.Task[str]](), list[str]()
    blocker = await scene.block()
    for number, (client, is_urgent) in enumerate(arrivals):
        waiting[number] = asyncio.create_task(scene.send(client, "", is_urgent=is_urgent))
        for _ in range(2):  # the job arrives, and the one that is refused ends
            await asyncio.sleep(0)
        lengths = Counter(arrivals[each] for each in waiting)
        for refused in [each for each in waiting if waiting[each].done()]:
            waiting.pop(refused).exception()
            unfair += [
                f"{refused} was refused for {other}"
                for other in waiting
                if other > refused and lengths[arrivals[other]] >= lengths[arrivals[refused]]
            ]
    await scene.outcomes(blocker, *waiting.values())
    return unfair


@given(
    arrivals=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30),
    max_waiting=st.integers(1, 5),
)
def test_nobody_is_refused_for_one_who_came_later_with_as_many_jobs(
    arrivals: list[tuple[str, bool]], max_waiting: int
) -> None:
    assert asyncio.run(refusals_for_equals(arrivals, max_waiting)) == []


def test_control_the_first_of_the_longest_queues_loses_its_place_to_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def newest_of_first(self: FairScheduler[str]) -> object:
        queues = [*self._others.values(), *self._urgent.values()]
        return next(reversed(max(queues, key=len).values()))

    monkeypatch.setattr(FairScheduler, "_newest_of_longest_queue", newest_of_first)
    arrivals = [(client, False) for client in "abcd"]
    assert asyncio.run(refusals_for_equals(arrivals, max_waiting=2)) != []


async def test_waiting_jobs_of_a_client_with_the_same_key_are_one_job() -> None:
    scene = Scene(max_waiting_per_client=1)
    jobs = [await scene.block()]
    jobs += [asyncio.create_task(scene.send(FLOODER, f"{n}", key="k")) for n in range(3)]
    jobs += [asyncio.create_task(scene.send(OTHER, "other", key="k"))]
    assert await scene.outcomes(*jobs) == ["blocker", "0", "0", "0", "other"]
    assert scene.served == ["0", "other"]


async def test_a_job_that_nobody_waits_for_any_more_does_not_run() -> None:
    scene = Scene(max_waiting_per_client=1)
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
    queue = FairScheduler[float](1, max_waiting=9, max_waiting_per_client=9, rest_factor=3)

    async def block_event_loop() -> float:
        started_at = monotonic()
        while monotonic() < started_at + 0.01:
            pass
        return started_at

    first, second = await asyncio.gather(*(queue.run(OTHER, block_event_loop) for _ in range(2)))
    assert second - first >= 0.04


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
