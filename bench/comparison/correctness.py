"""Finds the problems of a run: what MongoDB has, compared with what clients were sent."""

from bench.comparison.load import HOT_SLOTS, READ_WORKLOADS, Load
from bench.comparison.targets.slots import Tally


def find_problems(
    workload: str, load: Load, tally: Tally, statuses: frozenset[str], connections: int
) -> list[str]:
    """Return the problems of a run; none if it is correct.

    `statuses` are the expected ones. wrk ends with a request open on each of its connections, so
    that MongoDB may have so many bookings more than were acknowledged.
    """
    found = [] if load.requests else ["no response"]
    found += _booking_problems(workload, load, tally, connections)
    return found + response_problems(load, statuses)


def response_problems(load: Load, statuses: frozenset[str]) -> list[str]:
    """Return the problems of the responses themselves."""
    found = []
    if load.outcomes["other"]:
        found.append(f"{load.outcomes['other']} unexpected responses, the last: {load.unexpected}")
    unexpected = {status: n for status, n in load.statuses.items() if status not in statuses}
    if unexpected:
        found.append(f"unexpected statuses: {unexpected}")
    if any(load.socket_errors.values()):
        found.append(f"socket errors: {load.socket_errors}")
    return found


def _booking_problems(workload: str, load: Load, tally: Tally, connections: int) -> list[str]:
    found = []
    acknowledged = load.outcomes["booked"]
    if tally.booked < acknowledged:
        found.append(f"{acknowledged} bookings acknowledged, MongoDB has {tally.booked}")
    if tally.booked > acknowledged + connections:
        found.append(f"MongoDB has {tally.booked} bookings, only {acknowledged} acknowledged")
    if workload in READ_WORKLOADS and tally.booked:
        found.append(f"{tally.booked} bookings by queries")
    if workload == "hot" and tally.booked != HOT_SLOTS:
        found.append(f"{tally.booked} bookings in {HOT_SLOTS} slots with one place each")
    if workload in ("spread", "mixed") and load.outcomes["full"]:
        found.append(f"{load.outcomes['full']} requests for a booked slot: --slots is too small")
    refused = load.outcomes["full"] + load.outcomes["locked"]
    if workload == "crowd" and refused:
        found.append(f"{refused} requests of a crowd were refused although places were free")
    if tally.wrong:
        found.append(f"{tally.wrong} slots whose bookings and places disagree")
    return found
