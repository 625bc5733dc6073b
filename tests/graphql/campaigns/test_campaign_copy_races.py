"""Copies of a campaign that are made at once: one for each key, and one for each resource."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.graphql.campaigns.test_campaign_copies import COPY, a_campaign, a_slot, copy, new_name
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess, Pair
from tests.support.transport.simultaneous_requests import send_simultaneously


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment beside two complete processes."""
    async with open_deployment(two_apps[0].environment, log_dir, member_count=0) as deployment:
        yield deployment


def count_campaigns(deployment: Deployment, name: str) -> int:
    """Return how many campaigns have a name."""
    return deployment.mongo.get_default_database()["campaigns"].count_documents({"name": name})


def count_slots(deployment: Deployment, resource: str) -> int:
    """Return how many published slots use a resource."""
    query = {"resource": resource, "status": "published"}
    return deployment.mongo.get_default_database()["slots"].count_documents(query)


async def test_concurrent_requests_of_one_key_make_one_copy_and_return_the_same(
    deployment: Deployment, two_apps: Pair
) -> None:
    name, room = new_name(), new_name()
    organizer = deployment.organizer(two_apps[0])
    campaign_id = await a_campaign(organizer)
    await a_slot(organizer, campaign_id, resource=room)
    fields = {"campaignId": campaign_id, "name": name, "weeks": 52, "dryRun": False}
    variables = {"input": {**fields, "idempotencyKey": new_name()}}
    token = organizer.token or ""
    calls = [(two_apps[i % 2].url, token, COPY, variables) for i in range(6)]
    responses = {json.dumps(each) for each in await send_simultaneously(calls)}
    assert [json.loads(each)["__typename"] for each in responses] == ["CampaignCopy"]
    assert count_campaigns(deployment, name) == 1
    other = {"input": {**variables["input"], "weeks": 53}}
    assert (await organizer.execute(COPY, **other))["code"] == "KEY_REUSED"


async def test_concurrent_copies_do_not_occupy_a_resource_twice(
    deployment: Deployment, two_apps: Pair
) -> None:
    name, room = new_name(), new_name()
    organizer = deployment.organizer(two_apps[0])
    campaign_id = await a_campaign(organizer)
    await a_slot(organizer, campaign_id, resource=room)
    fields = {"campaignId": campaign_id, "name": name, "weeks": 52, "dryRun": False}
    calls = [
        (two_apps[i % 2].url, organizer.token or "", COPY, {"input": fields}) for i in range(6)
    ]
    counts = Counter(each["__typename"] for each in await send_simultaneously(calls))
    assert counts == {"CampaignCopy": 1, "CampaignNotCopied": 5}
    assert count_campaigns(deployment, name) == 1


async def copied_meanwhile(
    deployment: Deployment, app: AppProcess, off: str
) -> tuple[Counter[str], int]:
    """Copy a campaign while the writer of another copy to the same dates pauses.

    Return the outcomes, and how many slots use the resource then, with the one that is copied.
    """
    organizer, room = deployment.organizer(app), new_name()
    campaign_id = await a_campaign(organizer)
    await a_slot(organizer, campaign_id, resource=room)
    slow, stage = deployment.paused_app("commit", off)
    late = asyncio.create_task(copy(deployment.organizer(slow), campaign_id))
    await asyncio.to_thread(stage.wait_until_reached)
    early = await copy(organizer, campaign_id)
    stage.resume()
    outcomes = Counter([early["__typename"], (await late)["__typename"]])
    return outcomes, count_slots(deployment, room)


async def test_a_resource_that_was_free_when_it_was_read_is_checked_again_at_the_write(
    deployment: Deployment, two_apps: Pair
) -> None:
    received = await copied_meanwhile(deployment, two_apps[0], "")
    assert received == ({"CampaignCopy": 1, "CampaignNotCopied": 1}, 2)


async def test_control_without_the_resource_version_two_copies_occupy_one_resource(
    deployment: Deployment, two_apps: Pair
) -> None:
    received = await copied_meanwhile(deployment, two_apps[0], "resources")
    assert received == ({"CampaignCopy": 2}, 3)
