"""A crowd that signs in at a provider waits in a queue, and nobody's sign-in is used up there."""

import asyncio
from threading import Event
from typing import Any

import pytest

from slotlock.auth.accounts import ServerBusy
from slotlock.auth.providers import connections
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.sign_on.sign_in import challenge_of, link_sign_in, start_sign_in
from tests.support.polling import eventually
from tests.support.sign_on.scene import SignOnScene
from tests.support.stores.users import fill_hash_queue


@pytest.mark.parametrize("is_bounded", [True, False], ids=["one at a time", "control"])
async def test_of_a_crowd_each_waits_or_finishes_the_same_sign_in_later(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, is_bounded: bool
) -> None:
    resume, provider = Event(), scene.provider

    def sign_later(claims: dict[str, Any]) -> str:
        assert resume.wait(60)
        return provider.honest_token(claims)

    async def provider_has(count: int) -> None:
        async def has_codes() -> bool:
            return provider.count("/token") == count

        await eventually(has_codes, "the provider has the codes")

    if is_bounded:
        monkeypatch.setattr(connections, "MAX_RUNNING", 1)
        # So long that one may wait for it, and no other one.
        monkeypatch.setattr(connections, "EXPECTED_SIGN_IN_S", 30.0)
    async with scene.configured() as crowded:
        started = [await crowded.start() for _ in range(3)]
        provider.sign = sign_later
        first = asyncio.create_task(crowded.finish(*started[0]))
        await provider_has(1)
        second, third = [asyncio.create_task(crowded.finish(*each)) for each in started[1:]]
        if is_bounded:
            refused = await third
            assert isinstance(refused, ServerBusy)
            assert refused.retry_after_ms >= 1_000
        await provider_has(1 if is_bounded else 3)
        resume.set()
        outcomes = [await first, await second]
        outcomes.append(await (crowded.finish(*started[2]) if is_bounded else third))
        assert [type(each) for each in outcomes] == [SignedInSession] * 3


async def test_a_full_queue_is_a_refusal_of_each_step(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, started = await scene.caller(), await scene.start()
    linked = await scene.start()
    with monkeypatch.context() as patch:
        fill_hash_queue(patch)
        outcomes = [
            await start_sign_in(scene.auth, "school", challenge_of(scene.verifier)),
            await scene.finish(*started),
            await link_sign_in(scene.auth, caller, *linked, scene.verifier),
        ]
        assert outcomes == [ServerBusy(1_000)] * 3
    assert isinstance(await scene.finish(*started), SignedInSession)
