"""The login throttle: it limits guesses, and attackers cannot lock users out."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from slotlock.auth import accounts
from slotlock.auth.accounts import (
    EmailTaken,
    InvalidCredentials,
    ServerBusy,
    TooManyAttempts,
    throttle_login,
)
from slotlock.auth.container import Auth
from slotlock.auth.login_throttle import (
    PER_ACCOUNT,
    PER_ACCOUNT_AND_ADDRESS,
    PER_ADDRESS,
    LoginAttempt,
    LoginThrottle,
)
from slotlock.auth.sessions import SignedInSession
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateCharge, RateLimit, RateLimiter
from tests.support.apps.restartable_servers import restartable_server

PASSWORD, WRONG = "correct horse battery", "wrong"
KEY = b"a key of the tests"


@dataclass(frozen=True)
class LoginClient:
    """Attempts logins through the throttle."""

    auth: Auth
    pipeline: AutoPipeline

    async def try_once(self, email: str, address: str, password: str = WRONG) -> object:
        """Return the outcome of one login."""
        return await throttle_login(
            self.auth, email, address, lambda _: accounts.login(self.auth, email, password)
        )

    async def fail(self, times: int, email: str, address: str) -> list[object]:
        """Return the outcomes of this many wrong passwords."""
        return [await self.try_once(email, address) for _ in range(times)]

    async def create_user(self) -> str:
        """Create a user with a password. Return their e-mail address."""
        email = f"{secrets.token_hex(8)}@slotlock.test"
        await accounts.create_user(self.auth, "Ada", email, PASSWORD, Role.MEMBER)
        return email


@pytest.fixture(autouse=True)
def endless_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count all that a test does in one window of each rate limit."""
    monkeypatch.setattr(
        RateLimit, "window_s", property(lambda _: 1_000_000_000, lambda _, __: None)
    )


@pytest.fixture
async def client(auth: Auth, servers: EmbeddedServers) -> AsyncIterator[LoginClient]:
    pipeline = AutoPipeline(redis_client(servers.redis_url), MAX_BUDGET_MS)  # it may be busy
    throttle = LoginThrottle(RateLimiter(pipeline), KnownAddresses(pipeline), KEY)
    yield LoginClient(replace(auth, login_throttle=throttle), pipeline)
    await pipeline.close()


def new_client_address() -> str:
    return f"address {secrets.token_hex(8)}"


async def test_after_ten_failures_from_one_address_the_right_password_has_to_wait(
    client: LoginClient,
) -> None:
    email, client_address = await client.create_user(), new_client_address()
    assert (
        await client.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, client_address)
        == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
    )
    outcome = await client.try_once(email, client_address, PASSWORD)
    assert isinstance(outcome, TooManyAttempts)
    assert 0 < outcome.retry_after_ms <= 2 * PER_ACCOUNT_AND_ADDRESS.window_s * 1000


async def test_an_unknown_account_is_throttled_like_an_existing_one(client: LoginClient) -> None:
    email, client_address = f"{secrets.token_hex(8)}@slotlock.test", new_client_address()
    assert (
        await client.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, client_address)
        == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
    )
    assert isinstance(await client.try_once(email, client_address), TooManyAttempts)


async def test_all_forms_of_an_email_address_are_one_account(client: LoginClient) -> None:
    email, client_address = f"{secrets.token_hex(8)}@b\u00fccher.test", new_client_address()
    await client.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, client_address)
    for form in (email.upper(), f" {email} ", email.replace("b\u00fccher", "xn--bcher-kva")):
        assert isinstance(await client.try_once(form, client_address), TooManyAttempts)


async def test_of_many_concurrent_guesses_ten_are_checked(client: LoginClient) -> None:
    email, client_address = await client.create_user(), new_client_address()
    outcomes = await asyncio.gather(*(client.try_once(email, client_address) for _ in range(100)))
    assert outcomes.count(InvalidCredentials()) == PER_ACCOUNT_AND_ADDRESS.max_count


