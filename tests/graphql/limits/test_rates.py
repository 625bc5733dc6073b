"""Rate limits by user and by address, for every transport, and when to retry."""

import secrets
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import UserId
from slotlock.graphql.core.errors import RateLimitedError
from slotlock.graphql.limits import operation_rates
from slotlock.graphql.limits.operation_rates import (
    DOCUMENT_DEPOSIT_MS,
    MAX_SIGN_INS_PER_MINUTE,
    OperationRateLimits,
)
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.rate_limits import RateLimiter
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    CANCEL_UNKNOWN_BOOKING,
    ENDLESS_WINDOWS,
    LOGIN_WITH_BAD_EMAIL,
    READS_PER_MINUTE,
    USERS_PER_ADDRESS,
    WRITES_PER_MINUTE,
    AddressedClient,
    client_at_new_address,
    exceed_address_rate,
    rate_limited_app,
)
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import WATCH_AVAILABILITY, Json, open_websocket
from tests.support.clients.series import create_series
from tests.support.stores.users import create_user_tokens

QUERY = "{ __typename }"
TEN_FIELDS = "{" + " ".join(f"a{n}: __typename" for n in range(10)) + "}"
TEN_FIELDS_IN_FRAGMENTS = """{ ...Four ...Four ... on Query { ...Two } }
fragment Four on Query { ...Two ...Two }
fragment Two on Query { a: __typename b: __typename }"""
READS_PER_ADDRESS = USERS_PER_ADDRESS * READS_PER_MINUTE
SIGN_INS_PER_ADDRESS = USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE
UNCHECKED_METRIC = "slotlock_rate_limit_unchecked_total"
ACCEPT_EVENTS = {"Accept": "text/event-stream, application/json;q=0.5"}


def error_code(response: httpx.Response) -> str:
    """Return the code of the first error."""
    return str(response.json()["errors"][0]["extensions"]["code"])


async def test_a_user_has_one_limit_of_reads_at_all_addresses_together(
    caller: AddressedClient, http: httpx.AsyncClient
) -> None:
    elsewhere = AddressedClient(http, caller.url, caller.token)
    elsewhere.address = "198.51.100.250"
    half = READS_PER_MINUTE // 2
    assert await caller.count_accepted(half) == half
    assert await elsewhere.count_accepted(READS_PER_MINUTE) == READS_PER_MINUTE - half


@pytest.mark.parametrize("query", [TEN_FIELDS, TEN_FIELDS_IN_FRAGMENTS])
async def test_each_root_field_of_an_operation_counts(caller: AddressedClient, query: str) -> None:
    assert await caller.count_accepted(READS_PER_MINUTE, query) == READS_PER_MINUTE // 10


async def test_each_qr_code_counts_as_a_read_once_however_many_aliases_show_it(
    caller: AddressedClient, http: httpx.AsyncClient, rate_limited: AppProcess
) -> None:
    tokens = create_user_tokens(rate_limited.environment, 0)
    organizer = client_at_new_address(http, rate_limited, tokens.organizer)
    for title in ("Pottery", "Pottery", "Yoga"):
        await caller.book((await organizer.create_slot(title=title))["id"])
    aliases = " ".join(f"a{n}: checkInQr" for n in range(15))
    nodes = (await caller.execute(f"{{ myBookings {{ nodes {{ {aliases} }} }} }}"))["nodes"]
    assert [len(set(node.values())) for node in nodes] == [1] * 3
    left = READS_PER_MINUTE - 1 - 3
    assert await caller.count_accepted(left - 1) == left - 1
    beyond = await caller.send("{ myBookings(first: 1) { nodes { checkInQr } } }")
    assert beyond["data"]["myBookings"]["nodes"] == [{"checkInQr": None}]
    assert beyond["errors"][0]["extensions"]["code"] == "RATE_LIMITED"


