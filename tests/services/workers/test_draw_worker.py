"""The worker of draws goes on with each draw, whatever becomes of the others."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.campaigns.campaign import (
    CampaignBusy,
    CampaignDeleted,
    CampaignDraft,
    CampaignSaved,
)
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawId, DrawMethod
from slotlock.domain.draws.draw import Draw, DrawSettings, DrawState
from slotlock.infrastructure.mongo.campaigns import campaign_repository
from slotlock.infrastructure.mongo.draws.draw_repository import MAX_DUE, DueDraw
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.draws import draws
from slotlock.services.workers import draw_worker
from tests.support.notifications.mail_scene import MailScene, open_mail_scene
from tests.support.polling import eventually

HOUR, MINUTE, MOMENT = timedelta(hours=1), timedelta(minutes=1), timedelta(milliseconds=1)


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


async def open_bad_draw(scene: MailScene) -> tuple[DrawId, CampaignId]:
    """Open a draw that cannot be read any more."""
    draw_id, campaign_id = await open_draw(scene)
    damage = {"$set": {"settings": None}}
    await scene.database["draws"].update_one({"_id": ObjectId(draw_id)}, damage)
    return draw_id, campaign_id


async def open_bad_draws(scene: MailScene) -> None:
    """Open more draws that cannot go on than a worker reads at once, and let their time pass."""
    for _ in range(MAX_DUE + 1):
        await open_bad_draw(scene)
    scene.clock.advance(HOUR)


async def publish_draw(scene: MailScene) -> tuple[DrawId, CampaignId]:
    """Open and publish a draw, and leave what follows to the worker."""
    draw_id, campaign_id = await open_draw(scene)
    services, organizer = scene.services, scene.organizer
    await draws.close_wishes(services, organizer, campaign_id)
    await draws.store_basis(services, draw_id)
    await draws.run_draw(services, organizer, campaign_id, None)
    assert isinstance(await draws.publish_draw(services, organizer, campaign_id), Draw)
    return draw_id, campaign_id


async def is_closed(scene: MailScene, draw_id: DrawId) -> bool:
    """Return whether a draw has the root of its basis."""
    draw = await scene.services.draws.find(draw_id)
    return draw is not None and draw.root is not None


async def never_defer(*_: object) -> None:
    """Leave a draw as it is, for a negative control."""


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_draws_that_cannot_go_on_hold_up_no_other(
    scene: MailScene, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_guarded:
        monkeypatch.setattr(type(scene.services.draws), "defer", never_defer)
    await open_bad_draws(scene)
    await draw_worker.advance_draws(scene.services)
    draw_id, _ = await open_draw(scene)
    scene.clock.advance(HOUR)
    for _ in range(3):
        await draw_worker.advance_draws(scene.services)
    assert await is_closed(scene, draw_id) is is_guarded


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_draws_that_cannot_go_on_are_read_a_few_times_a_minute(
    scene: MailScene, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each is tried after 0, 5, 15 and 35 s. The others are looks every 2 s, and after an attempt.
    repository, reads, limit = type(scene.services.draws), list[str](), 4 * (MAX_DUE + 1) + 60

    def count(name: str) -> None:
        read = getattr(repository, name)

        async def read_and_count(*arguments: Any) -> Any:
            reads.append(name)
            return await read(*arguments)

        monkeypatch.setattr(repository, name, read_and_count)

    count("find")
    count("find_due")
    if not is_guarded:
        monkeypatch.setattr(repository, "defer", never_defer)
    await open_bad_draws(scene)
    reads.clear()
    start = scene.clock.now
    while scene.clock.now < start + MINUTE and len(reads) < limit:
        pause_s = await draw_worker._advance_due(scene.services, scene.services.locks)
        scene.clock.advance(timedelta(seconds=pause_s))
    assert (len(reads) < limit) is is_guarded


async def test_a_draw_waits_twice_as_long_after_each_failure_with_a_line_each_in_the_log(
    scene: MailScene, caplog: pytest.LogCaptureFixture
) -> None:
    """What it waits is stored: each attempt may be that of another process."""
    draw_id, _ = await open_bad_draw(scene)
    scene.clock.advance(HOUR)
    for attempt, delay_s in enumerate((5, 10, 20, 40, 80, 160, 320, 600, 600, 600), start=1):
        await draw_worker.advance_draws(scene.services)
        await draw_worker.advance_draws(scene.services)
        stored = await scene.database["draws"].find_one({"_id": ObjectId(draw_id)})
        assert stored is not None
        assert stored["failures"] == attempt
        assert stored["dueAt"] == scene.clock.now + timedelta(seconds=delay_s)
        scene.clock.advance(timedelta(seconds=delay_s) - MOMENT)
        assert not await scene.services.draws.find_due(scene.clock.now)
        scene.clock.advance(MOMENT)
        assert len(caplog.records) == min(attempt, 8)
    assert "again in 5 s: ValidationError" in caplog.text


async def test_a_draw_that_goes_on_again_has_no_problem_any_more(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its problem is shown from the third failure on."""
    draw_id, _ = await open_draw(scene)
    scene.clock.advance(HOUR)

    async def refuse(*_: object) -> CampaignBusy:
        return CampaignBusy(1)

    with monkeypatch.context() as patch:
        patch.setattr(draw_worker, "store_basis", refuse)
        for shown in (None, None, "CampaignBusy", "CampaignBusy"):
            await draw_worker.advance_draws(scene.services)
            failing = await scene.services.draws.find(draw_id)
            assert failing is not None
            assert (failing.state, failing.shown_problem) == (DrawState.CLOSED, shown)
            scene.clock.advance(MINUTE)
    await draw_worker.advance_draws(scene.services)
    closed = await scene.services.draws.find(draw_id)
    assert closed is not None
    assert (closed.root is None, closed.failures, closed.problem) == (False, 0, None)
    assert not await scene.services.draws.find_due(scene.clock.now)


