"""Sends requests to apps that may be dead, frozen or cut off, and writes them to the history."""

import asyncio
import random
import time
from contextlib import suppress

import aiohttp
import orjson

from bench.faults.clients.plan import REQUEST_TIMEOUT_S, Clients, User
from bench.faults.history import Json, Operation

TIMEOUT, CONNECTION_LOST = "TIMEOUT", "CONNECTION_LOST"
MAX_ATTEMPTS = 4
# Refusals that ask for another attempt, and the pause before it.
RETRIED = {"Locked", "QueueFull", "TeamBusy"}
RETRY_S = (0.05, 0.5)


async def send(
    clients: Clients, user: User, name: str, document: str, variables: Json, app: str
) -> Operation:
    """Send one request to an app and return it with its response, if there is one."""
    given = variables.get("input", variables)
    operation = Operation(
        clients.history.next_id(), user.name, name, user.id, {**given, "app": app}, time.monotonic()
    )
    headers = {"Authorization": f"Bearer {user.token}", "Content-Type": "application/json"}
    body = orjson.dumps({"query": document, "variables": variables})
    try:
        async with (
            asyncio.timeout(REQUEST_TIMEOUT_S),
            clients.http.post(f"{app}/graphql", data=body, headers=headers) as response,
        ):
            _read_response(operation, response.status, await response.read())
            operation.finished_at = time.monotonic()
    except TimeoutError:
        operation.error = TIMEOUT
    except (aiohttp.ClientError, OSError):
        operation.error = CONNECTION_LOST
    finally:
        clients.history.write(operation)
    return operation


def _read_response(operation: Operation, status: int, body: bytes) -> None:
    result: Json = {}
    with suppress(orjson.JSONDecodeError):
        result = orjson.loads(body)
    if errors := result.get("errors"):
        operation.error = str(errors[0].get("extensions", {}).get("code", "NO_CODE"))
    elif "data" in result:
        operation.outcome = result["data"]["result"] or {"__typename": "nothing"}
    else:
        operation.error = f"HTTP_{status}"


async def send_until_answered(
    clients: Clients,
    user: User,
    name: str,
    document: str,
    variables: Json,
    rng: random.Random,
) -> Operation:
    """Send a request, and repeat it at the other apps if it is safe: with its key, or a query."""
    first = rng.randrange(len(clients.apps))
    given = variables.get("input", variables)
    is_repeatable = bool(given.get("idempotencyKey") or given.get("key"))
    sent = await send(clients, user, name, document, variables, clients.apps[first])
    for attempt in range(1, MAX_ATTEMPTS):
        is_retried = sent.outcome is not None and sent.outcome["__typename"] in RETRIED
        if not (is_repeatable and (sent.outcome is None or is_retried)):
            break
        if not await clients.sleep(rng.uniform(*RETRY_S)):
            break
        app = clients.apps[(first + attempt) % len(clients.apps)]
        sent = await send(clients, user, name, document, variables, app)
    return sent
