"""Sends requests to apps that may be dead, frozen or cut off, and writes them to the history."""

import asyncio
import random
import time
from contextlib import suppress

import aiohttp
import orjson

from bench.faults.clients.plan import REQUEST_TIMEOUT_S, Clients
from bench.faults.history import UNAVAILABLE, Json, Operation
from bench.soak.clients.client_user import ClientUser
from bench.soak.run_log import SUCCESS_OUTCOMES

TIMEOUT, CONNECTION_LOST = "TIMEOUT", "CONNECTION_LOST"
MAX_ATTEMPTS = 4
# Refusals that ask for another attempt, and the pause before it.
RETRIED = {"Locked", "QueueFull", "TeamBusy"}
RETRY_S = (0.05, 0.5)
# This share of accepted requests is repeated, as if the response had been lost on its way.
REPEATED_SHARE = 0.05


async def send(
    clients: Clients, user: ClientUser, name: str, document: str, variables: Json, app: str
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
        extensions = errors[0].get("extensions", {})
        operation.error = str(extensions.get("code", "NO_CODE"))
        if operation.error == "INTERNAL" and "retryAfterMs" in extensions:
            operation.error = UNAVAILABLE
    elif "data" in result:
        operation.outcome = result["data"]["result"] or {"__typename": "nothing"}
    else:
        operation.error = f"HTTP_{status}"


async def send_until_answered(
    clients: Clients,
    user: ClientUser,
    name: str,
    document: str,
    variables: Json,
    rng: random.Random,
) -> Operation:
    """Send a request, and repeat it at the other apps until there is a response, if it has a key.

    Sometimes a request is repeated even after its response.
    """
    first = rng.randrange(len(clients.apps))
    given = variables.get("input", variables)
    is_repeatable = bool(given.get("idempotencyKey") or given.get("key"))
    sent = await send(clients, user, name, document, variables, clients.apps[first])
    attempt = 0
    for attempt in range(1, MAX_ATTEMPTS):
        is_retried = sent.outcome is not None and sent.outcome["__typename"] in RETRIED
        if not (is_repeatable and (sent.outcome is None or is_retried)):
            break
        if not await clients.sleep(rng.uniform(*RETRY_S)):
            break
        app = clients.apps[(first + attempt) % len(clients.apps)]
        sent = await send(clients, user, name, document, variables, app)
    is_accepted = sent.outcome is not None and sent.outcome["__typename"] in SUCCESS_OUTCOMES
    if is_repeatable and is_accepted and rng.random() < REPEATED_SHARE:
        app = clients.apps[(first + attempt + 1) % len(clients.apps)]
        await send(clients, user, name, document, variables, app)
    return sent
