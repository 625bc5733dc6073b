"""A response to `refreshSession` that is lost signs nobody out."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import httpx
import pytest
from pymongo import timeout

from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import (
    UNANSWERED_GRACE,
    InvalidSession,
    SignedInSession,
    open_session,
    refresh_session,
)
from slotlock.auth.tokens import TokenSigner
from slotlock.infrastructure.mongo.client import may_have_written
from tests.support.apps.processes import SECRET, Pair
from tests.support.clients.client import GraphQLTestClient
from tests.support.stores.late_store import LateStore, answer_before_write, short_timeouts, store
from tests.support.stores.users import auth_for_database, insert_user

__all__ = ["short_timeouts", "store"]

NEW_SECRET = "another secret of thirty-two bytes or more"
LONGER_THAN_GRACE = timedelta(seconds=36)
REFRESH = """mutation ($token: String!) {
  refreshSession(refreshToken: $token) { __typename ... on Session { accessToken refreshToken } }
}"""
ME = "{ me { id } }"


async def refresh(auth: Auth, refresh_token: str) -> SignedInSession:
    """Exchange a token, which has to work."""
    outcome = await refresh_session(auth, refresh_token)
    assert isinstance(outcome, SignedInSession)
    return outcome


async def refresh_before_write(store: LateStore, auth: Auth) -> str:
    """Exchange a token while the route holds the write. Return the token."""
    token = (await open_session(auth, await insert_user(auth))).refresh_token
    outcome = await answer_before_write(store, partial(refresh_session, auth, token))
    assert isinstance(outcome, Exception)
    assert may_have_written(outcome)
    return token


async def test_after_an_exchange_of_unknown_outcome_the_same_token_works(store: LateStore) -> None:
    token = await refresh_before_write(store, store.auth)
    await store.deliver_held()
    first, second = [await refresh(store.auth, token) for _ in range(2)]
    assert first.refresh_token == second.refresh_token
    assert await authenticate(store.auth, f"Bearer {first.access_token}") is not None


async def test_an_exchange_after_its_repetition_changes_nothing(store: LateStore) -> None:
    token = await refresh_before_write(store, store.auth)
    store.route.is_held = lambda _: False
    repeated = await refresh(store.auth, token)
    await store.deliver_held()
    await refresh(store.auth, repeated.refresh_token)


async def test_control_without_grace_an_unknown_outcome_signs_out(store: LateStore) -> None:
    no_grace = replace(store.auth, refresh_grace=timedelta())
    token = await refresh_before_write(store, no_grace)
    await store.deliver_held()
    assert await refresh_session(no_grace, token) == InvalidSession()


async def test_without_grace_a_process_whose_clock_is_behind_accepts_no_token_twice(
    store: LateStore,
) -> None:
    no_grace = replace(store.auth, refresh_grace=timedelta())
    token = (await open_session(no_grace, await insert_user(no_grace))).refresh_token
    await refresh(no_grace, token)
    store.advance(timedelta(seconds=-1))
    assert await refresh_session(no_grace, token) == InvalidSession()


async def test_an_unknown_outcome_can_be_repeated_after_a_long_outage(store: LateStore) -> None:
    token = await refresh_before_write(store, store.auth)
    await store.deliver_held()
    store.advance(UNANSWERED_GRACE - timedelta(seconds=1))
    session = await refresh(store.auth, token)
    await refresh(store.auth, session.refresh_token)


async def test_control_the_grace_of_an_exchange_that_counts_as_answered_ends_in_an_outage(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotlock.auth.sessions.UNANSWERED_GRACE", store.auth.refresh_grace)
    token = await refresh_before_write(store, store.auth)
    await store.deliver_held()
    store.advance(LONGER_THAN_GRACE)
    assert await refresh_session(store.auth, token) == InvalidSession()


async def test_an_exchange_of_unknown_outcome_cannot_be_repeated_forever(store: LateStore) -> None:
    token = await refresh_before_write(store, store.auth)
    await store.deliver_held()
    store.advance(UNANSWERED_GRACE)
    assert await refresh_session(store.auth, token) == InvalidSession()


async def test_the_grace_begins_with_the_first_answer_and_only_once(store: LateStore) -> None:
    token = await refresh_before_write(store, store.auth)
    await store.deliver_held()
    store.advance(LONGER_THAN_GRACE)
    first = await refresh(store.auth, token)
    store.advance(store.auth.refresh_grace - timedelta(seconds=1))
    second = await refresh(store.auth, token)
    assert first.refresh_token == second.refresh_token
    store.advance(timedelta(seconds=1))
    assert await refresh_session(store.auth, token) == InvalidSession()
    assert await refresh_session(store.auth, second.refresh_token) == InvalidSession()


async def test_a_long_outage_does_not_let_a_token_return_after_its_successor_was_used(
    store: LateStore,
) -> None:
    token = await refresh_before_write(store, store.auth)
    await store.deliver_held()
    store.advance(LONGER_THAN_GRACE)
    session = await refresh(store.auth, token)
    latest = await refresh(store.auth, session.refresh_token)
    assert await refresh_session(store.auth, token) == InvalidSession()
    assert await refresh_session(store.auth, latest.refresh_token) == InvalidSession()


async def test_an_exchange_succeeds_although_mongodb_does_not_confirm_that_it_was_answered(
    store: LateStore,
) -> None:
    token = (await open_session(store.auth, await insert_user(store.auth))).refresh_token
    store.route.is_held = lambda message: b"rotation.answeredAt" in message
    with timeout(3.0):
        first = await refresh(store.auth, token)
    assert store.route.held
    await store.deliver_held()
    assert (await refresh(store.auth, token)).refresh_token == first.refresh_token


async def refresh_in_tabs(tabs: Sequence[GraphQLTestClient], tokens: Sequence[str]) -> list[Any]:
    """Exchange tokens in several tabs at once. Return the sessions."""
    sessions = await asyncio.gather(
        *(tab.execute(REFRESH, token=token) for tab, token in zip(tabs, tokens, strict=True))
    )
    assert [each["__typename"] for each in sessions] == ["Session"] * len(sessions)
    return sessions


async def test_two_tabs_at_two_processes_refresh_at_once_and_stay_signed_in(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    async with auth_for_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as auth:
        token = (await open_session(auth, await insert_user(auth))).refresh_token
    tabs = [GraphQLTestClient(http, app.url) for app in two_apps]
    tokens = [token, token]
    for _ in range(3):
        sessions = await refresh_in_tabs(tabs, tokens)
        tokens = [each["refreshToken"] for each in sessions]
        assert tokens[0] == tokens[1]
        for app, session in zip(reversed(two_apps), sessions, strict=True):
            user = GraphQLTestClient(http, app.url, session["accessToken"])
            assert await user.execute(ME) is not None


def with_secrets(auth: Auth, *secrets: str) -> Auth:
    """Return the authentication of a process with these secrets."""
    return replace(auth, tokens=TokenSigner(secrets))


async def test_processes_with_a_new_and_an_old_secret_grant_the_grace(store: LateStore) -> None:
    old_first = with_secrets(store.auth, SECRET, NEW_SECRET)
    new_first = with_secrets(store.auth, NEW_SECRET, SECRET)
    token = (await open_session(old_first, await insert_user(old_first))).refresh_token
    first, second = await refresh(old_first, token), await refresh(new_first, token)
    assert first.refresh_token != second.refresh_token  # another signature of the same token
    latest = [await refresh(new_first, each.refresh_token) for each in (first, second)]
    assert latest[0].refresh_token == latest[1].refresh_token


async def test_a_process_without_the_old_secret_rejects_a_token_and_ends_no_session(
    store: LateStore,
) -> None:
    token = (await open_session(store.auth, await insert_user(store.auth))).refresh_token
    assert await refresh_session(with_secrets(store.auth, NEW_SECRET), token) == InvalidSession()
    await refresh(with_secrets(store.auth, NEW_SECRET, SECRET), token)
