"""What uvicorn needs of a queue and of an event, without what it does not need."""

import asyncio

import pytest
from uvicorn._types import ASGIReceiveEvent

from slotlock.api.server.connection_state import EventQueue, Gate


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


async def test_a_gate_is_open_until_it_is_closed_and_then_lets_all_pass_at_once() -> None:
    gate = Gate()
    async with asyncio.timeout(1):
        await gate.wait()
    gate.clear()
    gate.clear()
    senders = [asyncio.create_task(gate.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not gate.is_set()
    assert not any(sender.done() for sender in senders)
    gate.set()
    gate.set()
    async with asyncio.timeout(1):
        await asyncio.gather(*senders)
    assert gate.is_set()
