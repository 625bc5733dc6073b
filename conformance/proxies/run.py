"""The checks of one proxy in front of two processes."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect

from bench.app_process import free_port
from conformance.apps import (
    ADMIN_EMAIL,
    ADMIN_PASSWORD,
    PRODUCTION,
    SECRET,
    ConformanceApp,
    database_url,
)
from conformance.clients.scenario import BOOK, CREATE, SIGN_IN, WATCH
from conformance.proxies.packages import find_proxy
from conformance.proxies.process import running_proxy
from conformance.table import Row
from slotlock.devserver.embedded import EmbeddedServers

PROXIES = ("caddy", "nginx")
# An address may send so many queries in a minute.
READS = 60
EVENT_TIMEOUT_S = 30.0
RESTART_CLIENTS, RESTART_REQUESTS = 20, 40
QUERY = "{ slots(first: 1) { nodes { id } } }"


Check = Callable[["ProxiedApps"], Awaitable[str | None]]
Checks = dict[str, Check]


@dataclass(frozen=True, slots=True)
class ProxiedApps:
    """Two processes of one deployment, the port of the proxy in front of them, and a slot."""

    first: ConformanceApp
    port: int
    token: str
    slot_id: str

    @property
    def url(self) -> str:
        """The address of GraphQL at the proxy."""
        return f"http://127.0.0.1:{self.port}/graphql"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the admin."""
        return {"Authorization": f"Bearer {self.token}"}


def client(address: str = "127.0.0.1") -> httpx.AsyncClient:
    """Return a client that connects from this address of the machine."""
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(local_address=address), trust_env=False, timeout=30
    )


def proxy_rows(servers: EmbeddedServers, folder: Path, home: Path) -> Iterator[Row]:
    """Yield the row of each proxy. Raises: ProxyMissingError and ConformanceAppError."""
    for number, name in enumerate(PROXIES):
        program = find_proxy(name, home)
        environment = {
            "SLOTLOCK_MONGO_URL": database_url(servers, f"behind_{name}"),
            "SLOTLOCK_REDIS_URL": servers.redis_url.removesuffix("/0") + f"/{8 + number}",
            "SLOTLOCK_SECRET_KEY": SECRET,
            "SLOTLOCK_ADMIN_EMAIL": ADMIN_EMAIL,
            "SLOTLOCK_ADMIN_PASSWORD": ADMIN_PASSWORD,
            "SLOTLOCK_TRUSTED_PROXIES": "127.0.0.1",
            "SLOTLOCK_RATE_READS": str(READS),
            "SLOTLOCK_RATE_USERS_PER_ADDRESS": "1",
        }
        with ExitStack() as stack:
            apps = []
            for index in (1, 2):
                log_file = folder / f"behind-{name}-{index}.log"
                app = ConformanceApp(PRODUCTION, environment, log_file)
                stack.callback(app.kill)
                app.start()
                apps.append(app)
            ports = [app.port for app in apps]
            port = stack.enter_context(running_proxy(name, program, ports, folder / name))
            checks = checks_of(name)
            failures = asyncio.run(_failures(apps[0], port, checks))
        if problem := _logged_secret(name, program, folder / f"{name}-alone"):
            failures.append(f"{SECRET_CHECK}: {problem}")
        count = len(checks) + 1
        yield Row(f"{name} in front", count, tuple(failures), "two processes, production")


def _logged_secret(name: str, program: Path, folder: Path) -> str | None:
    """Run a proxy without processes behind it; return a secret path that its log contains."""
    paths = ("/exports/links/secret-1", "/calendars/private/secret-2.ics", "/calendars/seen.ics")
    with running_proxy(name, program, (free_port(), free_port()), folder) as port:
        for path in paths:
            httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=30)
    log = (folder / "proxy.log").read_text(errors="replace")
    if "/calendars/seen.ics" not in log:
        return "the log has no errors"
    return next((f"the log contains {path}" for path in paths[:2] if path in log), None)


async def _failures(app: ConformanceApp, port: int, checks: Checks) -> list[str]:
    url = f"http://127.0.0.1:{port}/graphql"
    async with client() as http:
        sign_in = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
        signed_in = await http.post(url, json={"query": SIGN_IN, "variables": sign_in})
        token = signed_in.json()["data"]["login"]["accessToken"]
        headers = {"Authorization": f"Bearer {token}"}
        created = await http.post(url, json={"query": CREATE}, headers=headers)
        slot_id = created.json()["data"]["createSlot"]["id"]
        publish = f'mutation {{ publishSlot(slotId: "{slot_id}") {{ __typename }} }}'
        await http.post(url, json={"query": publish}, headers=headers)
    apps = ProxiedApps(app, port, token, slot_id)
    failures = []
    for name, check in checks.items():
        try:
            problem = await check(apps)
        except Exception as error:  # the table shows it
            problem = f"{type(error).__name__} {error}"
        if problem:
            failures.append(f"{name}: {problem}")
    return failures


