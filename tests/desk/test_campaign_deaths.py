"""A change of a campaign that is cut short between the campaign and its slots."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from tests.support.campaigns import books, campaign, change, unpublish
from tests.support.desk import wait_for
from tests.support.processes import AppProcess
from tests.support.stage import Scene, killed_at, scene_on

Pair = tuple[AppProcess, AppProcess]


@pytest.fixture
async def scene(two_apps: Pair, logs: Path) -> AsyncIterator[Scene]:
    """A scene beside two processes that lack nothing."""
    async with scene_on(two_apps[0].environment, logs, people=2) as scene:
        yield scene


def kept(scene: Scene, campaign_id: str) -> dict[str, Any]:
    """What MongoDB says of a campaign."""
    campaigns = scene.mongo.get_default_database()["campaigns"]
    found = campaigns.find_one({"_id": ObjectId(campaign_id[-24:])})
    assert found is not None
    return found


def let_time_pass(scene: Scene, campaign_id: str) -> None:
    """Let the last change of a campaign be older than a change takes to reach all slots."""
    campaigns = scene.mongo.get_default_database()["campaigns"]
    earlier = datetime.now(UTC) - timedelta(seconds=11)
    query = {"_id": ObjectId(campaign_id[-24:])}
    campaigns.update_one(query, {"$set": {"changedAt": earlier}})


async def cut_short(scene: Scene, app: AppProcess) -> tuple[str, list[str]]:
    """A campaign with two slots that was hidden by a process that died before they knew."""
    campaign_id = await campaign(scene.organiser(app))
    slot_ids = [await scene.slot(app, campaignId=campaign_id) for _ in range(2)]
    doomed, stage = scene.paused("spread")
    await killed_at(stage, doomed, unpublish(scene.organiser(doomed), campaign_id))
    assert kept(scene, campaign_id)["pending"] is True
    assert [scene.truth(slot_id)["campaign"]["version"] for slot_id in slot_ids] == [1, 1]
    return campaign_id, slot_ids


async def test_what_a_killed_process_did_not_tell_the_slots_another_one_does(
    scene: Scene, two_apps: Pair
) -> None:
    campaign_id, slot_ids = await cut_short(scene, two_apps[0])
    let_time_pass(scene, campaign_id)

    async def look() -> dict[str, Any]:
        return kept(scene, campaign_id)

    await wait_for(look, lambda found: found["pending"] is False, "another process went on")
    for slot_id in slot_ids:
        assert scene.truth(slot_id)["campaign"]["published"] is False
        assert (await books(scene.person(two_apps[0], 0), slot_id))["code"] == "CLOSED"


async def test_who_asks_again_for_what_was_cut_short_is_answered_once_it_is_so(
    scene: Scene, two_apps: Pair
) -> None:
    campaign_id, slot_ids = await cut_short(scene, two_apps[0])
    await unpublish(scene.organiser(two_apps[1]), campaign_id)
    for slot_id in slot_ids:
        assert (await books(scene.person(two_apps[0], 0), slot_id))["code"] == "CLOSED"
    assert kept(scene, campaign_id)["pending"] is False


async def test_what_is_late_does_not_undo_what_came_after_it(scene: Scene, two_apps: Pair) -> None:
    campaign_id = await campaign(scene.organiser(two_apps[0]))
    slot_id = await scene.slot(two_apps[0], campaignId=campaign_id)
    slow, stage = scene.paused("spread")
    late = asyncio.create_task(unpublish(scene.organiser(slow), campaign_id))
    await asyncio.to_thread(stage.wait_until_reached)
    renamed = await change(scene.organiser(two_apps[0]), campaign_id, name="Renamed")
    assert (renamed["published"], renamed["version"]) == (False, 3)
    stage.go()
    await late
    assert scene.truth(slot_id)["campaign"]["version"] == 3
    assert kept(scene, campaign_id)["pending"] is False


async def test_a_slot_that_is_created_while_its_campaign_changes_knows_of_it(
    scene: Scene, two_apps: Pair
) -> None:
    campaign_id = await campaign(scene.organiser(two_apps[0]))
    slow, stage = scene.paused("commit")
    late = asyncio.create_task(scene.slot(slow, campaignId=campaign_id))
    await asyncio.to_thread(stage.wait_until_reached)
    await unpublish(scene.organiser(two_apps[0]), campaign_id)
    stage.go()
    slot_id = await late
    assert scene.truth(slot_id)["campaign"]["published"] is False
    assert (await books(scene.person(two_apps[0], 0), slot_id))["code"] == "CLOSED"


async def test_campaigns_that_many_change_at_once_end_as_their_last_change_says(
    scene: Scene, two_apps: Pair
) -> None:
    campaign_id = await campaign(scene.organiser(two_apps[0]))
    slot_ids = [await scene.slot(two_apps[0], campaignId=campaign_id) for _ in range(3)]
    organisers = [scene.organiser(app) for app in two_apps]
    await asyncio.gather(
        *(change(organisers[n % 2], campaign_id, maxBookings=n + 1) for n in range(8))
    )
    found = kept(scene, campaign_id)
    assert (found["terms"]["version"], found["pending"]) == (9, False)
    assert [scene.truth(slot_id)["campaign"] for slot_id in slot_ids] == [found["terms"]] * 3
