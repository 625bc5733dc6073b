"""A provider that is slow or does not respond: each sign-in has an outcome, in time."""

import asyncio
from collections.abc import Awaitable
from contextlib import nullcontext
from threading import Event
from typing import TypeVar

import pytest

from slotlock.auth.providers import connections, refreshing_cache
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.sign_on import sign_in
from slotlock.auth.sign_on.sign_in_outcomes import ProviderUnavailable
from slotlock.infrastructure import provider_client, request_deadline
from slotlock.infrastructure.provider_client import TIME_AFTER_RESPONSE_S
from slotlock.infrastructure.request_deadline import (
    RESERVE_S,
    RequestDeadlines,
    RequestTimeoutError,
    step_timeout_s,
)
from tests.support.polling import eventually
from tests.support.sign_on.scene import SignOnScene

Outcome = TypeVar("Outcome")
CROWD = 10
# What the requests of these tests have for a provider.
BUDGET_S = 1.0


@pytest.fixture(autouse=True)
def short_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a request, and a reading of a provider, last for less than usual."""
    request_s = RESERVE_S + TIME_AFTER_RESPONSE_S + BUDGET_S
    monkeypatch.setattr(request_deadline, "REQUEST_TIMEOUT_S", request_s)


async def in_request(work: Awaitable[Outcome]) -> Outcome:
    """Await within the deadline of a request."""
    with RequestDeadlines().begin():
        return await work


async def provider_has(scene: SignOnScene, path: str) -> None:
    """Wait until the provider has a request."""

    async def has_it() -> bool:
        return scene.provider.count(path) > 0

    await eventually(has_it, f"the provider has a request for {path}")


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
@pytest.mark.parametrize("path", ["/token", "/userinfo"])
async def test_a_provider_that_is_silent_after_the_sign_in_is_unavailable_in_time(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, path: str, is_guarded: bool
) -> None:
    started, released = await scene.start(), Event()
    scene.provider.held[path] = released
    if not is_guarded:
        monkeypatch.setattr(provider_client, "response_timeout_s", lambda: 60.0)
    finishing = in_request(scene.finish(*started))
    if is_guarded:
        assert await finishing == ProviderUnavailable()
    else:
        with pytest.raises(RequestTimeoutError):
            await finishing
    released.set()


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_a_crowd_waits_together_for_slow_keys_and_gets_in(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """If the wait is of the time of the request, nobody gets in: the control of this test."""
    released = scene.provider.held["/keys"] = Event()
    if not is_guarded:
        monkeypatch.setattr(sign_in, "untimed", nullcontext)
    started = [await scene.start() for _ in range(CROWD)]
    crowd = [asyncio.create_task(in_request(scene.finish(*each))) for each in started]
    await provider_has(scene, "/keys")
    done, _ = await asyncio.wait(crowd, timeout=2 * BUDGET_S, return_when=asyncio.FIRST_COMPLETED)
    assert bool(done) is not is_guarded
    if is_guarded:  # each request has its whole time again, in which many share MongoDB
        monkeypatch.setattr(request_deadline, "REQUEST_TIMEOUT_S", 60.0)
    else:
        await asyncio.wait(crowd)
    released.set()
    outcomes = {type(await each) for each in crowd}
    assert outcomes == {SignedInSession if is_guarded else ProviderUnavailable}
    assert scene.provider.count("/keys") == 1


async def test_a_sign_in_that_found_no_keys_can_be_finished_later(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = scene.provider.held["/keys"] = Event()
    monkeypatch.setattr(provider_client, "TIMEOUT_S", BUDGET_S)
    started = [await scene.start() for _ in range(CROWD)]
    crowd = [in_request(scene.finish(*each)) for each in started]
    assert await asyncio.gather(*crowd) == [ProviderUnavailable()] * CROWD
    assert scene.provider.count("/token") == 0
    released.set()
    for each in started[:2]:
        assert isinstance(await scene.finish(*each), SignedInSession)


@pytest.mark.parametrize("is_used", [True, False], ids=["used", "control"])
@pytest.mark.parametrize("path", ["/keys", "/.well-known/openid-configuration"])
async def test_what_a_provider_said_is_used_while_it_cannot_be_read_again(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, path: str, is_used: bool
) -> None:
    monkeypatch.setattr(connections, "KEYS_TTL_S", 0.0)
    monkeypatch.setattr(connections, "METADATA_TTL_S", 0.0)
    monkeypatch.setattr(refreshing_cache, "PATIENCE_S", 0.05)
    async with scene.configured() as stale:
        await stale.user()
        started = await stale.start()
        released = scene.provider.held[path] = Event()
        monkeypatch.setattr(provider_client, "TIMEOUT_S", BUDGET_S)
        if not is_used:
            monkeypatch.setattr(refreshing_cache, "MAX_AGE_S", 0.0)
        outcome = await in_request(stale.finish(*started))
        assert isinstance(outcome, SignedInSession if is_used else ProviderUnavailable)
        released.set()


async def test_what_one_request_begins_to_read_is_there_for_the_next_one(
    scene: SignOnScene,
) -> None:
    async def ask() -> None:
        assert scene.auth.sign_on is not None
        connection = scene.auth.sign_on.find("school")
        assert connection is not None
        assert step_timeout_s() is not None
        await connection.keys()

    released = scene.provider.held["/keys"] = Event()
    with pytest.raises(provider_client.ProviderUnavailableError):
        await in_request(ask())
    released.set()
    await in_request(ask())
    assert scene.provider.count("/keys") == 1
