"""Subscriptions of clients that disconnect or stop responding end."""

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from redis import Redis

from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.apps.variants.websockets import MISSED_PONG_MESSAGE
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import WATCH_AVAILABILITY
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import (
    initialize_websocket,
    open_tcp_connection,
    read_until,
    read_until_closed,
    reset_connection,
    subscribe_frame,
)

SUBSCRIPTIONS_METRIC = "slotlock_subscriptions_active"
WATCH_BOOKINGS = "subscription { myBookings { action } }"
UPDATE_SLOT = "mutation($input: UpdateSlotInput!) { updateSlot(input: $input) { __typename } }"
TITLES = "{" + " ".join(f"a{n}: title" for n in range(13)) + "}"
LARGE_QUERY = f"query($ids: [ID!]!) {{ nodes(ids: $ids) {{ ... on Slot {TITLES} }} }}"
SUBSCRIPTIONS_METRIC = "slotlock_subscriptions_active"


def active_subscriptions(app: AppProcess) -> float:
    """Return how many subscriptions are open in the app."""
    return app.metric(SUBSCRIPTIONS_METRIC)


def redis_channel_count(app: AppProcess, global_id: str) -> int:
    """Return to how many channels about a slot or a user the app is subscribed."""
    with Redis.from_url(app.environment["SLOTLOCK_REDIS_URL"]) as redis:
        return len(redis.pubsub_channels(f"*{global_id.rpartition('_')[2]}*"))


def subscribe_over_websocket(peer: socket.socket, token: str, slot_id: str) -> None:
    """Subscribe to a slot and to the user's bookings."""
    initialize_websocket(peer, token)
    peer.sendall(
        subscribe_frame("bookings", WATCH_BOOKINGS)
        + subscribe_frame("slot", WATCH_AVAILABILITY, slots=[slot_id])
    )
    read_until(peer, b'"remaining"')


def subscribe_over_sse(peer: socket.socket, token: str, slot_id: str) -> None:
    """Subscribe to a slot."""
    body = json.dumps({"query": WATCH_AVAILABILITY, "variables": {"slots": [slot_id]}}).encode()
    header = (
        "POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nAccept: text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    peer.sendall(header.encode() + body)
    read_until(peer, b'"remaining"')


def kill_holder(peer: socket.socket) -> None:
    """Let a process that holds the connection die by SIGKILL."""
    process = subprocess.Popen(["sleep", "60"], pass_fds=[peer.fileno()])
    peer.close()
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("end", [reset_connection, kill_holder])
@pytest.mark.parametrize(
    ("subscribe", "subscriptions_per_peer"),
    [(subscribe_over_websocket, 2), (subscribe_over_sse, 1)],
)
async def test_the_subscriptions_of_a_client_that_ends_abruptly_end(
    app: AppProcess,
    organizer: BookingClient,
    subscribe: Callable[[socket.socket, str, str], None],
    subscriptions_per_peer: int,
    end: Callable[[socket.socket], None],
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    user_id = (await organizer.execute("{ me { id } }"))["id"]
    assert organizer.token
    with ExitStack() as stack:
        peers = [stack.enter_context(open_tcp_connection(app)) for _ in range(5)]
        for peer in peers:
            subscribe(peer, organizer.token, slot_id)
        wait_until(
            lambda: active_subscriptions(app) == 5 * subscriptions_per_peer, "all are subscribed"
        )
        wait_until(lambda: redis_channel_count(app, slot_id) == 1, "the app listens to the slot")
        for peer in peers:
            end(peer)
        wait_until(lambda: active_subscriptions(app) == 0, "the subscriptions have ended")
        wait_until(
            lambda: redis_channel_count(app, slot_id) + redis_channel_count(app, user_id) == 0,
            "the app has left the channels",
        )


async def test_an_event_stream_with_a_pipelined_request_ends_at_the_next_event(
    app: AppProcess, organizer: BookingClient
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    assert organizer.token
    with open_tcp_connection(app) as peer:
        subscribe_over_sse(peer, organizer.token, slot_id)
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: slotlock\r\n\r\n")
        wait_until(lambda: active_subscriptions(app) == 1, "it is subscribed")
        reset_connection(peer)
    for capacity in range(50, 100):
        await organizer.execute(UPDATE_SLOT, input={"slotId": slot_id, "capacity": capacity})
        if active_subscriptions(app) == 0:
            return
    pytest.fail("the subscription does not end")


async def test_a_client_that_answers_no_ping_is_disconnected(
    app: AppProcess, organizer: BookingClient, log_dir: Path
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    assert organizer.token
    with (
        app_variant(app.environment, log_dir, without_guards="pings") as pinging_app,
        open_tcp_connection(pinging_app) as silent_peer,
    ):
        subscribe_over_websocket(silent_peer, organizer.token, slot_id)
        assert b"keepalive" in read_until_closed(silent_peer)
        wait_until(lambda: active_subscriptions(pinging_app) == 0, "the subscriptions have ended")


@contextmanager
def unresponsive_peer(
    app: AppProcess, log_dir: Path, token: str, slot_id: str, without_guards: str
) -> Iterator[AppProcess]:
    """Start an app that pings often, with a peer that subscribes and reads no large result."""
    with (
        app_variant(app.environment, log_dir, without_guards=without_guards) as pinging_app,
        open_tcp_connection(pinging_app, 4096) as peer,
    ):
        subscribe_over_websocket(peer, token, slot_id)
        for number in range(8):  # each result has a megabyte: more than the kernel buffers
            peer.sendall(subscribe_frame(str(number), LARGE_QUERY, ids=[slot_id] * 100))
        yield pinging_app


async def test_a_client_that_reads_nothing_is_disconnected(
    app: AppProcess, organizer: BookingClient, log_dir: Path
) -> None:
    slot_id = (await organizer.create_slot(title="\N{SLOT MACHINE}" * 200))["id"]
    assert organizer.token
    with unresponsive_peer(app, log_dir, organizer.token, slot_id, "pings") as pinging_app:
        wait_until(lambda: active_subscriptions(pinging_app) == 0, "the subscriptions have ended")


async def test_control_without_the_guard_a_client_that_reads_nothing_stays_connected(
    app: AppProcess, organizer: BookingClient, log_dir: Path
) -> None:
    slot_id = (await organizer.create_slot(title="\N{SLOT MACHINE}" * 200))["id"]
    assert organizer.token
    guards = "pings unresponsive-peers"
    with unresponsive_peer(app, log_dir, organizer.token, slot_id, guards) as pinging_app:
        wait_until(lambda: MISSED_PONG_MESSAGE in pinging_app.log, "a pong was missed")
        for _ in range(50):
            assert active_subscriptions(pinging_app) > 0
