"""Rates are limited by person and by address, whichever way an operation comes."""

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.limits.rates import MAX_DOCUMENT_KB_PER_ADDRESS, MAX_SIGN_INS_PER_MINUTE
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    CANCEL_UNKNOWN_BOOKING,
    LOGIN_WITH_BAD_EMAIL,
    READS_PER_MINUTE,
    USERS_PER_ADDRESS,
    WRITES_PER_MINUTE,
    AddressedClient,
    client_at_new_address,
    exceed_address_rate,
    next_address,
    rate_limited_app,
    wait_for_early_minute,
)
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.client import Json, http_client, open_websocket

ONE = "{ __typename }"
TEN = "{" + " ".join(f"a{n}: __typename" for n in range(10)) + "}"
IN_FRAGMENTS = """{ ...Four ...Four ... on Query { ...Two } }
fragment Four on Query { ...Two ...Two }
fragment Two on Query { a: __typename b: __typename }"""
EVENTS = {"Accept": "text/event-stream, application/json;q=0.5"}

pytestmark = pytest.mark.usefixtures("early_in_minute")


def assert_limited(error: Json) -> None:
    """It is told when to ask again."""
    assert error["extensions"]["code"] == "RATE_LIMITED"
    assert 0 < error["extensions"]["retryAfterMs"] <= 120_000


