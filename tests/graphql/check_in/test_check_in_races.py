"""Of many scanners that read one code at the same instant, exactly one checks the user in."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.attendance import CHECK_IN, booked_soon, fetch_code
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.transport.simultaneous_requests import MAX_LUCKY_RUNS, send_simultaneously

Pair = tuple[AppProcess, AppProcess]
SCANNERS = 20


async def scan_at_once(
    apps: Pair, ada: BookingClient, organizer: BookingClient
) -> tuple[Counter[str], list[str]]:
    """Return the results of scanners at both processes, and the history of the booking."""
    slot_id, booking_id = await booked_soon(organizer, ada)
    names = {"code": await fetch_code(ada, booking_id), "slotId": slot_id, "waitMs": 20_000}
    outcomes = await send_simultaneously(
        [
            (apps[n % 2].url, organizer.token or "", CHECK_IN, {"input": names})
            for n in range(SCANNERS)
        ]
    )
    history = (await organizer.fetch_booking(booking_id))["history"]
    results = Counter(str(outcome["__typename"]) for outcome in outcomes)
    return results, [entry["action"] for entry in history]


async def test_of_20_scanners_at_two_processes_exactly_one_checks_in(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, *two_apps)
    results, history = await scan_at_once(two_apps, ada, organizer)
    assert results == {"CheckedIn": 1, "AlreadyCheckedIn": SCANNERS - 1}
    assert history == ["BOOKED", "CHECKED_IN"]


async def test_control_without_lock_and_version_both_processes_check_in(
    two_apps: Pair, http: httpx.AsyncClient, log_dir: Path
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, *two_apps)
    environment, guards = two_apps[0].environment, "lock slot-version transaction"
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(app_variant(environment, log_dir / name, without_guards=guards))
            for name in "ab"
        )
        for _ in range(MAX_LUCKY_RUNS):
            results, _ = await scan_at_once((first, second), ada, organizer)
            if results["CheckedIn"] > 1:
                break
    assert results["CheckedIn"] > 1
