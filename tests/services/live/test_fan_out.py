"""The fan-out runs every delivery, in order, without blocking the event loop for long."""

import asyncio
from functools import partial
from itertools import pairwise

from slotlock.services.live.fan_out import BATCH_SIZE, FanOutQueue

COUNT = 5 * BATCH_SIZE


async def until_done(delivered: list[int]) -> None:
    """Wait until the last delivery has run."""
    async with asyncio.timeout(20):
        while not delivered or delivered[-1] != COUNT - 1:
            await asyncio.sleep(0)


async def test_deliveries_run_in_order_and_not_before_the_publisher_has_returned() -> None:
    fan_out, delivered = FanOutQueue(), list[int]()
    for number in range(COUNT):
        fan_out.add(partial(delivered.append, number))
    assert not delivered
    await until_done(delivered)
    assert delivered == list(range(COUNT))


async def test_other_tasks_run_between_two_batches() -> None:
    fan_out, delivered = FanOutQueue(), list[int]()
    for number in range(COUNT):
        fan_out.add(partial(delivered.append, number))
    counts = [0]
    while len(delivered) < COUNT:
        await asyncio.sleep(0)
        counts.append(len(delivered))
    batch_sizes = [after - before for before, after in pairwise(counts)]
    assert max(batch_sizes) == BATCH_SIZE


async def test_a_delivery_that_fails_does_not_stop_the_others() -> None:
    fan_out, delivered, errors = FanOutQueue(), list[int](), list[object]()

    def fail() -> None:
        raise RuntimeError("a delivery failed")

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
    for number in range(COUNT):
        if number % BATCH_SIZE == 3:
            fan_out.add(fail)
        fan_out.add(partial(delivered.append, number))
    await until_done(delivered)
    assert delivered == list(range(COUNT))
    assert len(errors) == COUNT // BATCH_SIZE


async def test_a_delivery_may_add_another_one() -> None:
    fan_out, delivered = FanOutQueue(), list[int]()
    fan_out.add(lambda: fan_out.add(partial(delivered.append, COUNT - 1)))
    await until_done(delivered)
    assert delivered == [COUNT - 1]