async def test_control_counting_only_after_the_failure_allows_all_concurrent_guesses(
    client: LoginClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = LoginThrottle.charge

    async def peek_only(
        self: LoginThrottle, charges: Sequence[RateCharge], mode: ChargeMode
    ) -> int:
        return await charge(self, charges, ChargeMode.PEEK)

    monkeypatch.setattr(LoginThrottle, "charge", peek_only)
    email, client_address = await client.create_user(), new_client_address()
    outcomes = await asyncio.gather(*(client.try_once(email, client_address) for _ in range(100)))
    assert outcomes.count(InvalidCredentials()) == 100


async def test_a_successful_login_resets_the_failures_of_its_address(client: LoginClient) -> None:
    email, client_address = await client.create_user(), new_client_address()
    for _ in range(3):
        await client.fail(PER_ACCOUNT_AND_ADDRESS.max_count - 1, email, client_address)
        assert isinstance(await client.try_once(email, client_address, PASSWORD), SignedInSession)


async def test_guesses_from_many_addresses_count_together(client: LoginClient) -> None:
    email, hourly = await client.create_user(), PER_ACCOUNT[0].max_count
    outcomes = [await client.try_once(email, new_client_address()) for _ in range(hourly + 1)]
    assert outcomes[:-1] == [InvalidCredentials()] * hourly
    assert isinstance(outcomes[-1], TooManyAttempts)


async def test_failures_elsewhere_lock_nobody_out_at_a_known_address(client: LoginClient) -> None:
    email, known_address = await client.create_user(), new_client_address()
    assert isinstance(await client.try_once(email, known_address, PASSWORD), SignedInSession)
    for _ in range(PER_ACCOUNT[0].max_count):
        await client.try_once(email, new_client_address())
    assert isinstance(await client.try_once(email, new_client_address(), PASSWORD), TooManyAttempts)
    assert isinstance(await client.try_once(email, known_address, PASSWORD), SignedInSession)


async def test_failures_on_one_account_affect_no_other_at_the_address(client: LoginClient) -> None:
    shared_address, email = new_client_address(), await client.create_user()
    await client.fail(
        2 * PER_ACCOUNT_AND_ADDRESS.max_count, await client.create_user(), shared_address
    )
    assert isinstance(await client.try_once(email, shared_address, PASSWORD), SignedInSession)


async def test_an_address_with_too_many_failures_has_to_wait(
    client: LoginClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    low_limit = replace(PER_ADDRESS, max_count=20)
    monkeypatch.setattr("slotlock.auth.login_throttle.PER_ADDRESS", low_limit)
    email, client_address = await client.create_user(), new_client_address()
    for number in range(low_limit.max_count):
        assert (
            await client.try_once(f"{number}@slotlock.test", client_address) == InvalidCredentials()
        )
    assert isinstance(await client.try_once(email, client_address, PASSWORD), TooManyAttempts)
    assert isinstance(await client.try_once(email, new_client_address(), PASSWORD), SignedInSession)


async def test_an_address_with_too_many_failures_accepts_users_who_are_known_there(
    client: LoginClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "slotlock.auth.login_throttle.PER_ADDRESS", replace(PER_ADDRESS, max_count=3)
    )
    email, shared_address = await client.create_user(), new_client_address()
    assert isinstance(await client.try_once(email, shared_address, PASSWORD), SignedInSession)
    for number in range(3):
        await client.try_once(f"{number}@slotlock.test", shared_address)
    assert isinstance(
        await client.try_once(await client.create_user(), shared_address, PASSWORD), TooManyAttempts
    )
    assert isinstance(await client.try_once(email, shared_address, PASSWORD), SignedInSession)
    assert (
        await client.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, shared_address)
        == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
    )
    assert isinstance(await client.try_once(email, shared_address, PASSWORD), TooManyAttempts)


async def test_registering_a_taken_address_counts_as_a_failure(client: LoginClient) -> None:
    email, client_address = await client.create_user(), new_client_address()

    async def register(_attempt: LoginAttempt) -> object:
        return await accounts.register(client.auth, "Eve", email, PASSWORD)

    outcomes = [
        await throttle_login(client.auth, email, client_address, register)
        for _ in range(PER_ACCOUNT_AND_ADDRESS.max_count + 1)
    ]
    assert outcomes[:-1] == [EmailTaken(email)] * PER_ACCOUNT_AND_ADDRESS.max_count
    assert isinstance(outcomes[-1], TooManyAttempts)


async def test_an_attempt_whose_password_was_not_checked_is_free(client: LoginClient) -> None:
    email, client_address = await client.create_user(), new_client_address()

    async def busy(_attempt: LoginAttempt) -> ServerBusy:
        return ServerBusy(5_000)

    async def fail(_attempt: LoginAttempt) -> SignedInSession:
        raise TimeoutError

    for _ in range(PER_ACCOUNT_AND_ADDRESS.max_count):
        assert await throttle_login(client.auth, email, client_address, busy) == ServerBusy(5_000)
        with pytest.raises(TimeoutError):
            await throttle_login(client.auth, email, client_address, fail)
    assert isinstance(await client.try_once(email, client_address, PASSWORD), SignedInSession)


async def test_redis_holds_no_email_address_and_no_known_address(client: LoginClient) -> None:
    email, client_address = await client.create_user(), "192.0.2.99"
    await client.fail(2, email, client_address)
    assert isinstance(await client.try_once(email, client_address, PASSWORD), SignedInSession)
    keys = b" ".join(await client.pipeline.send("KEYS", "*")).decode()
    assert email.partition("@")[0] not in keys
    assert not [key for key in keys.split() if client_address in key and "failures" not in key]


async def test_without_redis_the_process_counts_alone(auth: Auth, tmp_path: Path) -> None:
    with restartable_server(tmp_path / "own", "valkey") as valkey:
        pipeline = AutoPipeline(redis_client(valkey.url), MAX_BUDGET_MS)
        throttle = LoginThrottle(RateLimiter(pipeline), KnownAddresses(pipeline), KEY)
        client = LoginClient(replace(auth, login_throttle=throttle), pipeline)
        email, client_address = await client.create_user(), new_client_address()
        valkey.kill()
        assert (
            await client.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, client_address)
            == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
        )
        assert isinstance(await client.try_once(email, client_address, PASSWORD), TooManyAttempts)
        assert isinstance(
            await client.try_once(email, new_client_address(), PASSWORD), SignedInSession
        )
        await pipeline.close()
