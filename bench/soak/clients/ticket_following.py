"""Following tickets to their end, by asking again and again or by watching."""

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
    """Follow the ticket that was given, beside whatever its person does next."""
    if request.outcome != "Ticket":
        return
    task = asyncio.create_task(
        _follow_to_end(world, operation, request.response["id"], random.Random(rng.random()))
    )
    world.follow_tasks.add(task)


async def _follow_to_end(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random
) -> None:
    own = False
    watches, asks_again = rng.random() < 0.35, rng.random() < 0.6
    while (
        told := await _wait_for_end(world, operation, ticket, rng, by_watching=watches)
    ) is not None:
        world.remember_bookings(operation.user_id, told.outcome)
        own = operation.idempotency_key is not None and told.key == (
            operation.user_id,
            key_hash(operation),
        )
        if told.status != "LOST" or not own or not asks_again or world.closing.is_set():
            break
        again = await send(world, operation, rng)
        if again.outcome != "Ticket":
            break
        ticket, asks_again = again.response["id"], rng.random() < 0.6
    if told is not None and told.status == "ANSWERED" and own and rng.random() < 0.15:
        await _book_with_ticket_key(world, operation, told, rng)
    # It stays as it is, in whatever process.
    if told is not None and rng.random() < 0.3 and await world.sleep(rng.expovariate(1 / 6)):
        await _poll(world, operation, ticket, rng)


async def _book_with_ticket_key(
    world: World, operation: ClientOperation, observation: TicketObservation, rng: random.Random
) -> None:
    book = replace(operation, name="bookAgain", document=documents.BOOK, requests=[])
    sent = await send(world, book, rng)
    if sent.is_final and (sent.outcome, sent.response.get("booking")) != (
        observation.outcome_name,
        observation.outcome.get("booking"),
    ):
        what = f"{observation.ticket['id']}: {observation.outcome}, by bookSlot {sent.response}"
        world.run_log.record_violation("ticket answered otherwise", what)


async def _wait_for_end(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random, *, by_watching: bool
) -> TicketObservation | None:
    """The last that is told of a ticket; None when nothing final is told in time."""
    deadline = time.monotonic() + TICKET_TIMEOUT_S
    while time.monotonic() < deadline:
        told = await (_watch_ticket if by_watching else _poll)(world, operation, ticket, rng)
        if told is not None and told.is_final:
            return told
        await asyncio.sleep(rng.uniform(*POLL_INTERVAL_S))
    world.run_log.record_violation("ticket never answered", f"{ticket} of {operation.user_id}")
    return None


async def _poll(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random
) -> TicketObservation | None:
    asked = ClientOperation(
        "ticket", operation.user_id, documents.TICKET_QUERY, {"ticket": ticket}, operation.token
    )
    sent = await send(world, asked, rng)
    if sent.outcome == "nothing":
        world.run_log.record_violation("ticket unknown", f"{ticket} of {operation.user_id}")
    return (
        TicketObservation(sent.started_at, sent.ended_at, sent.response)
        if sent.outcome == "Ticket"
        else None
    )


async def _watch_ticket(
    world: World, operation: ClientOperation, ticket: str, rng: random.Random
) -> TicketObservation | None:
    """What is told of a ticket last before the stream ends or is cut off."""
    app = rng.choice([app for app in world.apps if app.is_up] or world.apps)
    asked: Json = {"query": documents.TICKET_SUBSCRIPTION, "variables": {"ticket": ticket}}
    told: TicketObservation | None = None
    broken = (OSError, WebSocketException, TimeoutError, EOFError)
    with suppress(*broken):
        async with (
            asyncio.timeout(WATCH_TIMEOUT_S),
            open_subscription(app.socket_url, operation.token, asked) as socket,
        ):
            began = time.time()  # what is heard may have waited since then
            while True:
                message = json.loads(await socket.recv())
                if message["type"] == "ping":
                    await socket.send(json.dumps({"type": "pong"}))
                elif message["type"] != "next":
                    break
                elif found := (message["payload"].get("data") or {}).get("ticket"):
                    told = _record_observation(
                        world, told, TicketObservation(began, time.time(), found, "watched")
                    )
    return told


def _record_observation(
    world: World, previous: TicketObservation | None, observation: TicketObservation
) -> TicketObservation:
    world.run_log.ticket_observations.append(observation)
    if previous is not None and previous.is_final:
        what = (
            f"{observation.ticket['id']}: {observation.outcome_name} after {previous.outcome_name}"
        )
        world.run_log.record_violation("ticket goes on", what)
    return observation


async def recheck_all_tickets(world: World) -> None:
    """At the end: every ticket that was not told its end yet, and some of the others again."""
    rng = world.rng("tickets once more")
    last: dict[str, TicketObservation] = {}
    # What was asked for last decides, as in the verdict: a watcher may have heard of it before.
    for told in sorted(world.run_log.ticket_observations, key=TicketObservation.request_order):
        last[told.ticket["id"]] = told
    ended = [ticket for ticket, told in last.items() if told.is_final]
    asked = [ticket for ticket, told in last.items() if not told.is_final]
    asked += rng.sample(ended, min(len(ended), RECHECK_SAMPLE_SIZE))
    tokens, some = (
        {person.id: person.token for person in world.users},
        asyncio.Semaphore(MAX_CONCURRENT_POLLS),
    )

    async def recheck(ticket: str) -> None:
        by = last[ticket].key[0]
        act = ClientOperation("ticket", by, documents.TICKET_QUERY, {}, tokens[by])
        async with some:
            await _wait_for_end(world, act, ticket, rng, by_watching=False)

    await asyncio.gather(*map(recheck, asked))
