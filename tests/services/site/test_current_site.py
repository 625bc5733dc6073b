"""The values of the site, which each process reads again at most every ten seconds."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.site.logo import Logo
from slotlock.domain.site.site import LOGO_PATH, NO_SETTINGS, SiteSaved, SiteValues
from slotlock.domain.users.user import UserId
from slotlock.services.container import Services
from slotlock.services.site import current_site
from slotlock.services.site.current_site import READ_AGAIN_AFTER, READ_LOGO_AGAIN_AFTER, update
from tests.support.model.service_pair import ManualClock, open_services
from tests.support.stores.empty_database import empty_database

ADMIN = UserId("0" * 24)
Scene = tuple[ManualClock, Services, Services]


@pytest.fixture
async def scene(servers: EmbeddedServers) -> AsyncIterator[Scene]:
    """Yield the services of two processes on one clock."""
    clock = ManualClock()
    async with AsyncExitStack() as stack:
        url = stack.enter_context(empty_database(servers))
        one, other = [await open_services(stack, url, servers.redis_url, clock) for _ in range(2)]
        yield clock, one, other


async def test_another_process_has_a_change_within_ten_seconds(scene: Scene) -> None:
    clock, one, other = scene
    assert await one.site.load() == await other.site.load() == NO_SETTINGS
    own = SiteValues(name="Park School", color="#112233")
    changes = {"name": "Park School", "color": "#112233"}
    assert await update(one.site, changes, ADMIN) == SiteSaved(own, NO_SETTINGS)
    assert await one.site.load() == own.over(NO_SETTINGS)
    # A second click on the button changes nothing.
    assert await update(one.site, {}, ADMIN) == SiteSaved(own, NO_SETTINGS)
    # It reads no oftener than that.
    assert await other.site.load() == NO_SETTINGS
    clock.advance(READ_AGAIN_AFTER)
    assert await other.site.load() == own.over(NO_SETTINGS)
    # A value that is taken back leaves the others alone.
    await update(other.site, {"name": ""}, ADMIN)
    assert await other.site.load() == replace(NO_SETTINGS, color="#112233")
    clock.advance(READ_AGAIN_AFTER)
    assert await one.site.load() == replace(NO_SETTINGS, color="#112233")


async def test_of_two_first_changes_at_once_both_are_stored(scene: Scene) -> None:
    _, one, other = scene
    await asyncio.gather(
        update(one.site, {"name": "Park School"}, ADMIN),
        update(other.site, {"time_zone": "Europe/Berlin"}, ADMIN),
    )
    stored = SiteValues(name="Park School", time_zone="Europe/Berlin")
    assert await one.site_values.find() == stored


async def test_a_database_that_does_not_respond_leaves_the_values_of_before(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, one, other = scene
    await update(one.site, {"name": "Park School"}, ADMIN)
    monkeypatch.setattr(current_site, "PATIENCE_S", 0)
    monkeypatch.setattr(one.site._own, "_read", asyncio.Event().wait)
    clock.advance(READ_AGAIN_AFTER)
    assert (await one.site.load()).name == "Park School"
    # Without any before, these are the settings.
    monkeypatch.setattr(other.site._own, "_read", asyncio.Event().wait)
    assert await other.site.load() == NO_SETTINGS


async def test_a_read_that_began_before_a_change_does_not_undo_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, one, _ = scene
    is_read = asyncio.Event()

    async def read_late() -> SiteValues:
        await is_read.wait()
        return SiteValues(name="Old name")

    monkeypatch.setattr(one.site._own, "_read", read_late)
    loading = asyncio.create_task(one.site.load())
    await asyncio.sleep(0)
    clock.advance(READ_AGAIN_AFTER / 2)
    await update(one.site, {"name": "New name"}, ADMIN)
    is_read.set()
    assert (await loading).name == "New name"


PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


async def test_another_process_has_the_logo_as_soon_as_a_page_names_it(scene: Scene) -> None:
    clock, one, other = scene
    assert await other.site.find_logo("0" * 16) is None
    saved = await update(one.site, {}, ADMIN, b64encode(PNG).decode())
    assert isinstance(saved, SiteSaved)
    digest = saved.own.logo_url.removeprefix(LOGO_PATH)
    clock.advance(READ_LOGO_AGAIN_AFTER)
    for services in (one, other):
        assert await services.site.find_logo(digest) == Logo(PNG, "image/png")
        assert await services.site.find_logo("0" * 16) is None
    # Requests for other images do not read each time.
    await update(one.site, {}, ADMIN, b64encode(PNG + b"2").decode())
    assert await other.site.find_logo("0" * 16) is None
    assert await other.site.find_logo(digest) == Logo(PNG, "image/png")
    taken_back = await update(one.site, {"logo_url": ""}, ADMIN)
    assert isinstance(taken_back, SiteSaved)
    assert taken_back.own.logo_url == ""
