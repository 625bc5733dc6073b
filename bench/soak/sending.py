"""Sending acts over HTTP to any process: once, at once from several sides, and again and again."""

import asyncio
import itertools
import random
import time
from contextlib import suppress

import httpx

from bench.soak.ledger import Act, Json, Send, Telling
from bench.soak.world import World

RESOLVE_WITHIN_S = 90.0
RETRY_AFTER_S = 0.4
RESENDERS = 4
_numbers = itertools.count()


async def send(world: World, act: Act, rng: random.Random, leave_after_s: float = 0.0) -> Send:
    """One request to a random process; with `leave_after_s` the client hangs up after so long."""
    app = rng.choice([app for app in world.apps if app.up] or world.apps)
    sent = Send(time.time(), app=app.index)
    act.sends.append(sent)
    body = {"query": act.query, "variables": act.variables}
    headers = {"Authorization": f"Bearer {act.token}"}
    request = world.http.post(app.url, json=body, headers=headers)
    try:
        async with asyncio.timeout(leave_after_s or None):
            _read(world, act, sent, await request)
    except TimeoutError:
        sent.outcome = "left"
    except (httpx.ConnectError, httpx.ConnectTimeout):
        sent.outcome = "refused connection"
    except httpx.TransportError:
        sent.outcome = "lost"
    sent.ended = time.time()
    world.ledger.outcomes[act.name, sent.outcome] += 1
    if sent.outcome == "INTERNAL" and not world.ledger.was_away(sent.began, sent.ended):
        known = sent.answer.get("extensions", {}).get("errorId")
        world.ledger.violation("INTERNAL", f"{act.name} by {act.by} at app {app.index}: {known}")
    return sent


def _read(world: World, act: Act, sent: Send, response: httpx.Response) -> None:
    status = response.status_code
    body: Json = {}
    with suppress(ValueError):
        body = response.json()
    if errors := body.get("errors"):
        sent.outcome = str(errors[0].get("extensions", {}).get("code", "no code"))
        sent.answer = errors[0]
    elif status != 200 or not body.get("data"):
        sent.outcome = "INTERNAL" if status >= 500 else f"HTTP {status}"
    else:
        sent.answer = body["data"]["answer"] or {"__typename": "nothing"}
        sent.outcome = str(sent.answer["__typename"])
    if sent.outcome == "Ticket":
        world.ledger.tellings.append(Telling(sent.began, time.time(), sent.answer, act.name))
    away = world.ledger.was_away(sent.began, time.time())
    if status >= 500 and not (status == 503 and away):
        world.ledger.violation("HTTP 5xx", f"{status} for {act.name} at app {sent.app}")
    if sent.outcome in ("BAD_USER_INPUT", "FORBIDDEN", "UNAUTHENTICATED", "LIMIT_EXCEEDED"):
        world.ledger.violation("refused request", f"{act.name}: {sent.answer}")


async def perform(world: World, act: Act, rng: random.Random) -> Send:
    """The act as a client with patience does it; its last answer.

    What has a key is sent again until it is answered, sometimes from several sides at once, and
    some of it later on.
    """
    world.ledger.acts.append(act)
    sides = rng.choice((1, 1, 1, 1, 2, 3, 4)) if act.key else 1
    hangs_up = rng.random() < 0.05
    first = rng.uniform(0.001, 0.08) if hangs_up else 0.0
    hasty = [first, *itertools.repeat(0.0, sides - 1)]
    sends = await asyncio.gather(*(send(world, act, rng, leave) for leave in hasty))
    last = next((sent for sent in sends if sent.final), sends[-1])
    if act.key is None:
        return last
    if not any(sent.final for sent in sends) and act.unknown:
        last = await resolve(world, act, rng)
    world.recent.append(act)
    if rng.random() < 0.3:
        send_again(world, act, rng.expovariate(1 / 8))
    return last


async def resolve(world: World, act: Act, rng: random.Random) -> Send:
    """Send an act with a key again until somebody who had looked answers it."""
    deadline = time.monotonic() + RESOLVE_WITHIN_S
    sent = await send(world, act, rng)
    while not sent.final and time.monotonic() < deadline:
        await asyncio.sleep(RETRY_AFTER_S)
        sent = await send(world, act, rng)
    if not sent.final:
        world.ledger.violation("never answered", f"{act.name} key {act.key}: {sent.outcome}")
    return sent


def send_again(world: World, act: Act, after_s: float) -> None:
    """Let an act with a key be sent again later."""
    world.resends.put_nowait((time.monotonic() + after_s, next(_numbers), act))


def send_recent_again(world: World) -> None:
    """A process was killed: whoever was answered a moment ago sends it again."""
    for act in list(world.recent)[-12:]:
        send_again(world, act, 0.0)


async def resend(world: World, number: int) -> None:
    """Send again what is due, until the run ends."""
    rng = world.rng(f"resender {number}")
    while not world.closing.is_set():
        due, place, act = await world.resends.get()
        if due > time.monotonic():
            world.resends.put_nowait((due, place, act))
            await world.sleep(min(due - time.monotonic(), 0.2))
            continue
        await asyncio.gather(*(send(world, act, rng) for _ in range(rng.choice((1, 1, 2, 3)))))
