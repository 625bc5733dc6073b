"""`python -m bench.requests`: the CPU time of a request to /graphql without sockets.

The protocol gets the bytes of each request from memory, and its writes are dropped. Requests on 64
connections arrive together. They ask for `{ __typename }` with a session, so the time is that of
reading, checking and responding; MongoDB checks the sessions of a moment with one command.
"""

import asyncio
import json
import os
import time
from typing import Any, cast

from uvicorn.lifespan.on import LifespanOn
from uvicorn.server import ServerState

from bench.comparison.servers import running_servers
from bench.comparison.targets import slotlock_target
from bench.machine import machine_summary
from slotlock.api.app import build_app
from slotlock.api.server.timeouts import TimeoutConfig, TimeoutProtocol
from slotlock.api.settings.settings import read_settings

CONNECTIONS = 64
WARM_UP_ROUNDS, ROUNDS, REPETITIONS = 20, 60, 25
BODY = json.dumps({"query": "query Q { __typename }", "variables": {"id": "x"}}).encode()
EXPECTED_END = b'{"data":{"__typename":"Query"}}'


class MemoryTransport:
    """A transport that stores the latest response."""

    def __init__(self) -> None:
        self.response = b""

    def write(self, data: bytes) -> None:
        """Store a response."""
        self.response = data

    def is_closing(self) -> bool:
        """Return False: it is never closed."""
        return False

    def get_extra_info(self, name: str) -> object:
        """Return the addresses of a connection from this machine."""
        return {"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)}.get(name)


class MemoryConnection:
    """A connection whose client repeats one request."""

    def __init__(self, config: TimeoutConfig, app_state: dict[str, Any], token: str) -> None:
        server_state = ServerState()
        server_state.default_headers = [(b"date", b"Fri, 17 May 2030 14:00:00 GMT")]
        self._protocol = TimeoutProtocol(config, server_state, app_state)
        self._transport = MemoryTransport()
        self._protocol.connection_made(cast("asyncio.Transport", self._transport))
        self._request = (
            b"POST /graphql HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
            % (token.encode(), len(BODY), BODY)
        )

    def send(self) -> None:
        """Let the protocol read the request."""
        self._transport.response = b""
        self._protocol.data_received(self._request)

    @property
    def has_response(self) -> bool:
        """Whether the response was written; raises SystemExit if it is unexpected."""
        response = self._transport.response
        if response and not response.endswith(EXPECTED_END):
            raise SystemExit(f"unexpected response: {response!r}")
        return bool(response)


async def send_all(connections: list[MemoryConnection]) -> None:
    """Send one request on each connection, and wait for all responses."""
    for connection in connections:
        connection.send()
    while not all(connection.has_response for connection in connections):
        await asyncio.sleep(0)


async def measure(tokens: list[str]) -> float:
    """Return the CPU microseconds of a request: the least of the repetitions."""
    app = build_app(read_settings(), development=False)
    config = TimeoutConfig(app, 10, 30, 30, access_log=False, log_config=None, proxy_headers=False)
    config.load()
    lifespan = LifespanOn(config)
    await lifespan.startup()
    connections = [MemoryConnection(config, lifespan.state, token) for token in tokens]
    for _ in range(WARM_UP_ROUNDS):
        await send_all(connections)
    times: list[float] = []
    for _ in range(REPETITIONS):
        start = time.process_time()
        for _ in range(ROUNDS):
            await send_all(connections)
        times.append(time.process_time() - start)
    await lifespan.shutdown()
    return min(times) / ROUNDS / CONNECTIONS * 1e6


def main() -> None:
    """Print the time without and with rate limits."""
    print(machine_summary())
    with running_servers() as servers:
        tokens = slotlock_target.tokens(servers.embedded, CONNECTIONS)
        for name, options in (
            ("rate limits off", slotlock_target.RATE_LIMITS_OFF),
            ("rate limits on", slotlock_target.RATE_LIMITS_ON),
        ):
            os.environ.update(slotlock_target.settings(servers.embedded) | options)
            loop_factory = TimeoutConfig("", 10, 30, 30, log_config=None).get_loop_factory()
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                print(f"{name}: {runner.run(measure(tokens)):.1f} us of CPU a request")


if __name__ == "__main__":
    main()
