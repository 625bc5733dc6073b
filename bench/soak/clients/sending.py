"""Sending acts over HTTP to any process: once, at once from several sides, and again and again."""

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
_numbers = itertools.count()


async def send(
    world: World, operation: ClientOperation, rng: random.Random, hang_up_after_s: float = 0.0
) -> SentRequest:
    """One request to a random process; with `leave_after_s` the client hangs up after so long."""
    app = rng.choice([app for app in world.apps if app.is_up] or world.apps)
    sent = SentRequest(time.time(), app_index=app.index)
    operation.requests.append(sent)
    body = {"query": operation.document, "variables": operation.variables}
    headers = {"Authorization": f"Bearer {operation.token}"}
    request = world.http.post(app.url, json=body, headers=headers)
    try:
        async with asyncio.timeout(hang_up_after_s or None):
            _read(world, operation, sent, await request)
    except TimeoutError:
        sent.outcome = "left"
    except (httpx.ConnectError, httpx.ConnectTimeout):
        sent.outcome = "refused connection"
    except httpx.TransportError:
        sent.outcome = "lost"
    sent.ended_at = time.time()
    world.run_log.outcomes[operation.name, sent.outcome] += 1
    if sent.outcome == "INTERNAL" and not world.run_log.was_mongo_down(
        sent.started_at, sent.ended_at
    ):
        known = sent.response.get("extensions", {}).get("errorId")
        world.run_log.record_violation(
            "INTERNAL", f"{operation.name} by {operation.user_id} at app {app.index}: {known}"
        )
    return sent


def _read(
    world: World, operation: ClientOperation, request: SentRequest, response: httpx.Response
) -> None:
    status = response.status_code
    body: Json = {}
    with suppress(ValueError):
        body = response.json()
    if errors := body.get("errors"):
        request.outcome = str(errors[0].get("extensions", {}).get("code", "no code"))
        request.response = errors[0]
    elif status != 200 or not body.get("data"):
        request.outcome = "INTERNAL" if status >= 500 else f"HTTP {status}"
    else:
        request.response = body["data"]["answer"] or {"__typename": "nothing"}
        request.outcome = str(request.response["__typename"])
    if request.outcome == "Ticket":
        world.run_log.ticket_observations.append(
            TicketObservation(request.started_at, time.time(), request.response, operation.name)
        )
    away = world.run_log.was_mongo_down(request.started_at, time.time())
    if status >= 500 and not (status == 503 and away):
        world.run_log.record_violation(
            "HTTP 5xx", f"{status} for {operation.name} at app {request.app_index}"
        )
    if request.outcome in ("BAD_USER_INPUT", "FORBIDDEN", "UNAUTHENTICATED", "LIMIT_EXCEEDED"):
        world.run_log.record_violation("refused request", f"{operation.name}: {request.response}")


async def perform(world: World, operation: ClientOperation, rng: random.Random) -> SentRequest:
    """The act as a client with patience does it; its last answer.

    What has a key is sent again until it is answered, sometimes from several sides at once, and
    some of it later on.
    """
    world.run_log.operations.append(operation)
    sides = rng.choice((1, 1, 1, 1, 2, 3, 4)) if operation.idempotency_key else 1
    hangs_up = rng.random() < 0.05
    first = rng.uniform(0.001, 0.08) if hangs_up else 0.0
    hasty = [first, *itertools.repeat(0.0, sides - 1)]
    sends = await asyncio.gather(*(send(world, operation, rng, leave) for leave in hasty))
    last = next((sent for sent in sends if sent.is_final), sends[-1])
    if operation.idempotency_key is None:
        return last
    if not any(sent.is_final for sent in sends) and operation.is_unknown:
        last = await resend_until_final(world, operation, rng)
    world.recent_operations.append(operation)
    if rng.random() < 0.3:
        schedule_resend(world, operation, rng.expovariate(1 / 8))
    return last


async def resend_until_final(
    world: World, operation: ClientOperation, rng: random.Random
) -> SentRequest:
    """Send an act with a key again until somebody who had looked answers it."""
    deadline = time.monotonic() + RESOLVE_TIMEOUT_S
    sent = await send(world, operation, rng)
    while not sent.is_final and time.monotonic() < deadline:
        await asyncio.sleep(RETRY_DELAY_S)
        sent = await send(world, operation, rng)
    if not sent.is_final:
        world.run_log.record_violation(
            "never answered", f"{operation.name} key {operation.idempotency_key}: {sent.outcome}"
        )
    return sent


def schedule_resend(world: World, operation: ClientOperation, delay_s: float) -> None:
    """Let an act with a key be sent again later."""
    world.resends.put_nowait((time.monotonic() + delay_s, next(_numbers), operation))


def schedule_recent_resends(world: World) -> None:
    """A process was killed: whoever was answered a moment ago sends it again."""
    for act in list(world.recent_operations)[-12:]:
        schedule_resend(world, act, 0.0)


async def run_resender(world: World, number: int) -> None:
    """Send again what is due, until the run ends."""
    rng = world.rng(f"resender {number}")
    while not world.closing.is_set():
        due, place, act = await world.resends.get()
        if due > time.monotonic():
            world.resends.put_nowait((due, place, act))
            await world.sleep(min(due - time.monotonic(), 0.2))
            continue
        await asyncio.gather(*(send(world, act, rng) for _ in range(rng.choice((1, 1, 2, 3)))))
