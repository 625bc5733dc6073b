"""Nobody can use up what a neighbour signs in with, or what a person ends a stolen session with."""

import httpx
import pytest

from slotlock.api.embedded import Servers
from slotlock.auth.sessions import open_session
from slotlock.auth.throttling import FAILURES
from slotlock.graphql.rates import ATTEMPTS, SIGN_INS
from slotlock.stores.rate_limits import key_of
from slotlock.stores.redis import RedisLine, redis_client
from tests.support.limited import (
    CANCEL,
    LOGIN,
    PEOPLE,
    WRITES,
    From,
    somewhere,
)
from tests.support.people import auth_on, somebody
from tests.support.processes import AppProcess

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

pytestmark = pytest.mark.usefixtures("early")


@pytest.fixture
async def pair(limited: AppProcess, http: httpx.AsyncClient) -> tuple[From, From]:
    """Two open sessions of one person, at two addresses."""
    async with auth_on(limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        user = await somebody(auth)
        one, other = [(await open_session(auth, user)).access_token for _ in range(2)]
    return somewhere(http, limited, one), somewhere(http, limited, other)


def fifteen(act: str) -> str:
    """A mutation that does it so often."""
    return "mutation {" + " ".join(f"a{n}: {act}" for n in range(15)) + "}"


async def failures(servers: Servers, address: str) -> int:
    """How many failures to sign in are counted at an address."""
    line = RedisLine(redis_client(servers.redis_url))
    kept = await line.send("GET", key_of(f"address:{address}", FAILURES))
    await line.close()
    return int(kept.split()[1]) if kept else 0


@pytest.mark.parametrize("act", GUESSES)
async def test_who_brings_tokens_that_are_no_good_keeps_no_neighbour_from_signing_in(
    nobody: From, servers: Servers, act: str
) -> None:
    most = PEOPLE * ATTEMPTS // 15
    assert await nobody.let_in(most + 1, fifteen(GUESSES[act])) == most
    assert await nobody.let_in(1, LOGIN) == 1
    assert await failures(servers, nobody.address) == 1  # that of signing in


@pytest.mark.parametrize("act", NO_HASH)
async def test_who_is_refused_before_a_password_is_hashed_keeps_no_neighbour_from_signing_in(
    nobody: From, servers: Servers, act: str
) -> None:
    field, guesses = NO_HASH[act]
    often = 2 * PEOPLE * SIGN_INS // 15
    assert await nobody.let_in(often, fifteen(field)) == often
    assert await nobody.let_in(1, LOGIN) == 1
    assert await failures(servers, nobody.address) == guesses + 1


async def test_control_who_has_passwords_hashed_uses_up_what_an_address_signs_in_with(
    nobody: From,
) -> None:
    most = PEOPLE * SIGN_INS // 15
    assert await nobody.let_in(most + 1, fifteen(LOGIN[11:-2])) == most
    assert await nobody.let_in(1, LOGIN) == 0


async def test_an_address_has_so_many_attempts_even_if_no_password_is_hashed(nobody: From) -> None:
    most = PEOPLE * ATTEMPTS // 15
    assert await nobody.let_in(most + 1, fifteen(NO_HASH["a short one"][0])) == most


async def test_who_has_a_token_of_an_ended_session_uses_up_nothing_of_its_person(
    pair: tuple[From, From],
) -> None:
    thief, person = pair
    assert "errors" not in (await person.post("mutation { endOtherSessions }")).json()
    await thief.let_in(1, CANCEL)  # which finds out that it has ended
    assert await thief.let_in(WRITES, CANCEL) == WRITES
    assert await person.let_in(WRITES, CANCEL) == WRITES - 1


async def test_who_stole_a_session_keeps_its_person_from_ending_it_by_no_rate(
    pair: tuple[From, From],
) -> None:
    thief, person = pair
    ending = fifteen('endSession(id: "x") { __typename }')
    assert await thief.let_in(SIGN_INS, ending) == PEOPLE * SIGN_INS // 15
    assert await thief.let_in(WRITES + 1, CANCEL) == WRITES
    assert await person.let_in(1, "mutation { endOtherSessions }") == 1
