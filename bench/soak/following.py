"""Following tickets to their end, by asking again and again or by watching."""

import asyncio
import json
import random
import time
from contextlib import suppress
from dataclasses import replace

from websockets.exceptions import WebSocketException

from bench.soak import documents
from bench.soak.keys import key_hash
from bench.soak.ledger import Act, Json, Send, Telling
from bench.soak.sending import send
from bench.soak.watch import subscribed
from bench.soak.world import World

ANSWERED_WITHIN_S = 60.0
ASKED_EVERY_S = (0.05, 0.6)
WATCHED_FOR_S = 20.0
TOGETHER = 16
ASKED_ONCE_MORE = 400


def follow_up(world: World, act: Act, sent: Send, rng: random.Random) -> None:
    """Follow the ticket that was given, beside whatever its person does next."""
    if sent.outcome != "Ticket":
        return
    task = asyncio.create_task(_follow(world, act, sent.answer["id"], random.Random(rng.random())))
    world.following.add(task)


async def _follow(world: World, act: Act, ticket: str, rng: random.Random) -> None:
    own = False
    watches, asks_again = rng.random() < 0.35, rng.random() < 0.6
    while (told := await _end(world, act, ticket, rng, watches=watches)) is not None:
        world.remember(act.by, told.outcome)
        own = act.key is not None and told.key == (act.by, key_hash(act))
        if told.status != "LOST" or not own or not asks_again or world.closing.is_set():
            break
        again = await send(world, act, rng)
        if again.outcome != "Ticket":
            break
        ticket, asks_again = again.answer["id"], rng.random() < 0.6
    if told is not None and told.status == "ANSWERED" and own and rng.random() < 0.15:
        await _book_under_its_key(world, act, told, rng)
    # It stays as it is, in whatever process.
    if told is not None and rng.random() < 0.3 and await world.sleep(rng.expovariate(1 / 6)):
        await _ask(world, act, ticket, rng)


async def _book_under_its_key(world: World, act: Act, told: Telling, rng: random.Random) -> None:
    book = replace(act, name="bookAgain", query=documents.BOOK, sends=[])
    sent = await send(world, book, rng)
    if sent.final and (sent.outcome, sent.answer.get("booking")) != (
        told.said,
        told.outcome.get("booking"),
    ):
        what = f"{told.ticket['id']}: {told.outcome}, by bookSlot {sent.answer}"
        world.ledger.violation("ticket answered otherwise", what)


async def _end(
    world: World, act: Act, ticket: str, rng: random.Random, *, watches: bool
) -> Telling | None:
    """The last that is told of a ticket; None when nothing final is told in time."""
    deadline = time.monotonic() + ANSWERED_WITHIN_S
    while time.monotonic() < deadline:
        told = await (_watch if watches else _ask)(world, act, ticket, rng)
        if told is not None and told.final:
            return told
        await asyncio.sleep(rng.uniform(*ASKED_EVERY_S))
    world.ledger.violation("ticket never answered", f"{ticket} of {act.by}")
    return None


async def _ask(world: World, act: Act, ticket: str, rng: random.Random) -> Telling | None:
    asked = Act("ticket", act.by, documents.LOOK, {"ticket": ticket}, act.token)
    sent = await send(world, asked, rng)
    if sent.outcome == "nothing":
        world.ledger.violation("ticket unknown", f"{ticket} of {act.by}")
    return Telling(sent.began, sent.ended, sent.answer) if sent.outcome == "Ticket" else None


async def _watch(world: World, act: Act, ticket: str, rng: random.Random) -> Telling | None:
    """What is told of a ticket last before the stream ends or is cut off."""
    app = rng.choice([app for app in world.apps if app.up] or world.apps)
    asked: Json = {"query": documents.FOLLOW, "variables": {"ticket": ticket}}
    told: Telling | None = None
    broken = (OSError, WebSocketException, TimeoutError, EOFError)
    with suppress(*broken):
        async with (
            asyncio.timeout(WATCHED_FOR_S),
            subscribed(app.socket_url, act.token, asked) as socket,
        ):
            began = time.time()  # what is heard may have waited since then
            while True:
                message = json.loads(await socket.recv())
                if message["type"] == "ping":
                    await socket.send(json.dumps({"type": "pong"}))
                elif message["type"] != "next":
                    break
                elif found := (message["payload"].get("data") or {}).get("ticket"):
                    told = _hear(world, told, Telling(began, time.time(), found, "watched"))
    return told


def _hear(world: World, before: Telling | None, told: Telling) -> Telling:
    world.ledger.tellings.append(told)
    if before is not None and before.final:
        what = f"{told.ticket['id']}: {told.said} after {before.said}"
        world.ledger.violation("ticket goes on", what)
    return told


async def ask_all_once_more(world: World) -> None:
    """At the end: every ticket that was not told its end yet, and some of the others again."""
    rng = world.rng("tickets once more")
    last: dict[str, Telling] = {}
    # What was asked for last decides, as in the verdict: a watcher may have heard of it before.
    for told in sorted(world.ledger.tellings, key=Telling.asked_last):
        last[told.ticket["id"]] = told
    ended = [ticket for ticket, told in last.items() if told.final]
    asked = [ticket for ticket, told in last.items() if not told.final]
    asked += rng.sample(ended, min(len(ended), ASKED_ONCE_MORE))
    tokens, some = {person.id: person.token for person in world.people}, asyncio.Semaphore(TOGETHER)

    async def one(ticket: str) -> None:
        by = last[ticket].key[0]
        act = Act("ticket", by, documents.LOOK, {}, tokens[by])
        async with some:
            await _end(world, act, ticket, rng, watches=False)

    await asyncio.gather(*map(one, asked))