async def _events_arrive(apps: ProxiedApps) -> str | None:
    """Watch a slot by a socket and by an event stream while a place is booked over HTTP."""
    watching = {"query": WATCH, "variables": {"slots": [apps.slot_id]}}
    headers = {**apps.headers, "Accept": "text/event-stream"}
    socket_url = apps.url.replace("http://", "ws://")
    async with (
        client() as http,
        connect(socket_url, subprotocols=["graphql-transport-ws"]) as socket,  # type: ignore[list-item]
        http.stream("POST", apps.url, json=watching, headers=headers) as stream,
        asyncio.timeout(EVENT_TIMEOUT_S),
    ):
        parameters = {"Authorization": apps.headers["Authorization"]}
        await socket.send(json.dumps({"type": "connection_init", "payload": parameters}))
        await socket.recv()
        await socket.send(json.dumps({"type": "subscribe", "id": "1", "payload": watching}))
        lines = stream.aiter_lines()
        if await _next_remaining(lines) != 5 or _remaining(await socket.recv()) != 5:
            return "the first event has another number of places"
        book = {"query": BOOK, "variables": {"slot": apps.slot_id}}
        booked = await http.post(apps.url, json=book, headers=apps.headers)
        if booked.json()["data"]["bookSlot"]["__typename"] != "Booked":
            return booked.text
        if await _next_remaining(lines) != 4:
            return "the event stream shows another number of places"
        if _remaining(await socket.recv()) != 4:
            return "the socket shows another number of places"
    return None


async def _next_remaining(lines: Any) -> int:
    async for line in lines:
        if line.startswith("data: {"):
            return int(json.loads(line[6:])["data"]["slotAvailability"]["remaining"])
    raise EOFError("the event stream ended")


def _remaining(message: str | bytes) -> int:
    return int(json.loads(message)["payload"]["data"]["slotAvailability"]["remaining"])


async def _rate_is_per_client(apps: ProxiedApps) -> str | None:
    """Send more than the rate from one address that claims others, then once from another one."""
    async with client("127.0.0.3") as http:
        for number in range(READS + 20):
            claimed = {"X-Forwarded-For": f"203.0.113.{number}"}
            response = await http.post(apps.url, json={"query": QUERY}, headers=claimed)
            if "RATE_LIMITED" in response.text:
                break
        else:
            return "a claimed X-Forwarded-For avoids the rate limit"
    async with client("127.0.0.4") as http:
        response = await http.post(apps.url, json={"query": QUERY})
    return None if "nodes" in response.text else "all clients share the rate of the proxy"


async def _board_is_complete(apps: ProxiedApps) -> str | None:
    """Load the page of the board twice, and each file that it names."""
    address = apps.url.removesuffix("/graphql")
    async with client() as http:
        for _ in range(2):
            page = await http.get(f"{address}/board")
            if page.status_code != 200:
                return f"/board: status {page.status_code}"
            for path in re.findall(r'(?:href|src)="(/board/[^"]+)"', page.text):
                response = await http.get(address + path)
                if (
                    response.status_code != 200
                    or "immutable" not in response.headers["cache-control"]
                ):
                    return f"{path}: status {response.status_code}"
    return None if "/board/" in page.text else f"the page names no files: {page.text[:80]}"


async def _no_metrics(apps: ProxiedApps) -> str | None:
    async with client() as http:
        response = await http.get(apps.url.replace("/graphql", "/metrics"))
    return None if response.status_code == 404 else f"status {response.status_code}"


async def _restart_loses_nothing(apps: ProxiedApps) -> str | None:
    """Restart one process while clients from many addresses send queries by POST."""
    responses: list[str] = []
    restarts: list[asyncio.Task[None]] = []

    def restart() -> None:
        apps.first.stop()
        apps.first.start()

    async def send(number: int) -> None:
        async with client(f"127.0.1.{number}") as http:
            for _ in range(RESTART_REQUESTS):
                response = await http.post(apps.url, json={"query": QUERY})
                responses.append(response.text)
                if len(responses) == RESTART_CLIENTS * RESTART_REQUESTS // 4:
                    restarts.append(asyncio.create_task(asyncio.to_thread(restart)))
            while restarts and not restarts[0].done():
                response = await http.post(apps.url, json={"query": QUERY})
                responses.append(response.text)

    await asyncio.gather(*map(send, range(1, RESTART_CLIENTS + 1)))
    await asyncio.gather(*restarts)
    # Those past the rate of an address have reached a process, too.
    lost = [text for text in responses if "nodes" not in text and "RATE_LIMITED" not in text]
    return f"{len(lost)} of {len(responses)} requests are lost: {lost[0][:80]}" if lost else None


CHECKS: Checks = {
    "GraphQL, socket and event stream": _events_arrive,
    "a rate per client": _rate_is_per_client,
    "no metrics": _no_metrics,
    "the board": _board_is_complete,
}
RESTART_CHECK = "a restart of one process"
SECRET_CHECK = "no secret path in the log"


def checks_of(proxy: str) -> Checks:
    """Return the checks of a proxy.

    Debian's Caddy 2.6 loses the body of a POST that one process refused, instead of sending it to
    the other: deploy/caddy/Caddyfile says what to do before a stop.
    """
    return CHECKS if proxy == "caddy" else {**CHECKS, RESTART_CHECK: _restart_loses_nothing}
