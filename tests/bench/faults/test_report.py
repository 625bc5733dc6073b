"""The report says what a booking had to wait for: the election that took place, not its timeout."""

import pytest

from bench.faults.injection.injector import InjectedFault
from bench.faults.report import Failover, fault_rows, physical_limit
from bench.faults.topology.members import Election

KILLED = "mongod primary killed"
NO_MAJORITY = "partition: no majority"


def test_a_row_has_the_longest_failover_of_its_faults() -> None:
    faults = [
        InjectedFault(KILLED, "mongo0", 10.0, 15.0, 16.0, Election(13.2, 13.3)),
        InjectedFault(KILLED, "mongo1", 30.0, 35.0, 36.0, Election(33.1, 34.6)),
        InjectedFault(KILLED, "mongo2", 50.0, 55.0, 56.0),
    ]
    row = fault_rows(faults, [[9.0, 14.0, 29.0, 35.0, 57.0]])[0]
    assert (row.count, row.longest_failover) == (3, Failover(3.1, 4.6))


@pytest.mark.parametrize(
    ("kind", "longest", "limit"),
    [
        (KILLED, Failover(3.1, 4.6), "election 3.1 s, its majority 4.6 s"),
        (KILLED, None, "the fault, no election"),
        (NO_MAJORITY, Failover(3.1, 4.6), "the fault"),
        ("app killed", None, "0; worse app: the fault"),
        (
            "partition: primary with an app",
            Failover(3.2, 3.4),
            "election 3.2 s, its majority 3.4 s; worse app: the fault",
        ),
    ],
)
def test_the_limit_is_the_election_that_was_observed(
    kind: str, longest: Failover | None, limit: str
) -> None:
    assert physical_limit(kind, "alone", longest) == limit
