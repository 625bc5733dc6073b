"""How long a crowd in line takes beside the ideal: `python -m bench.lock` (make bench-lock).

Fifty people who wait for one lock, through two offices, do 20 ms of work each under it. The ideal
is the same work done one after the other without any lock, measured in the same round.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.machine import size
from slotlock.domain.bookings import SlotId
from slotlock.stores.locks import Locks
from slotlock.stores.slots import new_slot_id
from tests.support.fleets import SHAPES, Fleet
from tests.support.offices import held, office

CROWD = 50
WORK_S = 0.02
ROUNDS = 5


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
        print(f"{name:12} {median(told):.3f} of the ideal ({told[0]:.3f} to {told[-1]:.3f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
