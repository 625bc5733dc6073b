"""The size of the comparison: the whole one, and a quick one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of rounds, the seconds of a run and the number of slots.

    `process_counts` are the processes of each target; the rounds are repeated for each count.
    `subscribers` are the sizes of the fan-out.
    `rate_limits` adds slotlock with rate limits to the targets.
    """

    rounds: int
    seconds: int
    slots: int
    process_counts: tuple[int, ...]
    subscribers: tuple[int, ...]
    rate_limits: bool = True


# Takes less than 10 minutes.
FULL = Plan(rounds=3, seconds=2, slots=200_000, process_counts=(2, 1), subscribers=(1_000, 5_000))
# Takes less than 2 minutes.
QUICK = Plan(
    rounds=2,
    seconds=1,
    slots=24_000,
    process_counts=(2,),
    subscribers=(1_000,),
    rate_limits=False,
)
QUICK_OMISSIONS = "--quick leaves out: one process each, rate limits, 5,000 subscribers"
