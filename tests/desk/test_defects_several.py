"""What the five designs did wrong with several places at once: each defect with its guard."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from slotlock.api.embedded import Servers
from tests.support.client import Json
from tests.support.dorm import MEMBERS, dorms, play
from tests.support.processes import AppProcess, environment
from tests.support.stage import Scene, killed_at, lock_key, scene_on
from tests.support.teams import Person as Member

Pair = tuple[AppProcess, AppProcess]
CAMPAIGN = int(os.environ.get("SLOTLOCK_CAMPAIGN", "0"))
KILL_EVERY_S = 4.0


@pytest.fixture
async def scene(two_apps: Pair, logs: Path) -> AsyncIterator[Scene]:
    """A scene beside two processes that lack nothing."""
    async with scene_on(two_apps[0].environment, logs) as scene:
        yield scene


def claims(slot_ids: Sequence[str], user_ids: Sequence[str] = ()) -> list[Json]:
    """A place in each slot, for these people or for whoever asks."""
    if not user_ids:
        return [{"slotId": slot_id} for slot_id in slot_ids]
    pairs = zip(slot_ids, user_ids, strict=True)
    return [{"slotId": slot_id, "userId": user_id} for slot_id, user_id in pairs]


async def killed_while_booking_two(scene: Scene, point: str, off: str) -> list[int]:
    """Ada's process dies while she books two places: how many bookings each slot has."""
    doomed, stage = scene.paused(point, off)
    slot_ids = [await scene.slot(doomed) for _ in range(2)]
    booking = scene.person(doomed, 0).book_all(*claims(slot_ids))
    await killed_at(stage, doomed, booking)
    return [len(scene.who(slot_id)) for slot_id in slot_ids]


async def test_killed_before_two_places_are_booked_none_is(scene: Scene) -> None:
    assert await killed_while_booking_two(scene, "transaction", "") == [0, 0]


async def test_killed_after_two_places_were_booked_both_are(scene: Scene) -> None:
    assert await killed_while_booking_two(scene, "release", "") == [1, 1]


async def test_control_without_all_or_none_one_of_two_places_is_booked(scene: Scene) -> None:
    assert await killed_while_booking_two(scene, "between", "all-or-none") == [1, 0]


async def one_is_full(scene: Scene, point: str, off: str) -> tuple[str, list[int]]:
    """Ada is about to book two places when Ben gets the second: what she is told, and bookings."""
    slow, stage = scene.paused(point, off)
    slot_ids = sorted([await scene.slot(slow) for _ in range(2)])
    adas = asyncio.create_task(scene.person(slow, 0).book_all(*claims(slot_ids)))
    await asyncio.to_thread(stage.wait_until_reached)
    scene.redis.delete(*map(lock_key, slot_ids))
    assert (await scene.person(slow, 1).wish(slot_ids[1]))["__typename"] == "Booked"
    stage.go()
    told = (await adas)["__typename"]
    return told, [len(scene.who(slot_id)) for slot_id in slot_ids]


async def test_when_one_of_two_places_is_gone_the_other_is_not_booked(scene: Scene) -> None:
    assert await one_is_full(scene, "commit", "") == ("ClaimsRefused", [0, 1])


async def test_control_without_all_or_none_the_other_place_is_booked_all_the_same(
    scene: Scene,
) -> None:
    told, bookings = await one_is_full(scene, "commit", "all-or-none")
    assert told != "AllBooked"
    assert bookings == [1, 1]


async def two_members_choose(scene: Scene, off: str) -> tuple[set[str], int]:
    """Two members choose two beds each for their team of two at once: the answers, and beds."""
    slow, stage = scene.paused("commit", off)
    app = scene.app(off) if off else slow
    choice = f"beds of {stage.name}"
    beds = [await scene.slot(app, choice=choice) for _ in range(4)]
    ada, ben = scene.people(app, 2)
    ids = [await ada.id(), await ben.id()]
    emails = [await each.ask("{ me { email } }") for each in (ada, ben)]
    one, other = (
        Member(person, id_, me["email"])
        for person, id_, me in zip((ada, ben), ids, emails, strict=True)
    )
    await one.bring_in(await one.create_team(), other)
    adas = asyncio.create_task(scene.person(slow, 0).book_all(*claims(beds[:2], ids)))
    await asyncio.to_thread(stage.wait_until_reached)
    bens = await ben.book_all(*claims(beds[2:], ids))
    stage.go()
    told = {(await adas)["__typename"], bens["__typename"]}
    return told, sum(len(scene.who(bed)) for bed in beds)


async def test_two_members_who_choose_at_once_get_two_beds_for_two(scene: Scene) -> None:
    assert await two_members_choose(scene, "") == ({"AllBooked", "ClaimsRefused"}, 2)


async def test_control_without_pages_two_people_end_up_with_four_beds(scene: Scene) -> None:
    assert await two_members_choose(scene, "pages") == ({"AllBooked"}, 4)


async def test_two_teams_who_grab_overlapping_beds_100_times_never_have_some_of_them(
    two_apps: Pair, logs: Path
) -> None:
    async with scene_on(two_apps[0].environment, logs, people=5 * MEMBERS) as scene:
        await play(await dorms(scene, list(two_apps), 5), rounds=100)


@pytest.mark.skipif(not CAMPAIGN, reason="SLOTLOCK_CAMPAIGN says how many rounds")
@pytest.mark.timeout(7200)
async def test_two_teams_whose_processes_are_killed_meanwhile_never_have_some_of_the_beds(
    servers: Servers, logs: Path
) -> None:
    async with scene_on(environment(servers, "campaign"), logs, people=5 * MEMBERS) as scene:
        apps = [scene.app(), scene.app()]
        killing = asyncio.create_task(kill_and_restart(scene, apps))
        await play(await dorms(scene, apps, 5), CAMPAIGN)
        killing.cancel()


async def kill_and_restart(scene: Scene, apps: list[AppProcess]) -> None:
    """Kill one process or the other, again and again, and start another in its place."""
    while True:
        await asyncio.sleep(random.uniform(0.5, KILL_EVERY_S))
        number = random.randrange(len(apps))
        apps[number].kill()
        apps[number] = await asyncio.to_thread(scene.app)
