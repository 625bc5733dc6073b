"""What the five designs did wrong with several places at once: each defect with its guard."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, kill_at_pause, lock_key, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import Json
from tests.support.clients.teams import TeamClient as Member
from tests.support.scenarios.bed_race import USERS_PER_RACE, create_bed_races, run_rounds

Pair = tuple[AppProcess, AppProcess]
CAMPAIGN = int(os.environ.get("SLOTLOCK_CAMPAIGN", "0"))
KILL_EVERY_S = 4.0


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """A scene beside two processes that lack nothing."""
    async with open_deployment(two_apps[0].environment, log_dir) as deployment:
        yield deployment


def claims(slot_ids: Sequence[str], user_ids: Sequence[str] = ()) -> list[Json]:
    """A place in each slot, for these people or for whoever asks."""
    if not user_ids:
        return [{"slotId": slot_id} for slot_id in slot_ids]
    pairs = zip(slot_ids, user_ids, strict=True)
    return [{"slotId": slot_id, "userId": user_id} for slot_id, user_id in pairs]


async def killed_while_booking_two(deployment: Deployment, point: str, off: str) -> list[int]:
    """Ada's process dies while she books two places: how many bookings each slot has."""
    doomed, stage = deployment.paused_app(point, off)
    slot_ids = [await deployment.add_slot(doomed) for _ in range(2)]
    booking = deployment.client(doomed, 0).book_all(*claims(slot_ids))
    await kill_at_pause(stage, doomed, booking)
    return [len(deployment.booking_ids(slot_id)) for slot_id in slot_ids]


async def test_killed_before_two_places_are_booked_none_is(deployment: Deployment) -> None:
    assert await killed_while_booking_two(deployment, "transaction", "") == [0, 0]


async def test_killed_after_two_places_were_booked_both_are(deployment: Deployment) -> None:
    assert await killed_while_booking_two(deployment, "release", "") == [1, 1]


async def test_control_without_all_or_none_one_of_two_places_is_booked(
    deployment: Deployment,
) -> None:
    assert await killed_while_booking_two(deployment, "between-steps", "all-or-none") == [1, 0]


async def one_is_full(deployment: Deployment, point: str, off: str) -> tuple[str, list[int]]:
    """Ada is about to book two places when Ben gets the second: what she is told, and bookings."""
    slow, stage = deployment.paused_app(point, off)
    slot_ids = sorted([await deployment.add_slot(slow) for _ in range(2)])
    adas = asyncio.create_task(deployment.client(slow, 0).book_all(*claims(slot_ids)))
    await asyncio.to_thread(stage.wait_until_reached)
    deployment.redis.delete(*map(lock_key, slot_ids))
    assert (await deployment.client(slow, 1).book_slot(slot_ids[1]))["__typename"] == "Booked"
    stage.resume()
    received = (await adas)["__typename"]
    return received, [len(deployment.booking_ids(slot_id)) for slot_id in slot_ids]


async def test_when_one_of_two_places_is_gone_the_other_is_not_booked(
    deployment: Deployment,
) -> None:
    assert await one_is_full(deployment, "commit", "") == ("ClaimsRefused", [0, 1])


async def test_control_without_all_or_none_the_other_place_is_booked_all_the_same(
    deployment: Deployment,
) -> None:
    received, bookings = await one_is_full(deployment, "commit", "all-or-none")
    assert received != "AllBooked"
    assert bookings == [1, 1]


async def two_members_choose(deployment: Deployment, off: str) -> tuple[set[str], int]:
    """Two members choose two beds each for their team of two at once: the answers, and beds."""
    slow, stage = deployment.paused_app("commit", off)
    app = deployment.app(off) if off else slow
    choice = f"beds of {stage.key}"
    beds = [await deployment.add_slot(app, choiceGroup=choice) for _ in range(4)]
    ada, ben = deployment.clients(app, 2)
    ids = [await ada.fetch_user_id(), await ben.fetch_user_id()]
    emails = [await each.execute("{ me { email } }") for each in (ada, ben)]
    one, other = (
        Member(user, id_, me["email"])
        for user, id_, me in zip((ada, ben), ids, emails, strict=True)
    )
    await one.add_members(await one.create_team(), other)
    adas = asyncio.create_task(deployment.client(slow, 0).book_all(*claims(beds[:2], ids)))
    await asyncio.to_thread(stage.wait_until_reached)
    bens = await ben.book_all(*claims(beds[2:], ids))
    stage.resume()
    received = {(await adas)["__typename"], bens["__typename"]}
    return received, sum(len(deployment.booking_ids(bed)) for bed in beds)


async def test_two_members_who_choose_at_once_get_two_beds_for_two(deployment: Deployment) -> None:
    assert await two_members_choose(deployment, "") == ({"AllBooked", "ClaimsRefused"}, 2)


async def test_control_without_pages_two_people_end_up_with_four_beds(
    deployment: Deployment,
) -> None:
    assert await two_members_choose(deployment, "user-versions") == ({"AllBooked"}, 4)


async def test_two_teams_who_grab_overlapping_beds_100_times_never_have_some_of_them(
    two_apps: Pair, log_dir: Path
) -> None:
    async with open_deployment(
        two_apps[0].environment, log_dir, member_count=5 * USERS_PER_RACE
    ) as deployment:
        await run_rounds(await create_bed_races(deployment, list(two_apps), 5), rounds=100)


@pytest.mark.skipif(not CAMPAIGN, reason="SLOTLOCK_CAMPAIGN says how many rounds")
@pytest.mark.timeout(7200)
async def test_two_teams_whose_processes_are_killed_meanwhile_never_have_some_of_the_beds(
    servers: EmbeddedServers, log_dir: Path
) -> None:
    async with open_deployment(
        app_environment(servers, "campaign"), log_dir, member_count=5 * USERS_PER_RACE
    ) as deployment:
        apps = [deployment.app(), deployment.app()]
        killing = asyncio.create_task(kill_and_restart(deployment, apps))
        await run_rounds(await create_bed_races(deployment, apps, 5), CAMPAIGN)
        killing.cancel()


async def kill_and_restart(deployment: Deployment, apps: list[AppProcess]) -> None:
    """Kill one process or the other, again and again, and start another in its place."""
    while True:
        await asyncio.sleep(random.uniform(0.5, KILL_EVERY_S))
        number = random.randrange(len(apps))
        apps[number].kill()
        apps[number] = await asyncio.to_thread(deployment.app)
