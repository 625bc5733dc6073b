"""Passwords cannot be guessed in numbers, and nobody is kept out by who tries."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from passlib.context import CryptContext

from slotlock.auth import accounts
from slotlock.auth.accounts import EmailTaken, InvalidCredentials, TooManyAttempts, throttle_login
from slotlock.auth.container import Auth
from slotlock.auth.login_throttle import (
    PER_ACCOUNT,
    PER_ACCOUNT_AND_ADDRESS,
    PER_ADDRESS,
    LoginThrottle,
)
from slotlock.auth.sessions import SignedInSession
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateCharge, RateLimiter
from tests.support.apps.processes import database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.stores.users import auth_for_database

PASSWORD, WRONG = "correct horse battery", "wrong"
KEY = b"a key of the tests"


@dataclass(frozen=True)
class Door:
    """Where people sign in."""

    auth: Auth
    line: AutoPipeline

    async def try_once(self, email: str, address: str, password: str = WRONG) -> object:
        """What comes of signing in."""
        return await throttle_login(
            self.auth, email, address, lambda: accounts.login(self.auth, email, password)
        )

    async def fail(self, times: int, email: str, address: str) -> list[object]:
        """What comes of so many wrong passwords."""
        return [await self.try_once(email, address) for _ in range(times)]

    async def person(self) -> str:
        """The address of somebody with a password."""
        email = f"{secrets.token_hex(8)}@slotlock.test"
        await accounts.create_user(self.auth, "Ada", email, PASSWORD, Role.MEMBER)
        return email


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of numbers need not wait for the real cost of a hash."""
    costs = {"argon2__memory_cost": 8, "argon2__time_cost": 1, "argon2__parallelism": 1}
    context = CryptContext(schemes=["argon2"], **costs)
    monkeypatch.setattr("slotlock.auth.passwords._CONTEXT", context)


@pytest.fixture
async def login_throttle(servers: EmbeddedServers) -> AsyncIterator[Door]:
    async with auth_for_database(database_url(servers, "throttling")) as auth:
        await auth.users.create_indexes()
        line = AutoPipeline(redis_client(servers.redis_url))
        throttle = LoginThrottle(RateLimiter(line), KnownAddresses(line), KEY)
        yield Door(replace(auth, login_throttle=throttle), line)
        await line.close()


def new_address() -> str:
    return f"address {secrets.token_hex(8)}"


async def test_after_ten_wrong_passwords_from_one_address_the_right_one_has_to_wait_too(
    login_throttle: Door,
) -> None:
    email, here = await login_throttle.person(), new_address()
    assert (
        await login_throttle.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, here)
        == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
    )
    refused = await login_throttle.try_once(email, here, PASSWORD)
    assert isinstance(refused, TooManyAttempts)
    assert 0 < refused.retry_after_ms <= 2 * PER_ACCOUNT_AND_ADDRESS.window_s * 1000


async def test_an_account_that_is_not_there_is_throttled_as_one_that_is(
    login_throttle: Door,
) -> None:
    email, here = f"{secrets.token_hex(8)}@slotlock.test", new_address()
    assert (
        await login_throttle.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, here)
        == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
    )
    assert isinstance(await login_throttle.try_once(email, here), TooManyAttempts)


async def test_other_ways_to_write_an_address_are_the_same_account(login_throttle: Door) -> None:
    email, here = f"{secrets.token_hex(8)}@b\u00fccher.test", new_address()
    await login_throttle.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, here)
    for form in (email.upper(), f" {email} ", email.replace("b\u00fccher", "xn--bcher-kva")):
        assert isinstance(await login_throttle.try_once(form, here), TooManyAttempts)


async def test_of_many_guesses_at_once_ten_are_made(login_throttle: Door) -> None:
    email, here = await login_throttle.person(), new_address()
    outcomes = await asyncio.gather(*(login_throttle.try_once(email, here) for _ in range(100)))
    assert outcomes.count(InvalidCredentials()) == PER_ACCOUNT_AND_ADDRESS.max_count


