"""Defects of five published designs with several places: each occurs only without its guard."""

import asyncio
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, kill_at_pause, lock_key, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import Json
from tests.support.scenarios.bed_race import USERS_PER_RACE, create_bed_races, run_rounds

Pair = tuple[AppProcess, AppProcess]
LONG_RUN_ROUNDS = int(os.environ.get("TEST_CAMPAIGN", "0"))
RACES = 5
MEMBER_COUNT = RACES * USERS_PER_RACE
MAX_KILL_INTERVAL_S = 4.0


def claims(slot_ids: Sequence[str], user_ids: Sequence[str] = ()) -> list[Json]:
    """Return claims for a place in each slot, for these users or for the caller."""
    if not user_ids:
        return [{"slotId": slot_id} for slot_id in slot_ids]
    pairs = zip(slot_ids, user_ids, strict=True)
    return [{"slotId": slot_id, "userId": user_id} for slot_id, user_id in pairs]


async def booking_counts_after_kill(
    deployment: Deployment, point: str, without_guards: str
) -> list[int]:
    """Kill a process while it books two places and return the number of bookings per slot."""
    app, pause_point = deployment.paused_app(point, without_guards)
    slot_ids = [await deployment.add_slot(app) for _ in range(2)]
    request = deployment.client(app, 0).book_all(*claims(slot_ids))
    await kill_at_pause(pause_point, app, request)
    return [len(deployment.booking_ids(slot_id)) for slot_id in slot_ids]


async def test_a_process_killed_before_it_books_two_places_books_none(
    deployment: Deployment,
) -> None:
    assert await booking_counts_after_kill(deployment, "transaction", "") == [0, 0]


async def test_a_process_killed_after_it_booked_two_places_has_booked_both(
    deployment: Deployment,
) -> None:
    assert await booking_counts_after_kill(deployment, "release", "") == [1, 1]


async def test_control_without_all_or_none_a_killed_process_books_one_of_two_places(
    deployment: Deployment,
) -> None:
    assert await booking_counts_after_kill(deployment, "between-steps", "all-or-none") == [1, 0]


async def book_two_while_one_is_taken(
    deployment: Deployment, point: str, without_guards: str
) -> tuple[str, list[int]]:
    """Let Ben take the second of two places that Ada is about to book.

    Returns Ada's outcome and the number of bookings per slot.
    """
    app, pause_point = deployment.paused_app(point, without_guards)
    slot_ids = sorted([await deployment.add_slot(app) for _ in range(2)])
    adas = asyncio.create_task(deployment.client(app, 0).book_all(*claims(slot_ids)))
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.redis.delete(*map(lock_key, slot_ids))
    assert (await deployment.client(app, 1).book_slot(slot_ids[1]))["__typename"] == "Booked"
    pause_point.resume()
    outcome = (await adas)["__typename"]
    return outcome, [len(deployment.booking_ids(slot_id)) for slot_id in slot_ids]


async def test_if_one_of_two_places_is_taken_the_other_is_not_booked(
    deployment: Deployment,
) -> None:
    result = await book_two_while_one_is_taken(deployment, "commit", "")
    assert result == ("ClaimsRefused", [0, 1])


async def test_control_without_all_or_none_the_other_place_is_booked(
    deployment: Deployment,
) -> None:
    outcome, bookings = await book_two_while_one_is_taken(deployment, "commit", "all-or-none")
    assert outcome != "AllBooked"
    assert bookings == [1, 1]


async def two_members_book_for_their_team(
    deployment: Deployment, without_guards: str
) -> tuple[set[str], int]:
    """Let both members of a team book two beds each for the team at the same time.

    Returns their outcomes and the number of booked beds.
    """
    slow_app, pause_point = deployment.paused_app("commit", without_guards)
    app = deployment.app(without_guards) if without_guards else slow_app
    choice_group = f"beds of {pause_point.key}"
    beds = [await deployment.add_slot(app, choiceGroup=choice_group) for _ in range(4)]
    ada, ben = deployment.clients(app, 2)
    await ada.create_team_with(ben)
    user_ids = [await ada.fetch_user_id(), await ben.fetch_user_id()]
    slow_ada = deployment.client(slow_app, 0)
    adas = asyncio.create_task(slow_ada.book_all(*claims(beds[:2], user_ids)))
    await asyncio.to_thread(pause_point.wait_until_reached)
    bens = await ben.book_all(*claims(beds[2:], user_ids))
    pause_point.resume()
    outcomes = {(await adas)["__typename"], bens["__typename"]}
    return outcomes, sum(len(deployment.booking_ids(bed)) for bed in beds)


async def test_two_members_who_book_for_their_team_at_once_get_one_bed_each(
    deployment: Deployment,
) -> None:
    result = await two_members_book_for_their_team(deployment, "")
    assert result == ({"AllBooked", "ClaimsRefused"}, 2)


async def test_control_without_user_versions_two_users_get_four_beds(
    deployment: Deployment,
) -> None:
    result = await two_members_book_for_their_team(deployment, "user-versions")
    assert result == ({"AllBooked"}, 4)


async def test_two_teams_that_claim_overlapping_beds_at_once_get_all_or_none(
    deployment: Deployment, two_apps: Pair
) -> None:
    await run_rounds(await create_bed_races(deployment, list(two_apps), RACES), rounds=40)


@pytest.mark.skipif(not LONG_RUN_ROUNDS, reason="TEST_CAMPAIGN is the number of rounds")
@pytest.mark.timeout(7200)
async def test_two_teams_get_all_beds_or_none_while_processes_are_killed(
    servers: EmbeddedServers, log_dir: Path
) -> None:
    async with open_deployment(
        app_environment(servers, "campaign"), log_dir, MEMBER_COUNT
    ) as deployment:
        apps = [deployment.app(), deployment.app()]
        killing = asyncio.create_task(kill_and_restart(deployment, apps))
        await run_rounds(await create_bed_races(deployment, apps, RACES), LONG_RUN_ROUNDS)
        killing.cancel()


async def kill_and_restart(deployment: Deployment, apps: list[AppProcess]) -> None:
    """Kill random processes and replace them until cancelled."""
    while True:
        await asyncio.sleep(random.uniform(0.5, MAX_KILL_INTERVAL_S))
        index = random.randrange(len(apps))
        apps[index].kill()
        apps[index] = await asyncio.to_thread(deployment.app)
