"""A request beyond a rate limit gets an error that says when to retry, for every transport."""

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    CANCEL_UNKNOWN_BOOKING,
    READS_PER_MINUTE,
    AddressedClient,
)
from tests.support.clients.client import Json, open_websocket

QUERY = "{ __typename }"
ACCEPT_EVENTS = {"Accept": "text/event-stream, application/json;q=0.5"}


@pytest.fixture
def rate_limited(limited_by_minute: AppProcess, early_in_minute: None) -> AppProcess:
    """Let clients use an app whose windows end."""
    return limited_by_minute


def assert_rate_limited(error: Json) -> None:
    """Check an error that says when to retry."""
    assert error["extensions"]["code"] == "RATE_LIMITED"
    assert 0 < error["extensions"]["retryAfterMs"] <= 120_000


async def test_a_request_beyond_the_limit_gets_429_and_when_to_retry(
    member: AddressedClient,
) -> None:
    await member.count_accepted(READS_PER_MINUTE)
    for accept in ("application/json", "application/graphql-response+json"):
        response = await member.post(QUERY, Accept=accept)
        assert response.status_code == 429
        assert response.headers["content-type"] == accept
        (error,) = response.json()["errors"]
        assert_rate_limited(error)
        seconds = int(response.headers["retry-after"])
        assert 0 <= seconds * 1000 - error["extensions"]["retryAfterMs"] < 1000


async def test_an_event_stream_beyond_the_limit_gets_429_before_it_starts(
    member: AddressedClient,
) -> None:
    await member.count_accepted(READS_PER_MINUTE)
    response = await member.post(QUERY, **ACCEPT_EVENTS)
    assert response.status_code == 429
    assert response.headers["content-type"] == "application/json"
    assert_rate_limited(response.json()["errors"][0])


async def test_an_operation_beyond_the_limit_on_a_socket_gets_an_error_and_the_socket_stays_open(
    rate_limited: AppProcess, member: AddressedClient
) -> None:
    async with open_websocket(rate_limited, member.token, member.address) as opened:
        await member.count_accepted(READS_PER_MINUTE)
        await opened.subscribe("1", QUERY)
        message = await opened.receive()
        assert (message["id"], message["type"]) == ("1", "error")
        assert_rate_limited(message["payload"][0])
        await opened.subscribe("2", CANCEL_UNKNOWN_BOOKING)
        message = await opened.receive()
        assert message["type"] == "next", message
