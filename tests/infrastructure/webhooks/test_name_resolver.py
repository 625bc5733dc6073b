"""A name server that hangs delays the look-ups of its own names only."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiohttp import ThreadedResolver

from slotlock.infrastructure.tasks import cancel_and_wait
from slotlock.infrastructure.webhooks.webhook_client import open_webhook_client
from tests.support.notifications.webhook_scene import Receiver, open_receiver
from tests.support.polling import eventually

HANGING = "hangs.test"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Yield a receiver on this host."""
    async with open_receiver() as opened:
        yield opened


@pytest.fixture
async def executor() -> ThreadPoolExecutor:
    """Let the loop have one thread, as it has few on a small machine."""
    threads = ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(threads)
    return threads


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_name_that_is_never_resolved_delays_no_other(
    is_guarded: bool,
    receiver: Receiver,
    executor: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, is_over = threading.Event(), threading.Event()
    getaddrinfo = socket.getaddrinfo

    def hang(host: str, *args: int) -> object:
        if host != HANGING:
            return getaddrinfo(host, *args)
        asked.set()
        is_over.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    url = receiver.url.replace("127.0.0.1", "localhost")
    resolver = None if is_guarded else ThreadedResolver()
    async with open_webhook_client(allow_private=True, resolver=resolver) as client:
        hanging = asyncio.create_task(client.post(f"http://{HANGING}/", b"{}", {}))
        await eventually(asked.is_set, "the name server was asked")
        other = asyncio.create_task(client.post(url, b"{}", {}))
        if is_guarded:
            assert (await other).is_success
        else:
            await eventually(lambda: executor._work_queue.qsize() == 1, "the other one waits")
        assert not hanging.done()
        is_over.set()
        await cancel_and_wait(hanging)
        assert (await other).is_success
