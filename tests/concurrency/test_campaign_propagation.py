"""A change of a campaign that is interrupted before it reaches all slots."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from slotlock.infrastructure.redis.keys import lock_keys
from tests.support.apps.deployment import Deployment, kill_at_pause, lock_key, open_deployment
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.campaigns import (
    book_with_refusal,
    create_campaign,
    unpublish_campaign,
    update_campaign,
)
from tests.support.polling import poll_until, wait_until


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment beside two complete processes."""
    async with open_deployment(two_apps[0].environment, log_dir, member_count=2) as deployment:
        yield deployment


def campaign_document(deployment: Deployment, campaign_id: str) -> dict[str, Any]:
    """Return the document of a campaign."""
    campaigns = deployment.mongo.get_default_database()["campaigns"]
    found = campaigns.find_one({"_id": ObjectId(campaign_id[-24:])})
    assert found is not None
    return found


def let_time_pass(deployment: Deployment, campaign_id: str) -> None:
    """Age the last change of a campaign beyond the time that propagation takes."""
    campaigns = deployment.mongo.get_default_database()["campaigns"]
    earlier = datetime.now(UTC) - timedelta(seconds=11)
    query = {"_id": ObjectId(campaign_id[-24:])}
    campaigns.update_one(query, {"$set": {"changedAt": earlier}})


async def cut_short(deployment: Deployment, app: AppProcess) -> tuple[str, list[str]]:
    """Create a campaign with two slots, hidden by a process that died before it updated them."""
    campaign_id = await create_campaign(deployment.organizer(app))
    slot_ids = [await deployment.add_slot(app, campaignId=campaign_id) for _ in range(2)]
    doomed, stage = deployment.paused_app("propagate")
    await kill_at_pause(
        stage, doomed, unpublish_campaign(deployment.organizer(doomed), campaign_id)
    )
    assert campaign_document(deployment, campaign_id)["pending"] is True
    assert [deployment.slot_document(slot_id)["campaign"]["version"] for slot_id in slot_ids] == [
        1,
        1,
    ]
    return campaign_id, slot_ids


async def test_another_process_propagates_what_a_killed_process_left(
    deployment: Deployment, two_apps: Pair
) -> None:
    campaign_id, slot_ids = await cut_short(deployment, two_apps[0])
    let_time_pass(deployment, campaign_id)

    async def load() -> dict[str, Any]:
        return campaign_document(deployment, campaign_id)

    await poll_until(load, lambda found: found["pending"] is False, "another process went on")
    for slot_id in slot_ids:
        assert deployment.slot_document(slot_id)["campaign"]["published"] is False
        assert (await book_with_refusal(deployment.client(two_apps[0], 0), slot_id))[
            "code"
        ] == "SLOT_NOT_FOUND"


async def test_a_repeated_request_after_a_crash_returns_when_it_is_complete(
    deployment: Deployment, two_apps: Pair
) -> None:
    campaign_id, slot_ids = await cut_short(deployment, two_apps[0])
    await unpublish_campaign(deployment.organizer(two_apps[1]), campaign_id)
    for slot_id in slot_ids:
        assert (await book_with_refusal(deployment.client(two_apps[0], 0), slot_id))[
            "code"
        ] == "SLOT_NOT_FOUND"
    assert campaign_document(deployment, campaign_id)["pending"] is False


async def test_a_late_propagation_does_not_undo_a_newer_one(
    deployment: Deployment, two_apps: Pair
) -> None:
    campaign_id = await create_campaign(deployment.organizer(two_apps[0]))
    slot_id = await deployment.add_slot(two_apps[0], campaignId=campaign_id)
    slow, stage = deployment.paused_app("propagate")
    late = asyncio.create_task(unpublish_campaign(deployment.organizer(slow), campaign_id))
    await asyncio.to_thread(stage.wait_until_reached)
    renamed = await update_campaign(deployment.organizer(two_apps[0]), campaign_id, name="Renamed")
    assert (renamed["published"], renamed["version"]) == (False, 3)
    stage.resume()
    await late
    assert deployment.slot_document(slot_id)["campaign"]["version"] == 3
    assert campaign_document(deployment, campaign_id)["pending"] is False


async def test_a_slot_created_while_its_campaign_changes_has_the_new_terms(
    deployment: Deployment, two_apps: Pair
) -> None:
    campaign_id = await create_campaign(deployment.organizer(two_apps[0]))
    slow, stage = deployment.paused_app("commit")
    late = asyncio.create_task(deployment.add_slot(slow, campaignId=campaign_id))
    await asyncio.to_thread(stage.wait_until_reached)
    await unpublish_campaign(deployment.organizer(two_apps[0]), campaign_id)
    stage.resume()
    slot_id = await late
    assert deployment.slot_document(slot_id)["campaign"]["published"] is False
    assert (await book_with_refusal(deployment.client(two_apps[0], 0), slot_id))[
        "code"
    ] == "SLOT_NOT_FOUND"


async def test_a_campaign_changed_by_many_at_once_ends_with_the_last_change(
    deployment: Deployment, two_apps: Pair
) -> None:
    campaign_id = await create_campaign(deployment.organizer(two_apps[0]))
    slot_ids = [await deployment.add_slot(two_apps[0], campaignId=campaign_id) for _ in range(3)]
    organizers = [deployment.organizer(app) for app in two_apps]
    await asyncio.gather(
        *(update_campaign(organizers[n % 2], campaign_id, maxBookings=n + 1) for n in range(8))
    )
    found = campaign_document(deployment, campaign_id)
    assert (found["terms"]["version"], found["pending"]) == (9, False)
    assert [deployment.slot_document(slot_id)["campaign"] for slot_id in slot_ids] == [
        found["terms"]
    ] * 3


async def book_while_the_queue_becomes_the_only_way(
    deployment: Deployment, apps: Pair, editor: AppProcess
) -> list[str]:
    """Close a campaign to all but the queue while callers wait at two processes.

    Returns the types of their outcomes.
    """
    campaign_id = await create_campaign(deployment.organizer(editor))
    slot_id = await deployment.add_slot(editor, capacity=2, campaignId=campaign_id)
    deployment.redis.set(lock_key(slot_id), "somebody-else:1")
    waiting = [
        asyncio.create_task(deployment.client(app, number).book_slot(slot_id, waitMs=20_000))
        for number, app in enumerate(apps)
    ]
    queue = lock_keys(slot_id.removeprefix("slot_")).queue
    await asyncio.to_thread(
        wait_until, lambda: deployment.redis.zcard(queue) == 2, "a waiter of each process"
    )
    await update_campaign(deployment.organizer(editor), campaign_id, admission="QUEUE_ONLY")
    deployment.redis.delete(lock_key(slot_id))
    return [outcome["__typename"] for outcome in await asyncio.gather(*waiting)]


async def test_callers_who_wait_while_a_campaign_becomes_queue_only_are_refused(
    deployment: Deployment, two_apps: Pair
) -> None:
    outcomes = await book_while_the_queue_becomes_the_only_way(deployment, two_apps, two_apps[0])
    assert outcomes == ["QueueOnly", "QueueOnly"]


async def test_control_without_propagation_callers_who_wait_walk_past_the_queue(
    deployment: Deployment, two_apps: Pair
) -> None:
    editor = deployment.app("terms")
    outcomes = await book_while_the_queue_becomes_the_only_way(deployment, two_apps, editor)
    assert outcomes == ["Booked", "Booked"]
