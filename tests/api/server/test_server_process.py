"""The events of a socket arrive in order, no signal is lost, and garbage is collected seldom."""

import asyncio
import gc
import signal
import socket
import weakref
from typing import NoReturn

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn._types import ASGIReceiveEvent

from slotlock.api.server.garbage_collection import frozen_objects
from slotlock.api.server.serve import serve
from slotlock.api.server.websockets import EventQueue


def received(text: str) -> ASGIReceiveEvent:
    """Return the event of a text message."""
    return {"type": "websocket.receive", "bytes": None, "text": text}


async def test_events_arrive_in_order_whether_or_not_the_application_waits_for_them() -> None:
    queue = EventQueue()
    queue.put_nowait(received("a"))
    queue.put_nowait(received("b"))
    assert [await queue.get(), await queue.get()] == [received("a"), received("b")]
    assert queue.empty()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put_nowait(received("c"))
    queue.put_nowait(received("d"))
    assert [await waiting, await queue.get()] == [received("c"), received("d")]


async def test_a_cancelled_application_loses_no_event() -> None:
    queue = EventQueue()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    waiting.cancel()
    queue.put_nowait(received("a"))
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await queue.get() == received("a")


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_signal_before_the_server_handles_signals_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = uvicorn.Config(PlainTextResponse("served"), log_config=None)

    def stop_early() -> NoReturn:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was lost")

    monkeypatch.setattr(config, "get_loop_factory", stop_early)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(KeyboardInterrupt):
        serve(config, listener, lambda: None)


class Node:
    """An object that refers to itself, so that only a collection deletes it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_exists_is_not_visited_again_until_the_process_stops() -> None:
    frozen_before = gc.get_freeze_count()
    with frozen_objects():
        assert gc.get_freeze_count() > frozen_before
    assert gc.get_freeze_count() == 0


def test_garbage_of_requests_is_deleted() -> None:
    with frozen_objects():
        garbage = weakref.ref(Node())
        nodes: list[list[int]] = []
        while garbage() is not None:
            nodes.append([len(nodes)])
            # The threshold counts allocations minus deallocations, also those of other objects.
            assert len(nodes) <= 2 * gc.get_threshold()[0]