async def test_a_failure_defers_no_draw_that_was_extended_meanwhile(scene: MailScene) -> None:
    draw_id, campaign_id = await open_draw(scene)
    scene.clock.advance(HOUR)
    now, until = scene.clock.now, scene.clock.now + HOUR
    settings = DrawSettings(DrawMethod.ROUNDS, until)
    await draws.configure_draw(scene.services, scene.organizer, campaign_id, settings)
    await scene.services.draws.defer(draw_id, 1, "TypeError", now, now + MINUTE)
    assert await scene.services.draws.find_due(until) == [DueDraw(draw_id, until, 0)]


@pytest.mark.parametrize("ends_draws", [True, False])
async def test_a_draw_ends_with_its_campaign(
    scene: MailScene,
    ends_draws: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also one that cannot be read. The control is one that opened during the deletion."""
    if not ends_draws:
        monkeypatch.setattr(campaign_repository, "end_draws", never_defer)
    (draw_id, campaign_id), (_, bad_id) = await open_draw(scene), await open_bad_draw(scene)
    published_id, published_in = await publish_draw(scene)
    published = await scene.services.draws.find(published_id)
    by = scene.organizer.user_id
    for each in (campaign_id, bad_id, published_in):
        assert isinstance(await campaigns.delete(scene.services, each, by), CampaignDeleted)
    scene.clock.advance(HOUR)
    assert (await scene.services.draws.find_due(scene.clock.now) == []) is ends_draws
    await draw_worker.advance_draws(scene.services)
    draw = await scene.services.draws.find(draw_id)
    assert draw is not None
    assert draw.state is DrawState.CANCELLED
    assert draw.acts[-1].by == (by if ends_draws else None)
    assert bool(caplog.records) is not ends_draws  # of the one that cannot be read
    assert draw.is_over
    assert not draw.is_active
    assert await scene.services.draws.find(published_id) == published


async def test_a_campaign_that_is_not_deleted_after_all_ends_no_draw(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_id, campaign_id = await open_draw(scene)
    before = await scene.services.draws.find(draw_id)

    async def fail(*_: object) -> None:
        raise KeyError("a failed write")

    with monkeypatch.context() as patch:
        patch.setattr(campaign_repository, "insert_notes", fail)
        with pytest.raises(KeyError):
            await campaigns.delete(scene.services, campaign_id, scene.organizer.user_id)
    assert await scene.services.draws.find(draw_id) == before


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

    async def find_due_and_extend(*arguments: Any) -> list[DueDraw]:
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
