"""Follows tickets to their final state, by polling or by a subscription."""

import asyncio
import json
import random
import time
from contextlib import suppress
from dataclasses import replace

from websockets.exceptions import WebSocketException

from bench.soak.checks.idempotency import key_hash
from bench.soak.clients import documents
from bench.soak.clients.sending import send
from bench.soak.clients.watchers import open_subscription
from bench.soak.run_log import ClientOperation, Json, SentRequest, TicketObservation
from bench.soak.world import World

TICKET_TIMEOUT_S = 60.0
POLL_INTERVAL_S = (0.05, 0.6)
WATCH_TIMEOUT_S = 20.0
MAX_CONCURRENT_POLLS = 16
RECHECK_SAMPLE_SIZE = 400


def follow_ticket(
    world: World, operation: ClientOperation, request: SentRequest, rng: random.Random
) -> None:
    """Follow the ticket of a request in the background."""
    if request.outcome != "Ticket":
        return
    task = asyncio.create_task(
        _follow_to_end(world, operation, request.response["id"], random.Random(rng.random()))
    )
    world.follow_tasks.add(task)


async def _follow_to_end(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random
) -> None:
    has_own_key = False
    is_watching, retries_lost = rng.random() < 0.35, rng.random() < 0.6
    while (
        final := await _wait_for_end(world, operation, ticket, rng, by_watching=is_watching)
    ) is not None:
        world.remember_bookings(operation.user_id, final.outcome)
        own_key = (operation.user_id, key_hash(operation))
        has_own_key = operation.idempotency_key is not None and final.key == own_key
        if final.status != "LOST" or not has_own_key or not retries_lost or world.closing.is_set():
            break
        retried = await send(world, operation, rng)
        if retried.outcome != "Ticket":
            break
        ticket, retries_lost = retried.response["id"], rng.random() < 0.6
    if final is None:
        return
    if final.status == "ANSWERED" and has_own_key and rng.random() < 0.15:
        await _book_with_ticket_key(world, operation, final, rng)
    # The state stays the same later, whichever process returns it.
    if rng.random() < 0.3 and await world.sleep(rng.expovariate(1 / 6)):
        await _poll(world, operation, ticket, rng)


async def _book_with_ticket_key(
    world: World, operation: ClientOperation, observation: TicketObservation, rng: random.Random
) -> None:
    book = replace(operation, name="bookWithTicketKey", document=documents.BOOK, requests=[])
    sent = await send(world, book, rng)
    if sent.is_final:  # `check_tickets` compares it with the other answers of the ticket
        ticket = {**observation.ticket, "outcome": sent.response}
        world.run_log.ticket_observations.append(
            TicketObservation(sent.started_at, sent.ended_at, ticket, "bookSlot")
        )


async def _wait_for_end(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random, *, by_watching: bool
) -> TicketObservation | None:
    """Return the final state of a ticket, or None if it does not end in time."""
    deadline = time.monotonic() + TICKET_TIMEOUT_S
    observe = _watch_ticket if by_watching else _poll
    while time.monotonic() < deadline:
        observation = await observe(world, operation, ticket, rng)
        if observation is not None and observation.is_final:
            return observation
        await asyncio.sleep(rng.uniform(*POLL_INTERVAL_S))
    world.run_log.record_violation("ticket without an end", f"{ticket} of {operation.user_id}")
    return None


async def _poll(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random
) -> TicketObservation | None:
    query = ClientOperation(
        "ticket", operation.user_id, documents.TICKET_QUERY, {"ticket": ticket}, operation.token
    )
    sent = await send(world, query, rng)
    if sent.outcome == "nothing":
        world.run_log.record_violation("ticket unknown", f"{ticket} of {operation.user_id}")
    if sent.outcome != "Ticket":
        return None
    return TicketObservation(sent.started_at, sent.ended_at, sent.response)


async def _watch_ticket(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random
) -> TicketObservation | None:
    """Subscribe to a ticket and return the last state before the stream ends or breaks."""
    app = rng.choice([app for app in world.apps if app.is_up] or world.apps)
    payload: Json = {"query": documents.TICKET_SUBSCRIPTION, "variables": {"ticket": ticket}}
    last: TicketObservation | None = None
    with suppress(OSError, WebSocketException, TimeoutError, EOFError):
        async with (
            asyncio.timeout(WATCH_TIMEOUT_S),
            open_subscription(app.socket_url, operation.token, payload) as socket,
        ):
            started_at = time.time()  # a received state may be as old as the subscription
            while True:
                message = json.loads(await socket.recv())
                if message["type"] == "ping":
                    await socket.send(json.dumps({"type": "pong"}))
                elif message["type"] != "next":
                    break
                elif state := (message["payload"].get("data") or {}).get("ticket"):
                    observation = TicketObservation(started_at, time.time(), state, "watched")
                    _record_observation(world, last, observation)
                    last = observation
    return last


def _record_observation(
    world: World, previous: TicketObservation | None, observation: TicketObservation
) -> None:
    world.run_log.ticket_observations.append(observation)
    if previous is not None and previous.is_final:
        world.run_log.record_violation(
            "ticket continues",
            f"{observation.ticket['id']}: {observation.outcome_name} after {previous.outcome_name}",
        )


async def recheck_all_tickets(world: World) -> None:
    """Follow every unfinished ticket at the end of the run, and poll a sample of the others."""
    rng = world.rng("tickets once more")
    last: dict[str, TicketObservation] = {}
    # The last request decides: a subscription may have delivered an older state later.
    for observation in sorted(
        world.run_log.ticket_observations, key=TicketObservation.request_order
    ):
        last[observation.ticket["id"]] = observation
    final = [ticket for ticket, observation in last.items() if observation.is_final]
    tickets = [ticket for ticket, observation in last.items() if not observation.is_final]
    tickets += rng.sample(final, min(len(final), RECHECK_SAMPLE_SIZE))
    tokens = {user.id: user.token for user in world.users}
    concurrent_polls = asyncio.Semaphore(MAX_CONCURRENT_POLLS)

    async def recheck(ticket: str) -> None:
        user_id = last[ticket].key[0]
        query = ClientOperation("ticket", user_id, documents.TICKET_QUERY, {}, tokens[user_id])
        async with concurrent_polls:
            await _wait_for_end(world, query, ticket, rng, by_watching=False)

    await asyncio.gather(*map(recheck, tickets))