async def test_each_ten_slots_of_a_subscription_count_as_a_read(
    caller: AddressedClient, rate_limited: AppProcess
) -> None:
    # The slots are charged before they are looked up.
    unknown = ["slot_" + "0" * 24] * 2 * 10
    async with open_websocket(rate_limited, caller.token, caller.address) as opened:
        for number in range(READS_PER_MINUTE // 2 + 1):
            await opened.subscribe(str(number), WATCH_AVAILABILITY, slots=unknown)
            message = await opened.receive()
            code = message["payload"][0]["extensions"]["code"]
            is_within = number < READS_PER_MINUTE // 2
            assert code == ("BAD_USER_INPUT" if is_within else "RATE_LIMITED")


async def test_each_ten_slots_of_a_watched_campaign_count_as_a_read(
    caller: AddressedClient, http: httpx.AsyncClient, rate_limited: AppProcess
) -> None:
    tokens = create_user_tokens(rate_limited.environment, 0)
    organizer = client_at_new_address(http, rate_limited, tokens.organizer)
    campaign = await create_campaign(organizer)
    await create_series(organizer, "FREQ=WEEKLY;COUNT=20", campaignId=campaign)
    used = READS_PER_MINUTE - 3
    assert await caller.count_accepted(used) == used
    watch = "subscription($c: ID!) { campaignAvailability(campaignId: $c) { version } }"
    async with open_websocket(rate_limited, caller.token, caller.address) as opened:
        await opened.subscribe("1", watch, c=campaign)
        assert [(await opened.receive())["type"] for _ in range(20)] == ["next"] * 20
        await opened.subscribe("2", watch, c=campaign)
        refused = await opened.receive()
    assert refused["payload"][0]["extensions"]["code"] == "RATE_LIMITED"


async def test_reads_and_writes_have_separate_limits(caller: AddressedClient) -> None:
    assert await caller.count_accepted(READS_PER_MINUTE + 5) == READS_PER_MINUTE
    accepted = await caller.count_accepted(WRITES_PER_MINUTE + 5, CANCEL_UNKNOWN_BOOKING)
    assert accepted == WRITES_PER_MINUTE


async def test_an_address_has_the_limits_of_several_users(stranger: AddressedClient) -> None:
    assert await stranger.count_accepted(READS_PER_ADDRESS + 5) == READS_PER_ADDRESS
    stranger.token = "not a token"
    assert (await stranger.post(QUERY)).status_code == 429


def test_control_addresses_a_trusted_proxy_names_are_separate(rate_limited: AppProcess) -> None:
    by_proxy = {"X-Forwarded-For": "10.1.1.7, 203.0.113.*"}
    assert set(exceed_address_rate(rate_limited.url, by_proxy)) == {200}
    # The client itself sent the entries before the address that the proxy added.
    by_client = {"X-Forwarded-For": "192.0.2.*, 203.0.113.250"}
    assert exceed_address_rate(rate_limited.url, by_client)[-1] == 429


async def test_a_user_beyond_their_limit_uses_up_no_more_of_their_address(
    rate_limited: AppProcess, caller: AddressedClient, http: httpx.AsyncClient
) -> None:
    await caller.count_accepted(READS_PER_ADDRESS)
    neighbor = AddressedClient(http, rate_limited.url)
    neighbor.address = caller.address
    assert await neighbor.count_accepted(1) == 1


async def test_a_request_beyond_the_limit_is_counted_by_its_code(
    rate_limited: AppProcess, caller: AddressedClient
) -> None:
    await caller.count_accepted(READS_PER_MINUTE, "{ me { id } }")
    assert (await caller.post("{ me { id } }")).status_code == 429
    series = 'slotlock_requests_total{operation="me",outcome="RATE_LIMITED"}'
    assert rate_limited.metric(series) >= 1


async def test_aliases_do_not_circumvent_the_login_throttle(stranger: AddressedClient) -> None:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    guess = f'login(input: {{email: "{email}", password: "wrong"}}) {{ __typename }}'
    guesses = " ".join(f"a{n}: {guess}" for n in range(15))
    response = await stranger.post("mutation {" + guesses + "}")
    outcomes = [each["__typename"] for each in response.json()["data"].values()]
    assert outcomes == ["InvalidCredentials"] * 10 + ["TooManyAttempts"] * 5


@pytest.fixture
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    with restartable_server(tmp_path_factory.mktemp("valkey") / "own", "valkey") as running:
        yield running


@pytest.fixture
def app_without_redis(
    servers: EmbeddedServers, valkey: RestartableServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app with rate limits whose Redis was killed."""
    own = replace(servers, redis_url=valkey.url)
    directory = tmp_path_factory.mktemp("without_redis")
    with rate_limited_app(own, "without_redis", directory, **ENDLESS_WINDOWS) as app:
        valkey.kill()
        yield app


async def test_without_redis_only_sign_ins_are_limited_by_each_process(
    app_without_redis: AppProcess, http: httpx.AsyncClient
) -> None:
    client = client_at_new_address(http, app_without_redis)
    reads = READS_PER_ADDRESS + 5
    assert await client.count_accepted(reads) == reads
    assert app_without_redis.metric(UNCHECKED_METRIC) >= READS_PER_ADDRESS
    short_password = '{name: "A", email: "a@b.example", password: "short"}'
    registrations = SIGN_INS_PER_ADDRESS + 1
    register = f"mutation {{ register(input: {short_password}) {{ __typename }} }}"
    assert await client.count_accepted(registrations, register) == registrations
    login = LOGIN_WITH_BAD_EMAIL.removeprefix("mutation {").removesuffix("}")
    logins = "mutation {" + " ".join(f"a{n}: {login}" for n in range(15)) + "}"
    unchecked_before = app_without_redis.metric(UNCHECKED_METRIC)
    responses = [await client.post(logins) for _ in range(SIGN_INS_PER_ADDRESS // 15 + 1)]
    statuses = [response.status_code for response in responses]
    assert statuses == [200] * (len(responses) - 1) + [429]
    assert app_without_redis.metric(UNCHECKED_METRIC) == unchecked_before


async def test_new_documents_are_limited_by_the_time_that_they_take(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation_rates, "MAX_DOCUMENT_MS_PER_MINUTE", DOCUMENT_DEPOSIT_MS + 20)
    pipeline = AutoPipeline(redis_client(servers.redis_url))
    limits = OperationRateLimits(RateLimiter(pipeline), 20, 15, 2)
    accepted = 0
    while accepted < 30 and not is_limited(limits, UserId("sender")):
        accepted += 1
    assert 1 <= accepted <= 21  # each one takes a part of a millisecond, and counts at least 1
    assert not is_limited(limits, UserId("other"))
    await pipeline.close()


def is_limited(limits: OperationRateLimits, user_id: UserId) -> bool:
    """Return whether a user may not send another document; charge it otherwise."""
    try:
        with limits.document_charge(user_id):
            return False
    except RateLimitedError:
        return True


@pytest.fixture
def rate_limited(limited_by_minute: AppProcess, early_in_minute: None) -> AppProcess:
    """Let clients use an app whose windows end."""
    return limited_by_minute


def assert_rate_limited(error: Json) -> None:
    """Check an error that says when to retry."""
    assert error["extensions"]["code"] == "RATE_LIMITED"
    assert 0 < error["extensions"]["retryAfterMs"] <= 120_000


async def test_a_request_too_many_gets_429_and_when_to_retry(caller: AddressedClient) -> None:
    await caller.count_accepted(READS_PER_MINUTE)
    for accept in ("application/json", "application/graphql-response+json"):
        response = await caller.post(QUERY, Accept=accept)
        assert response.status_code == 429
        assert response.headers["content-type"] == accept
        (error,) = response.json()["errors"]
        assert_rate_limited(error)
        seconds = int(response.headers["retry-after"])
        assert 0 <= seconds * 1000 - error["extensions"]["retryAfterMs"] < 1000


async def test_an_event_stream_too_many_gets_429_at_once(caller: AddressedClient) -> None:
    await caller.count_accepted(READS_PER_MINUTE)
    response = await caller.post(QUERY, **ACCEPT_EVENTS)
    assert response.status_code == 429
    assert response.headers["content-type"] == "application/json"
    assert_rate_limited(response.json()["errors"][0])


async def test_an_operation_beyond_the_limit_on_a_socket_gets_an_error_and_the_socket_stays_open(
    rate_limited: AppProcess, caller: AddressedClient
) -> None:
    async with open_websocket(rate_limited, caller.token, caller.address) as opened:
        await caller.count_accepted(READS_PER_MINUTE)
        await opened.subscribe("1", QUERY)
        message = await opened.receive()
        assert (message["id"], message["type"]) == ("1", "error")
        assert_rate_limited(message["payload"][0])
        await opened.subscribe("2", CANCEL_UNKNOWN_BOOKING)
        message = await opened.receive()
        assert message["type"] == "next", message
