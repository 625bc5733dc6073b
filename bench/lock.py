"""How long a crowd in line takes beside the ideal: `python -m bench.lock` (make bench-lock).

Fifty people who wait for one lock, through two offices, do 20 ms of work each under it. The ideal
is the same work done one after the other without any lock, measured in the same round.
Also, how long ten waiters of a killed process hold up the one behind them.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.machine import size
from slotlock.domain.bookings import SlotId
from slotlock.stores.ids import new_slot_id
from slotlock.stores.locks import Locks
from tests.support.fleets import SHAPES, Fleet
from tests.support.offices import doomed_office, held, in_line, office, stand, until

CROWD = 50
WORK_S = 0.02
ROUNDS = 5
DEAD = 10


async def ratios(fleet: Fleet) -> list[float]:
    """The time that a crowd takes, as a multiple of the ideal, each round."""
    async with office(fleet.url) as one, office(fleet.url) as other:
        return [await _round((one, other)) for _ in range(ROUNDS)]


async def _round(offices: tuple[Locks, Locks]) -> float:
    began = time.perf_counter()
    for _ in range(CROWD):
        await asyncio.sleep(WORK_S)
    ideal, began, slot_id = time.perf_counter() - began, time.perf_counter(), new_slot_id()
    await asyncio.gather(*(_work(offices[n % 2], slot_id) for n in range(CROWD)))
    return (time.perf_counter() - began) / ideal


async def stall(fleet: Fleet) -> float:
    """The seconds that one waits behind the waiters of a killed process."""
    slot_id = new_slot_id()
    async with office(fleet.url) as one, office(fleet.url) as other:
        lease = await held(one, slot_id)
        with doomed_office(fleet.url, slot_id, DEAD) as doomed:

            async def they_stand() -> bool:
                return await in_line(one, slot_id) == DEAD

            await until(they_stand, "all of them in line")
            behind = await stand(other, slot_id)
            doomed.kill()
            doomed.wait()
        began = time.perf_counter()
        await one.release(lease)
        await behind
        return time.perf_counter() - began


async def _work(at: Locks, slot_id: SlotId) -> None:
    lease = await held(at, slot_id, wait_s=60)
    await asyncio.sleep(WORK_S)
    await at.release(lease)


def main() -> int:
    """Print the table."""
    print(f"{CROWD} people with {WORK_S * 1000:.0f} ms of work each, {ROUNDS} rounds; {size()}")
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder, shape(Path(folder)) as fleet:
            told = sorted(asyncio.run(ratios(fleet)))
            stalled = asyncio.run(stall(fleet))
        print(
            f"{name:12} {median(told):.3f} of the ideal ({told[0]:.3f} to {told[-1]:.3f});"
            f" {DEAD} waiters of a killed process: {stalled:.2f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
