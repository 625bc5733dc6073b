"""The worker of draws goes on with each draw, whatever becomes of the others."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.campaigns.campaign import CampaignDeleted, CampaignDraft, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawId, DrawMethod
from slotlock.domain.draws.draw import Draw, DrawSettings
from slotlock.infrastructure.mongo.draws.draw_repository import MAX_DUE
from slotlock.infrastructure.tasks import FIRST_DELAY, MAX_DELAY, FailingItems
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.draws import draws
from slotlock.services.workers import draw_worker
from tests.support.notifications.mail_scene import MailScene, open_mail_scene
from tests.support.polling import eventually

HOUR, MOMENT = timedelta(hours=1), timedelta(milliseconds=1)


@pytest.fixture
async def scene(servers: EmbeddedServers) -> AsyncIterator[MailScene]:
    """Yield services on a clock of their own."""
    async with open_mail_scene(servers) as opened:
        yield opened


async def open_draw(scene: MailScene) -> tuple[DrawId, CampaignId]:
    """Open a draw that is closed in an hour."""
    now, organizer = scene.clock.now, scene.organizer
    draft = CampaignDraft("Sports", now, now + 9 * HOUR)
    saved = await campaigns.create(scene.services, draft, organizer.user_id)
    assert isinstance(saved, CampaignSaved)
    campaign_id, settings = saved.campaign.id, DrawSettings(DrawMethod.ROUNDS, now + HOUR)
    opened = await draws.configure_draw(scene.services, organizer, campaign_id, settings)
    assert isinstance(opened, Draw)
    scene.clock.advance(timedelta(seconds=1))
    return opened.id, campaign_id


async def open_bad_draws(scene: MailScene) -> None:
    """Open more draws that cannot go on than a worker reads at once, and let their time pass."""
    for _ in range(MAX_DUE + 1):
        damaged_id, _ = await open_draw(scene)
        damage = {"$set": {"settings": None}}
        await scene.database["draws"].update_one({"_id": ObjectId(damaged_id)}, damage)
    scene.clock.advance(HOUR)


async def is_closed(scene: MailScene, draw_id: DrawId) -> bool:
    """Return whether a draw has the root of its basis."""
    draw = await scene.services.draws.find(draw_id)
    return draw is not None and draw.root is not None


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_draws_that_cannot_go_on_hold_up_no_other(
    scene: MailScene,
    is_guarded: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_guarded:
        monkeypatch.setattr(FailingItems, "waiting", lambda *_: ())
    await open_bad_draws(scene)
    failing = FailingItems()
    await draw_worker.advance_draws(scene.services, failing)
    draw_id, _ = await open_draw(scene)
    scene.clock.advance(HOUR)
    for _ in range(3):
        await draw_worker.advance_draws(scene.services, failing)
    assert await is_closed(scene, draw_id) is is_guarded


async def test_a_draw_that_cannot_go_on_is_logged_once_for_each_attempt(
    scene: MailScene, caplog: pytest.LogCaptureFixture
) -> None:
    await open_bad_draws(scene)
    failing, count = FailingItems(), MAX_DUE + 1
    # The second attempt follows after 5 s, the third one after 10 s.
    for seconds, attempts in ((0, 1), (5, 2), (5, 2), (5, 3)):
        scene.clock.advance(timedelta(seconds=seconds))
        for _ in range(3):
            await draw_worker.advance_draws(scene.services, failing)
        assert len(caplog.records) == attempts * count
    assert "again in 5 s: TypeError" in caplog.text


async def test_a_draw_whose_campaign_was_deleted_is_never_due_again(
    scene: MailScene, caplog: pytest.LogCaptureFixture
) -> None:
    _, campaign_id = await open_draw(scene)
    deleted = await campaigns.delete(scene.services, campaign_id, scene.organizer.user_id)
    assert isinstance(deleted, CampaignDeleted)
    scene.clock.advance(HOUR)
    assert await scene.services.draws.find_due(scene.clock.now)
    await draw_worker.advance_draws(scene.services)
    assert not await scene.services.draws.find_due(scene.clock.now)
    assert not caplog.records


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("is_late", [True, False])
async def test_a_draw_that_is_extended_while_the_worker_is_busy_stays_open(
    scene: MailScene, is_late: bool, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is extended before the worker reads it, or between this read and its write."""
    draw_id, campaign_id = await open_draw(scene)
    scene.clock.advance(HOUR)
    repository = type(scene.services.draws)
    find, find_due = repository.find, repository.find_due

    async def extend() -> None:
        monkeypatch.setattr(repository, "find", find)
        monkeypatch.setattr(repository, "find_due", find_due)
        settings = DrawSettings(DrawMethod.ROUNDS, scene.clock.now + HOUR)
        draw = await draws.configure_draw(scene.services, scene.organizer, campaign_id, settings)
        assert isinstance(draw, Draw)

    async def find_due_and_extend(*arguments: Any) -> dict[DrawId, datetime]:
        due = await find_due(*arguments)
        await extend()
        return due

    async def find_and_extend(*arguments: Any) -> Draw | None:
        draw = await find(*arguments)
        await extend()
        return draw

    async def close_blindly(services: Services, draw: Draw) -> bool:
        return isinstance(await draws.close_wishes(services, None, draw.campaign_id), Draw)

    if is_late:
        monkeypatch.setattr(repository, "find", find_and_extend)
    else:
        monkeypatch.setattr(repository, "find_due", find_due_and_extend)
    if not is_guarded:
        monkeypatch.setattr(draw_worker, "_close_due", close_blindly)
    await draw_worker.advance_draws(scene.services)
    assert await is_closed(scene, draw_id) is not is_guarded
    scene.clock.advance(HOUR)
    await draw_worker.advance_draws(scene.services)
    assert await is_closed(scene, draw_id)


async def test_the_running_worker_goes_on_with_a_draw_after_those_that_cannot(
    scene: MailScene,
) -> None:
    await open_bad_draws(scene)
    async with draw_worker.draw_worker(scene.services, scene.services.locks):
        draw_id, _ = await open_draw(scene)
        scene.clock.advance(HOUR)
        await eventually(lambda: is_closed(scene, draw_id), "the last draw is closed")


def test_an_item_waits_twice_as_long_after_each_failure_and_not_after_a_success() -> None:
    failing, now = FailingItems(), datetime(2026, 1, 1, tzinfo=UTC)
    delays = []
    for _ in range(12):
        delays.append(failing.add("a", now))
        now += delays[-1]
        assert failing.waiting(now - MOMENT) == ["a"]
        assert failing.waiting(now) == []
    assert delays[:3] == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY]
    assert delays[-2:] == [MAX_DELAY, MAX_DELAY]
    failing.remove("a")
    assert failing.add("a", now) == FIRST_DELAY