async def test_control_guesses_that_are_counted_when_they_have_failed_are_made_by_the_hundred(
    login_throttle: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = LoginThrottle._charge

    async def look_only(self: LoginThrottle, wants: Sequence[RateCharge], verb: ChargeMode) -> int:
        return await ask(self, wants, ChargeMode.PEEK)

    monkeypatch.setattr(LoginThrottle, "_charge", look_only)
    email, here = await login_throttle.person(), new_address()
    outcomes = await asyncio.gather(*(login_throttle.try_once(email, here) for _ in range(100)))
    assert outcomes.count(InvalidCredentials()) == 100


async def test_signing_in_forgets_what_failed_before_it_there(login_throttle: Door) -> None:
    email, here = await login_throttle.person(), new_address()
    for _ in range(3):
        await login_throttle.fail(PER_ACCOUNT_AND_ADDRESS.max_count - 1, email, here)
        assert isinstance(await login_throttle.try_once(email, here, PASSWORD), SignedInSession)


async def test_guesses_from_many_addresses_are_counted_together(login_throttle: Door) -> None:
    email, hourly = await login_throttle.person(), PER_ACCOUNT[0].max_count
    outcomes = [await login_throttle.try_once(email, new_address()) for _ in range(hourly + 1)]
    assert outcomes[:-1] == [InvalidCredentials()] * hourly
    assert isinstance(outcomes[-1], TooManyAttempts)


async def test_nobody_is_kept_out_by_others_where_they_signed_in_before(
    login_throttle: Door,
) -> None:
    email, home = await login_throttle.person(), new_address()
    assert isinstance(await login_throttle.try_once(email, home, PASSWORD), SignedInSession)
    for _ in range(PER_ACCOUNT[0].max_count):
        await login_throttle.try_once(email, new_address())
    assert isinstance(
        await login_throttle.try_once(email, new_address(), PASSWORD), TooManyAttempts
    )
    assert isinstance(await login_throttle.try_once(email, home, PASSWORD), SignedInSession)


async def test_who_fails_at_one_account_leaves_the_others_at_the_address_alone(
    login_throttle: Door,
) -> None:
    school, email = new_address(), await login_throttle.person()
    await login_throttle.fail(
        2 * PER_ACCOUNT_AND_ADDRESS.max_count, await login_throttle.person(), school
    )
    assert isinstance(await login_throttle.try_once(email, school, PASSWORD), SignedInSession)


async def test_an_address_that_fails_at_thousands_of_accounts_has_to_wait(
    login_throttle: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = replace(PER_ADDRESS, max_count=20)
    monkeypatch.setattr("slotlock.auth.login_throttle.PER_ADDRESS", narrow)
    email, here = await login_throttle.person(), new_address()
    for number in range(narrow.max_count):
        assert (
            await login_throttle.try_once(f"{number}@slotlock.test", here) == InvalidCredentials()
        )
    assert isinstance(await login_throttle.try_once(email, here, PASSWORD), TooManyAttempts)
    assert isinstance(
        await login_throttle.try_once(email, new_address(), PASSWORD), SignedInSession
    )


async def test_an_address_that_fails_keeps_nobody_out_who_signed_in_there_before(
    login_throttle: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "slotlock.auth.login_throttle.PER_ADDRESS", replace(PER_ADDRESS, max_count=3)
    )
    email, school = await login_throttle.person(), new_address()
    assert isinstance(await login_throttle.try_once(email, school, PASSWORD), SignedInSession)
    for number in range(3):
        await login_throttle.try_once(f"{number}@slotlock.test", school)
    assert isinstance(
        await login_throttle.try_once(await login_throttle.person(), school, PASSWORD),
        TooManyAttempts,
    )
    assert isinstance(await login_throttle.try_once(email, school, PASSWORD), SignedInSession)
    assert (
        await login_throttle.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, school)
        == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
    )
    assert isinstance(await login_throttle.try_once(email, school, PASSWORD), TooManyAttempts)


async def test_finding_out_who_has_an_account_counts_as_failing(login_throttle: Door) -> None:
    email, here = await login_throttle.person(), new_address()

    async def register() -> object:
        return await accounts.register(login_throttle.auth, "Eve", email, PASSWORD)

    outcomes = [
        await throttle_login(login_throttle.auth, email, here, register)
        for _ in range(PER_ACCOUNT_AND_ADDRESS.max_count + 1)
    ]
    assert outcomes[:-1] == [EmailTaken(email)] * PER_ACCOUNT_AND_ADDRESS.max_count
    assert isinstance(outcomes[-1], TooManyAttempts)


async def test_an_attempt_that_was_not_made_does_not_count(login_throttle: Door) -> None:
    email, here = await login_throttle.person(), new_address()

    async def busy() -> TooManyAttempts:
        return TooManyAttempts(5_000)

    async def away() -> SignedInSession:
        raise TimeoutError

    for _ in range(PER_ACCOUNT_AND_ADDRESS.max_count):
        assert await throttle_login(login_throttle.auth, email, here, busy) == TooManyAttempts(
            5_000
        )
        with pytest.raises(TimeoutError):
            await throttle_login(login_throttle.auth, email, here, away)
    assert isinstance(await login_throttle.try_once(email, here, PASSWORD), SignedInSession)


async def test_redis_knows_neither_who_signs_in_nor_where_an_account_is_at_home(
    login_throttle: Door,
) -> None:
    email, here = await login_throttle.person(), "192.0.2.99"
    await login_throttle.fail(2, email, here)
    assert isinstance(await login_throttle.try_once(email, here, PASSWORD), SignedInSession)
    keys = b" ".join(await login_throttle.line.send("KEYS", "*")).decode()
    assert email.partition("@")[0] not in keys
    assert not [key for key in keys.split() if here in key and "failures" not in key]


async def test_while_redis_is_away_the_process_counts_by_itself(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    with restartable_server(tmp_path / "own", "valkey") as valkey:
        line = AutoPipeline(redis_client(valkey.url))
        throttle = LoginThrottle(RateLimiter(line), KnownAddresses(line), KEY)
        async with auth_for_database(database_url(servers, "throttling")) as auth:
            login_throttle = Door(replace(auth, login_throttle=throttle), line)
            email, here = await login_throttle.person(), new_address()
            valkey.kill()
            assert (
                await login_throttle.fail(PER_ACCOUNT_AND_ADDRESS.max_count, email, here)
                == [InvalidCredentials()] * PER_ACCOUNT_AND_ADDRESS.max_count
            )
            assert isinstance(await login_throttle.try_once(email, here, PASSWORD), TooManyAttempts)
            assert isinstance(
                await login_throttle.try_once(email, new_address(), PASSWORD), SignedInSession
            )
        await line.close()
