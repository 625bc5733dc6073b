"""Nobody can use up what a neighbour signs in with, or what a person ends a stolen session with."""

import httpx
import pytest

from slotlock.auth.login_throttle import PER_ADDRESS
from slotlock.auth.sessions import open_session
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.limits.rates import MAX_SIGN_IN_ATTEMPTS_PER_MINUTE, MAX_SIGN_INS_PER_MINUTE
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import rate_limit_key
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    CANCEL_UNKNOWN_BOOKING,
    LOGIN_WITH_BAD_EMAIL,
    USERS_PER_ADDRESS,
    WRITES_PER_MINUTE,
    AddressedClient,
    client_at_new_address,
)
from tests.support.stores.users import auth_for_database, insert_user

# They are refused as quickly as can be.
GUESSES = {
    "refreshSession": 'refreshSession(refreshToken: "x") { __typename }',
    "setPassword": 'setPassword(token: "x", password: "12345678") { __typename }',
}
# A field that is refused, and how many of its guesses are made all the same.
NO_HASH = {
    "a short one": (
        'register(input: {name: "A", email: "a@b.example", password: "short"}) { __typename }',
        0,
    ),
    "one too long": (
        f'login(input: {{email: "a@b.example", password: "{"x" * 129}"}}) {{ __typename }}',
        0,
    ),
    "one too many": (
        'login(input: {email: "guessed@b.example", password: "wrong"}) { __typename }',
        10,
    ),
}

pytestmark = pytest.mark.usefixtures("early_in_minute")


@pytest.fixture
async def pair(
    rate_limited: AppProcess, http: httpx.AsyncClient
) -> tuple[AddressedClient, AddressedClient]:
    """Two open sessions of one person, at two addresses."""
    async with auth_for_database(rate_limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        user = await insert_user(auth)
        one, other = [(await open_session(auth, user)).access_token for _ in range(2)]
    return client_at_new_address(http, rate_limited, one), client_at_new_address(
        http, rate_limited, other
    )


def fifteen(act: str) -> str:
    """A mutation that does it so often."""
    return "mutation {" + " ".join(f"a{n}: {act}" for n in range(15)) + "}"


async def failures(servers: EmbeddedServers, address: str) -> int:
    """How many failures to sign in are counted at an address."""
    line = AutoPipeline(redis_client(servers.redis_url))
    stored = await line.send("GET", rate_limit_key(f"address:{address}", PER_ADDRESS.name))
    await line.close()
    return int(stored.split()[1]) if stored else 0


@pytest.mark.parametrize("act", GUESSES)
async def test_who_brings_tokens_that_are_no_good_keeps_no_neighbour_from_signing_in(
    anonymous: AddressedClient, servers: EmbeddedServers, act: str
) -> None:
    most = USERS_PER_ADDRESS * MAX_SIGN_IN_ATTEMPTS_PER_MINUTE // 15
    assert await anonymous.count_accepted(most + 1, fifteen(GUESSES[act])) == most
    assert await anonymous.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 1
    assert await failures(servers, anonymous.address) == 1  # that of signing in


@pytest.mark.parametrize("act", NO_HASH)
async def test_who_is_refused_before_a_password_is_hashed_keeps_no_neighbour_from_signing_in(
    anonymous: AddressedClient, servers: EmbeddedServers, act: str
) -> None:
    field, guesses = NO_HASH[act]
    often = 2 * USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // 15
    assert await anonymous.count_accepted(often, fifteen(field)) == often
    assert await anonymous.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 1
    assert await failures(servers, anonymous.address) == guesses + 1


async def test_control_who_has_passwords_hashed_uses_up_what_an_address_signs_in_with(
    anonymous: AddressedClient,
) -> None:
    most = USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // 15
    assert await anonymous.count_accepted(most + 1, fifteen(LOGIN_WITH_BAD_EMAIL[11:-2])) == most
    assert await anonymous.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 0


async def test_an_address_has_so_many_attempts_even_if_no_password_is_hashed(
    anonymous: AddressedClient,
) -> None:
    most = USERS_PER_ADDRESS * MAX_SIGN_IN_ATTEMPTS_PER_MINUTE // 15
    assert await anonymous.count_accepted(most + 1, fifteen(NO_HASH["a short one"][0])) == most


async def test_who_has_a_token_of_an_ended_session_uses_up_nothing_of_its_person(
    pair: tuple[AddressedClient, AddressedClient],
) -> None:
    thief, user = pair
    assert "errors" not in (await user.post("mutation { endOtherSessions }")).json()
    await thief.count_accepted(1, CANCEL_UNKNOWN_BOOKING)  # which finds out that it has ended
    assert (
        await thief.count_accepted(WRITES_PER_MINUTE, CANCEL_UNKNOWN_BOOKING) == WRITES_PER_MINUTE
    )
    assert (
        await user.count_accepted(WRITES_PER_MINUTE, CANCEL_UNKNOWN_BOOKING)
        == WRITES_PER_MINUTE - 1
    )


async def test_who_stole_a_session_keeps_its_person_from_ending_it_by_no_rate(
    pair: tuple[AddressedClient, AddressedClient],
) -> None:
    thief, user = pair
    ending = fifteen('endSession(id: "x") { __typename }')
    assert (
        await thief.count_accepted(MAX_SIGN_INS_PER_MINUTE, ending)
        == USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // 15
    )
    assert (
        await thief.count_accepted(WRITES_PER_MINUTE + 1, CANCEL_UNKNOWN_BOOKING)
        == WRITES_PER_MINUTE
    )
    assert await user.count_accepted(1, "mutation { endOtherSessions }") == 1
