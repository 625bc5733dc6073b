"""The faults of a campaign follow from its seed."""

import pytest

from bench.faults.availability import longest_gap_s
from bench.faults.injection.schedule import Schedule, faults_of
from bench.faults.topology.redis_servers import KINDS


@pytest.mark.parametrize("redis_kind", KINDS)
def test_every_kind_of_fault_comes_once_before_any_comes_again(redis_kind: str) -> None:
    kinds = set(faults_of(redis_kind))
    schedule = Schedule(7, redis_kind)

    for _ in range(2):
        assert {schedule.next().kind for _ in kinds} == kinds


def test_the_same_seed_gives_the_same_faults() -> None:
    one, same, other = Schedule(7, "alone"), Schedule(7, "alone"), Schedule(8, "alone")

    faults = [one.next() for _ in range(40)]

    assert faults == [same.next() for _ in range(40)]
    assert faults != [other.next() for _ in range(40)]


def test_only_the_chosen_kinds_are_planned() -> None:
    schedule = Schedule(7, "sentinel", only=("worker", "slow links"))
    for kind in ("worker killed", "full queue: worker killed", "mail leaves: worker killed"):
        schedule.remove(kind)

    kinds = {schedule.next().kind for _ in range(8)}

    assert kinds == {
        "worker frozen",
        "worker stopped",
        "partition: worker without MongoDB",
        "slow links to MongoDB",
    }


@pytest.mark.parametrize(
    ("acknowledged_at", "gap_s"),
    [([1.0, 2.0, 9.0, 11.0], 7.0), ([1.0], 9.0), ([], 10.0), ([-5.0, 4.0, 30.0], 26.0)],
)
def test_the_longest_gap_lasts_until_the_next_booking(
    acknowledged_at: list[float], gap_s: float
) -> None:
    assert longest_gap_s(acknowledged_at, 0.0, 10.0) == gap_s
