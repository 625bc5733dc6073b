"""A client cannot use up what others at its address, or the owner of a stolen session, need."""

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

FIELDS_PER_MUTATION = 15
# Fields with an invalid token, which are rejected quickly.
INVALID_TOKENS = {
    "refreshSession": 'refreshSession(refreshToken: "x") { __typename }',
    "setPassword": 'setPassword(token: "x", password: "12345678") { __typename }',
}
# Fields that are rejected before a password is hashed, and how many of them count as a guess.
WITHOUT_HASH = {
    "a short password": (
        'register(input: {name: "A", email: "a@b.example", password: "short"}) { __typename }',
        0,
    ),
    "a long password": (
        f'login(input: {{email: "a@b.example", password: "{"x" * 129}"}}) {{ __typename }}',
        0,
    ),
    "too many guesses": (
        'login(input: {email: "guessed@b.example", password: "wrong"}) { __typename }',
        10,
    ),
}
LOGIN_FIELD = LOGIN_WITH_BAD_EMAIL.removeprefix("mutation { ").removesuffix(" }")


@pytest.fixture
async def thief_and_owner(
    rate_limited: AppProcess, http: httpx.AsyncClient
) -> tuple[AddressedClient, AddressedClient]:
    """Return two open sessions of one user at two addresses; the first one was stolen."""
    async with auth_for_database(rate_limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        user = await insert_user(auth)
        stolen, own = [(await open_session(auth, user)).access_token for _ in range(2)]
    return (
        client_at_new_address(http, rate_limited, stolen),
        client_at_new_address(http, rate_limited, own),
    )


def repeated(field: str) -> str:
    """Build a mutation with many copies of a field."""
    return "mutation {" + " ".join(f"a{n}: {field}" for n in range(FIELDS_PER_MUTATION)) + "}"


async def failed_sign_ins(servers: EmbeddedServers, address: str) -> int:
    """Return how many failed sign-ins are counted at an address."""
    pipeline = AutoPipeline(redis_client(servers.redis_url))
    value = await pipeline.send("GET", rate_limit_key(f"address:{address}", PER_ADDRESS.name))
    await pipeline.close()
    return int(value.split()[1]) if value else 0


@pytest.mark.parametrize("mutation", INVALID_TOKENS)
async def test_invalid_tokens_do_not_use_up_the_sign_ins_of_an_address(
    anonymous: AddressedClient, servers: EmbeddedServers, mutation: str
) -> None:
    limit = USERS_PER_ADDRESS * MAX_SIGN_IN_ATTEMPTS_PER_MINUTE // FIELDS_PER_MUTATION
    mutations = repeated(INVALID_TOKENS[mutation])
    assert await anonymous.count_accepted(limit + 1, mutations) == limit
    assert await anonymous.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 1
    assert await failed_sign_ins(servers, anonymous.address) == 1  # the login with a bad email


@pytest.mark.parametrize("reason", WITHOUT_HASH)
async def test_sign_ins_without_a_password_hash_do_not_use_up_the_sign_ins_of_an_address(
    anonymous: AddressedClient, servers: EmbeddedServers, reason: str
) -> None:
    field, guess_count = WITHOUT_HASH[reason]
    times = 2 * USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // FIELDS_PER_MUTATION
    assert await anonymous.count_accepted(times, repeated(field)) == times
    assert await anonymous.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 1
    assert await failed_sign_ins(servers, anonymous.address) == guess_count + 1


async def test_control_sign_ins_with_a_password_hash_use_up_the_sign_ins_of_an_address(
    anonymous: AddressedClient,
) -> None:
    limit = USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // FIELDS_PER_MUTATION
    assert await anonymous.count_accepted(limit + 1, repeated(LOGIN_FIELD)) == limit
    assert await anonymous.count_accepted(1, LOGIN_WITH_BAD_EMAIL) == 0


async def test_an_address_has_a_limited_number_of_attempts_even_without_a_password_hash(
    anonymous: AddressedClient,
) -> None:
    limit = USERS_PER_ADDRESS * MAX_SIGN_IN_ATTEMPTS_PER_MINUTE // FIELDS_PER_MUTATION
    mutations = repeated(WITHOUT_HASH["a short password"][0])
    assert await anonymous.count_accepted(limit + 1, mutations) == limit


async def test_a_token_of_an_ended_session_uses_up_no_limit_of_its_user(
    thief_and_owner: tuple[AddressedClient, AddressedClient],
) -> None:
    thief, owner = thief_and_owner
    limit = WRITES_PER_MINUTE
    assert "errors" not in (await owner.post("mutation { endOtherSessions }")).json()
    # The first request still counts: it is the one that learns that the session has ended.
    await thief.count_accepted(1, CANCEL_UNKNOWN_BOOKING)
    assert await thief.count_accepted(limit, CANCEL_UNKNOWN_BOOKING) == limit
    assert await owner.count_accepted(limit, CANCEL_UNKNOWN_BOOKING) == limit - 1


async def test_a_thief_cannot_use_up_the_limit_for_ending_the_stolen_session(
    thief_and_owner: tuple[AddressedClient, AddressedClient],
) -> None:
    thief, owner = thief_and_owner
    end_sessions = repeated('endSession(id: "x") { __typename }')
    limit = USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // FIELDS_PER_MUTATION
    assert await thief.count_accepted(MAX_SIGN_INS_PER_MINUTE, end_sessions) == limit
    writes = await thief.count_accepted(WRITES_PER_MINUTE + 1, CANCEL_UNKNOWN_BOOKING)
    assert writes == WRITES_PER_MINUTE
    assert await owner.count_accepted(1, "mutation { endOtherSessions }") == 1
