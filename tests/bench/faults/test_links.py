"""A link can be disturbed for one process alone, although all share one address."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from bench.faults.topology.links import LOST, REFUSED, Links, LinkState

CLIENT = """
import socket, sys
for line in sys.stdin:
    try:
        with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=4) as server:
            server.sendall(b"ping")
            print("answered" if server.recv(4) else "reset", flush=True)
    except TimeoutError:
        print("silent", flush=True)
    except OSError:
        print("reset", flush=True)
"""


class Client:
    """A process that connects to the port whenever it is asked to."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def connect(self) -> str:
        """Return `answered`, `silent` or `reset`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"go\n")
        return (await self._process.stdout.readline()).decode().strip()


@pytest.fixture
async def links() -> AsyncIterator[Links]:
    links = Links()
    await links.start()
    yield links
    await links.stop()


@pytest.fixture
async def clients(links: Links) -> AsyncIterator[dict[str, Client]]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(4))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = await links.open_port("server", server.sockets[0].getsockname()[1])
    processes = {}
    for name in ("one", "other"):
        processes[name] = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            CLIENT,
            str(port),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        await links.name_process(processes[name].pid, name)
    yield {name: Client(process) for name, process in processes.items()}
    for process in processes.values():
        process.kill()
        await process.wait()
    server.close()


@pytest.mark.parametrize(("state", "answer"), [(LOST, "silent"), (REFUSED, "reset")])
async def test_a_cut_link_separates_only_its_own_process(
    links: Links, clients: dict[str, Client], state: LinkState, answer: str
) -> None:
    await links.separate(["one"], ["server"], state)

    assert await clients["one"].connect() == answer
    assert await clients["other"].connect() == "answered"


async def test_a_healed_link_passes_everything_again(
    links: Links, clients: dict[str, Client]
) -> None:
    await links.separate(["one"], ["server"], REFUSED)
    assert await clients["one"].connect() == "reset"

    await links.heal()

    assert await clients["one"].connect() == "answered"
