"""Whoever is gone, silent or deaf is watched for no longer."""

import json
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from redis import Redis

from slotlock.domain.users.user import Role
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.apps.variants.websockets import MISSED_PONG_MESSAGE
from tests.support.clients.client import WATCH_AVAILABILITY, GraphQLTestClient, http_client
from tests.support.clients.raw_connection import (
    initialize_websocket,
    open_tcp_connection,
    read_until,
    read_until_closed,
    reset_connection,
    subscribe_frame,
)
from tests.support.polling import wait_until
from tests.support.stores.users import auth_for_database, sign_in_new_user

SUBSCRIPTIONS_METRIC = "slotlock_subscriptions_active"
NEWS = "subscription { myBookings { action } }"
CHANGE = "mutation($input: UpdateSlotInput!) { updateSlot(input: $input) { __typename } }"
LONG = "{" + " ".join(f"a{n}: title" for n in range(13)) + "}"
MUCH = f"query($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on Slot {LONG} }} }}"


@pytest.fixture
async def organizer(app: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with (
        auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth,
        http_client() as http,
    ):
        yield GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))


def listened_to(app: AppProcess, id_: str) -> int:
    """How many channels the app listens to on behalf of those who watch this."""
    with Redis.from_url(app.environment["SLOTLOCK_REDIS_URL"]) as redis:
        return len(redis.pubsub_channels(f"*{id_.rpartition('_')[2]}*"))


def over_websocket(peer: socket.socket, token: str, slot: str) -> None:
    """Watch a slot and one's own bookings."""
    initialize_websocket(peer, token)
    peer.sendall(
        subscribe_frame("news", NEWS) + subscribe_frame("slot", WATCH_AVAILABILITY, slots=[slot])
    )
    read_until(peer, b'"remaining"')


def over_events(peer: socket.socket, token: str, slot: str) -> None:
    """Watch a slot."""
    body = json.dumps({"query": WATCH_AVAILABILITY, "variables": {"slots": [slot]}}).encode()
    head = (
        "POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nAccept: text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    peer.sendall(head.encode() + body)
    read_until(peer, b'"remaining"')


def kill(peer: socket.socket) -> None:
    """Let a process that holds the connection die by SIGKILL."""
    process = subprocess.Popen(["sleep", "60"], pass_fds=[peer.fileno()])
    peer.close()
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("end", [reset_connection, kill])
@pytest.mark.parametrize(("begin", "watches"), [(over_websocket, 2), (over_events, 1)])
async def test_nothing_is_left_of_a_client_that_ends_abruptly(
    app: AppProcess,
    organizer: GraphQLTestClient,
    begin: Callable[[socket.socket, str, str], None],
    watches: int,
    end: Callable[[socket.socket], None],
) -> None:
    slot = (await organizer.create_slot())["id"]
    me = (await organizer.execute("{ me { id } }"))["id"]
    assert organizer.token
    with ExitStack() as opened:
        peers = [opened.enter_context(open_tcp_connection(app)) for _ in range(5)]
        for peer in peers:
            begin(peer, organizer.token, slot)
        wait_until(lambda: app.metric(SUBSCRIPTIONS_METRIC) == 5 * watches, "all watch")
        assert listened_to(app, slot) == 1
        for peer in peers:
            end(peer)
        wait_until(lambda: app.metric(SUBSCRIPTIONS_METRIC) == 0, "the subscriptions ended")
        wait_until(lambda: listened_to(app, slot) + listened_to(app, me) == 0, "nobody listens")


async def test_nothing_is_left_of_one_that_had_asked_for_more_once_there_is_news(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    slot = (await organizer.create_slot())["id"]
    assert organizer.token
    with open_tcp_connection(app) as peer:
        over_events(peer, organizer.token, slot)
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: slotlock\r\n\r\n")
        wait_until(lambda: app.metric(SUBSCRIPTIONS_METRIC) == 1, "it watches")
        reset_connection(peer)
    for capacity in range(50, 100):
        change = {"slotId": slot, "capacity": capacity}
        await organizer.execute(CHANGE, input=change)
        if app.metric(SUBSCRIPTIONS_METRIC) == 0:
            return
    pytest.fail("it is watched for on and on")


async def test_a_client_that_answers_no_ping_is_cut(
    app: AppProcess, organizer: GraphQLTestClient, log_dir: Path
) -> None:
    slot = (await organizer.create_slot())["id"]
    with (
        app_variant(app.environment, log_dir, without_guards="pings") as pinging,
        open_tcp_connection(pinging) as silent,
    ):
        assert organizer.token
        over_websocket(silent, organizer.token, slot)
        assert b"keepalive" in read_until_closed(silent)
        wait_until(lambda: pinging.metric(SUBSCRIPTIONS_METRIC) == 0, "the subscriptions ended")


@pytest.mark.parametrize("guard", ["", " unresponsive-peers"])
async def test_a_client_that_reads_nothing_is_cut_too(
    app: AppProcess, organizer: GraphQLTestClient, log_dir: Path, guard: str
) -> None:
    slot = (await organizer.create_slot(title="\N{SLOT MACHINE}" * 200))["id"]
    off = "pings" + guard
    with (
        app_variant(app.environment, log_dir, without_guards=off) as pinging,
        open_tcp_connection(pinging, 4096) as deaf,
    ):
        assert organizer.token
        over_websocket(deaf, organizer.token, slot)
        for number in range(8):  # a megabyte each: more than the kernel keeps for us
            deaf.sendall(subscribe_frame(str(number), MUCH, ids=[slot] * 100))
        if guard:
            wait_until(lambda: MISSED_PONG_MESSAGE in pinging.log, "a pong was missed")
            for _ in range(50):
                assert pinging.metric(SUBSCRIPTIONS_METRIC) > 0
        else:
            wait_until(lambda: pinging.metric(SUBSCRIPTIONS_METRIC) == 0, "the subscriptions ended")
