"""Sends operations over HTTP to any app process: once, several times at once, and again later."""

import asyncio
import itertools
import random
import time
from contextlib import suppress

import httpx

from bench.soak.run_log import ClientOperation, Json, SentRequest, TicketObservation
from bench.soak.world import World

RESOLVE_TIMEOUT_S = 90.0
RETRY_DELAY_S = 0.4
RESENDERS = 4
RECENT_RESENDS = 12
# Outcomes that the operations of the run never cause.
UNEXPECTED_ERRORS = ("BAD_USER_INPUT", "FORBIDDEN", "UNAUTHENTICATED", "LIMIT_EXCEEDED")
_sequence_numbers = itertools.count()


async def send(
    world: World, operation: ClientOperation, rng: random.Random, hang_up_after_s: float = 0.0
) -> SentRequest:
    """Send one request to a random process; the client may hang up after some seconds."""
    app = rng.choice([app for app in world.apps if app.is_up] or world.apps)
    sent = SentRequest(time.time(), app_index=app.index)
    operation.requests.append(sent)
    body = {"query": operation.document, "variables": operation.variables}
    headers = {"Authorization": f"Bearer {operation.token}"}
    pending_response = world.http.post(app.url, json=body, headers=headers)
    try:
        async with asyncio.timeout(hang_up_after_s or None):
            _record_response(world, operation, sent, await pending_response)
    except TimeoutError:
        sent.outcome = "hung up"
    except (httpx.ConnectError, httpx.ConnectTimeout):
        sent.outcome = "refused connection"
    except httpx.TransportError:
        sent.outcome = "lost"
    sent.ended_at = time.time()
    world.run_log.outcomes[operation.name, sent.outcome] += 1
    if sent.outcome == "INTERNAL" and not world.run_log.was_mongo_down(
        sent.started_at, sent.ended_at
    ):
        error_id = sent.response.get("extensions", {}).get("errorId")
        world.run_log.record_violation(
            "INTERNAL", f"{operation.name} by {operation.user_id} at app {app.index}: {error_id}"
        )
    return sent


def _record_response(
    world: World, operation: ClientOperation, sent: SentRequest, response: httpx.Response
) -> None:
    status = response.status_code
    body: Json = {}
    with suppress(ValueError):
        body = response.json()
    if errors := body.get("errors"):
        sent.outcome = str(errors[0].get("extensions", {}).get("code", "no code"))
        sent.response = errors[0]
    elif status != 200 or not body.get("data"):
        sent.outcome = "INTERNAL" if status >= 500 else f"HTTP {status}"
    else:
        sent.response = body["data"]["result"] or {"__typename": "nothing"}
        sent.outcome = str(sent.response["__typename"])
    if sent.outcome == "Ticket":
        world.run_log.ticket_observations.append(
            TicketObservation(sent.started_at, time.time(), sent.response, operation.name)
        )
    is_mongo_down = world.run_log.was_mongo_down(sent.started_at, time.time())
    if status >= 500 and not (status == 503 and is_mongo_down):
        world.run_log.record_violation(
            "HTTP 5xx", f"{status} for {operation.name} at app {sent.app_index}"
        )
    if sent.outcome in UNEXPECTED_ERRORS:
        world.run_log.record_violation("refused request", f"{operation.name}: {sent.response}")


async def perform(world: World, operation: ClientOperation, rng: random.Random) -> SentRequest:
    """Perform an operation like a robust client, and return the last request.

    An operation with a key is sent until it has a final response.
    Sometimes several requests are sent at once, and sometimes one more later.
    """
    world.run_log.operations.append(operation)
    count = rng.choice((1, 1, 1, 1, 2, 3, 4)) if operation.idempotency_key else 1
    hangs_up = rng.random() < 0.05
    first_hang_up_s = rng.uniform(0.001, 0.08) if hangs_up else 0.0
    hang_ups_s = [first_hang_up_s, *itertools.repeat(0.0, count - 1)]
    requests = await asyncio.gather(
        *(send(world, operation, rng, hang_up_s) for hang_up_s in hang_ups_s)
    )
    last = next((request for request in requests if request.is_final), requests[-1])
    if operation.idempotency_key is None:
        return last
    if not any(request.is_final for request in requests) and operation.is_unknown:
        last = await resend_until_final(world, operation, rng)
    world.recent_operations.append(operation)
    if rng.random() < 0.3:
        schedule_resend(world, operation, rng.expovariate(1 / 8))
    return last


async def resend_until_final(
    world: World, operation: ClientOperation, rng: random.Random
) -> SentRequest:
    """Send an operation with a key until it has a final response, and return the last request."""
    deadline = time.monotonic() + RESOLVE_TIMEOUT_S
    sent = await send(world, operation, rng)
    while not sent.is_final and time.monotonic() < deadline:
        await asyncio.sleep(RETRY_DELAY_S)
        sent = await send(world, operation, rng)
    if not sent.is_final:
        world.run_log.record_violation(
            "no final response", f"{operation.name} key {operation.idempotency_key}: {sent.outcome}"
        )
    return sent


def schedule_resend(world: World, operation: ClientOperation, delay_s: float) -> None:
    """Schedule one more request of an operation with a key."""
    world.resends.put_nowait((time.monotonic() + delay_s, next(_sequence_numbers), operation))


def schedule_recent_resends(world: World) -> None:
    """Send the last operations again at once, because a process was killed."""
    for operation in list(world.recent_operations)[-RECENT_RESENDS:]:
        schedule_resend(world, operation, 0.0)


async def run_resender(world: World, number: int) -> None:
    """Send scheduled requests when they are due, until the run ends."""
    rng = world.rng(f"resender {number}")
    while not world.closing.is_set():
        due_at, sequence_number, operation = await world.resends.get()
        if due_at > time.monotonic():
            world.resends.put_nowait((due_at, sequence_number, operation))
            await world.sleep(min(due_at - time.monotonic(), 0.2))
            continue
        count = rng.choice((1, 1, 2, 3))
        await asyncio.gather(*(send(world, operation, rng) for _ in range(count)))