async def test_a_person_reads_so_much_a_minute_wherever_they_are(
    member: AddressedClient, http: httpx.AsyncClient
) -> None:
    elsewhere = AddressedClient(http, member.url, member.token)
    elsewhere.address = "198.51.100.250"
    assert await member.count_accepted(READS_PER_MINUTE // 2) == READS_PER_MINUTE // 2
    assert (
        await elsewhere.count_accepted(READS_PER_MINUTE) == READS_PER_MINUTE - READS_PER_MINUTE // 2
    )


async def test_who_is_refused_is_told_when_to_come_back(member: AddressedClient) -> None:
    await member.count_accepted(READS_PER_MINUTE)
    for accept in ("application/json", "application/graphql-response+json"):
        refused = await member.post(ONE, Accept=accept)
        assert refused.status_code == 429
        assert refused.headers["content-type"] == accept
        (error,) = refused.json()["errors"]
        assert_limited(error)
        seconds = int(refused.headers["retry-after"])
        assert 0 <= seconds * 1000 - error["extensions"]["retryAfterMs"] < 1000


async def test_an_event_stream_is_refused_before_it_begins(member: AddressedClient) -> None:
    await member.count_accepted(READS_PER_MINUTE)
    refused = await member.post(ONE, **EVENTS)
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/json"
    assert_limited(refused.json()["errors"][0])


async def test_on_a_socket_the_operation_is_refused_and_the_socket_stays(
    rate_limited: AppProcess, member: AddressedClient
) -> None:
    async with open_websocket(rate_limited, member.token) as opened:
        await member.count_accepted(READS_PER_MINUTE)
        await opened.subscribe("1", ONE)
        refused = await opened.receive()
        assert (refused["id"], refused["type"]) == ("1", "error")
        assert_limited(refused["payload"][0])
        await opened.subscribe("2", CANCEL_UNKNOWN_BOOKING)
        assert (await opened.receive())["type"] == "next"


@pytest.mark.parametrize("query", [TEN, IN_FRAGMENTS])
async def test_what_an_operation_asks_for_ten_times_counts_ten(
    member: AddressedClient, query: str
) -> None:
    assert await member.count_accepted(READS_PER_MINUTE, query) == READS_PER_MINUTE // 10


async def test_kinds_are_counted_apart(member: AddressedClient) -> None:
    assert await member.count_accepted(READS_PER_MINUTE + 5) == READS_PER_MINUTE
    assert (
        await member.count_accepted(WRITES_PER_MINUTE + 5, CANCEL_UNKNOWN_BOOKING)
        == WRITES_PER_MINUTE
    )


async def test_an_address_has_the_rates_of_so_many_people_whoever_they_are(
    anonymous: AddressedClient,
) -> None:
    assert (
        await anonymous.count_accepted(USERS_PER_ADDRESS * READS_PER_MINUTE + 5)
        == USERS_PER_ADDRESS * READS_PER_MINUTE
    )
    anonymous.token = "not a token"
    assert (await anonymous.post(ONE)).status_code == 429


def test_control_a_trusted_proxy_is_believed(rate_limited: AppProcess) -> None:
    assert set(
        exceed_address_rate(rate_limited.url, {"X-Forwarded-For": "10.1.1.7, 203.0.113.*"})
    ) == {200}
    # What stands in front of the address that the proxy saw was sent by its client.
    assert (
        exceed_address_rate(rate_limited.url, {"X-Forwarded-For": "192.0.2.*, 203.0.113.250"})[-1]
        == 429
    )


async def test_one_who_asks_too_much_leaves_their_neighbours_room(
    rate_limited: AppProcess, member: AddressedClient, http: httpx.AsyncClient
) -> None:
    await member.count_accepted(READS_PER_MINUTE * USERS_PER_ADDRESS)
    neighbour = AddressedClient(http, rate_limited.url)
    neighbour.address = member.address
    assert await neighbour.count_accepted(1) == 1


async def test_a_refusal_is_counted_by_its_code(
    rate_limited: AppProcess, member: AddressedClient
) -> None:
    await member.count_accepted(READS_PER_MINUTE, "{ me { id } }")
    assert (await member.post("{ me { id } }")).status_code == 429
    text = (await member.http.get(rate_limited.url + "/metrics")).text
    assert 'slotlock_requests_total{operation="me",outcome="RATE_LIMITED"}' in text


async def test_aliases_are_no_way_round_the_throttle(anonymous: AddressedClient) -> None:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    guess = f'login(input: {{email: "{email}", password: "wrong"}}) {{ __typename }}'
    answer = await anonymous.post(
        "mutation {" + " ".join(f"a{n}: {guess}" for n in range(15)) + "}"
    )
    outcomes = [each["__typename"] for each in answer.json()["data"].values()]
    assert outcomes == ["InvalidCredentials"] * 10 + ["TooManyAttempts"] * 5


@pytest.fixture
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    with restartable_server(tmp_path_factory.mktemp("valkey") / "own", "valkey") as running:
        yield running


@pytest.fixture
async def lonely(
    servers: EmbeddedServers, valkey: RestartableServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AddressedClient]:
    """Somebody at an app whose Redis was killed."""
    own = replace(servers, redis_url=valkey.url)
    with rate_limited_app(own, "lonely", tmp_path_factory.mktemp("lonely")) as app:
        valkey.kill()
        async with http_client() as http:
            yield client_at_new_address(http, app)


def unchecked(metrics: httpx.Response) -> float:
    """How often a rate was not looked at."""
    name = "\nslotlock_rate_limit_unchecked_total "
    return float(metrics.text.partition(name)[2].split()[0])


async def test_without_redis_all_may_read_and_sign_ins_are_counted_by_the_process(
    lonely: AddressedClient,
) -> None:
    assert (
        await lonely.count_accepted(USERS_PER_ADDRESS * READS_PER_MINUTE + 5)
        == USERS_PER_ADDRESS * READS_PER_MINUTE + 5
    )
    assert (
        unchecked(await lonely.http.get(lonely.url + "/metrics"))
        >= USERS_PER_ADDRESS * READS_PER_MINUTE
    )
    short = 'register(input: {name: "A", email: "a@b.example", password: "short"}) { __typename }'
    more = USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE + 1
    assert await lonely.count_accepted(more, f"mutation {{ {short} }}") == more
    many = "mutation {" + " ".join(f"a{n}: {LOGIN_WITH_BAD_EMAIL[11:-1]}" for n in range(15)) + "}"
    answers: list[Any] = [await lonely.post(many)]  # whose text nobody counted
    before = unchecked(await lonely.http.get(lonely.url + "/metrics"))
    answers += [
        await lonely.post(many) for _ in range(USERS_PER_ADDRESS * MAX_SIGN_INS_PER_MINUTE // 15)
    ]
    assert [answer.status_code for answer in answers[:-1]] == [200] * (len(answers) - 1)
    assert answers[-1].status_code == 429
    assert unchecked(await lonely.http.get(lonely.url + "/metrics")) == before


async def test_documents_that_were_not_seen_lately_are_counted_by_their_length(
    rate_limited: AppProcess,
) -> None:
    wait_for_early_minute(20)  # it takes longer than others
    async with http_client() as http:
        anonymous = AddressedClient(http, rate_limited.url)
        anonymous.address = next_address()
        large = [
            f"{{ nothing{n} }} #".ljust(19_999) for n in range(MAX_DOCUMENT_KB_PER_ADDRESS // 20)
        ]
        for text in large:
            assert (await anonymous.post(text)).json()["errors"][0]["extensions"]["code"] in (
                "GRAPHQL_VALIDATION_FAILED"
            )
        refused = await anonymous.post("{ nothing }")
        assert refused.status_code == 429
        assert refused.json()["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
        # Both are remembered: what is known costs nothing, whether it is good or not.
        assert (await anonymous.post(large[-1])).status_code == 200
        assert (await anonymous.post(ONE)).status_code == 200
