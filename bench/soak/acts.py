"""What people do at the desk at random: members for themselves and their teams, organisers too."""

import random
from collections.abc import Callable
from dataclasses import replace

from bench.soak import documents
from bench.soak.campaign import shut_for_a_while
from bench.soak.following import follow_up
from bench.soak.keeping import keep_slots, reshuffle_team
from bench.soak.ledger import Act, Json
from bench.soak.sending import perform, send
from bench.soak.world import Person, World

WAITS_MS = (0, 0, 0, 200, 2_000, 8_000)
THINKS_S = 0.45  # on average


async def live(world: World, me: Person) -> None:
    """One person's run from its beginning to its end."""
    while await world.sleep(me.rng.expovariate(1 / THINKS_S)):
        if me.organises and me.rng.random() < 0.3:
            if me is world.people[-1] and me.rng.random() < 0.1:
                await shut_for_a_while(world, me)
            else:
                await keep_slots(world, me)
            continue
        if me.rng.random() < 0.005:
            await reshuffle_team(world, me)
            continue
        names, weights = zip(*DEEDS.items(), strict=True)
        act = me.rng.choices(names, weights)[0](world, me)
        if act is not None:
            await do(world, act, me.rng)
        if me.rng.random() < 0.02:
            await reuse_key(world, me)


async def do(world: World, act: Act, rng: random.Random) -> None:
    """Perform an act, remember what it brought, and follow the ticket if it is one."""
    sent = await perform(world, act, rng)
    world.remember(act.by, sent.answer)
    follow_up(world, act, sent, rng)


def _slot(world: World, rng: random.Random, free: float = 0.4) -> str:
    open_ = [slot for slot in world.slots if world.free.get(slot, 0) > 0]
    if open_ and rng.random() < free:
        return rng.choice(open_)
    # The first ones are everybody's favourites, or nobody would ever collide.
    return world.slots[min(int(rng.expovariate(1 / 8)), len(world.slots) - 1)]


def _key(me: Person) -> str | None:
    return me.next_key() if me.rng.random() < 0.75 else None


def _whose(world: World, me: Person) -> Person:
    if me.organises and me.rng.random() < 0.6:
        return me.rng.choice(world.people)
    teams = [team for team in world.teams if me in team.members]
    if teams and me.rng.random() < 0.15:
        return me.rng.choice(me.rng.choice(teams).members)
    return me


def _booking(world: World, me: Person) -> tuple[str, str] | None:
    """A booking and whose it is: mostly live ones, sometimes such as ended a while ago."""
    whose = me.rng.choice(world.people) if me.organises and me.rng.random() < 0.7 else me
    fresh, old = world.live[whose.id], list(whose.known)
    pool = fresh if fresh and me.rng.random() < 0.8 else old
    return (me.rng.choice(pool), whose.id) if pool else None


def book(world: World, me: Person) -> Act:
    """A place or a hold, for oneself, a mate or anybody."""
    slot, whose, key = _slot(world, me.rng), _whose(world, me), _key(me)
    wish: Json = {
        "slotId": f"slot_{slot}",
        "waitMs": me.rng.choice(WAITS_MS),
        "idempotencyKey": key,
        "hold": me.rng.random() < 0.4,
    }
    if whose is not me:
        wish["userId"] = f"user_{whose.id}"
    claims = ((slot, whose.id),)
    return Act("book", me.id, documents.BOOK, {"input": wish}, me.token, key, claims)


def request(world: World, me: Person) -> Act:
    """The same by the admission queue."""
    return replace(book(world, me), name="request", query=documents.REQUEST)


def book_all(world: World, me: Person) -> Act | None:
    """Overlapping sets of slots for a team, in whatever order."""
    teams = [team for team in world.teams if me in team.members]
    if not teams and not me.organises:
        return None
    people = world.people if me.organises else me.rng.choice(teams).members
    slots = sorted({_slot(world, me.rng, free=0.85) for _ in range(me.rng.randint(2, 4))})
    if me.rng.random() < 0.5:
        slots.reverse()
    pairs = [(s, p.id) for s in slots for p in me.rng.sample(people, me.rng.randint(1, 2))]
    key = _key(me)
    wish: Json = {
        "claims": [{"slotId": f"slot_{slot}", "userId": f"user_{who}"} for slot, who in pairs],
        "waitMs": me.rng.choice(WAITS_MS),
        "idempotencyKey": key,
        "hold": me.rng.random() < 0.3,
    }
    claims = tuple(pairs)
    return Act("bookAll", me.id, documents.BOOK_ALL, {"input": wish}, me.token, key, claims)


def _on_booking(name: str, query: str) -> Callable[[World, Person], Act | None]:
    def act(world: World, me: Person) -> Act | None:
        if (found := _booking(world, me)) is None:
            return None
        key, wait = _key(me), me.rng.choice(WAITS_MS)
        variables = {"booking": found[0], "key": key, "wait": wait}
        return Act(name, me.id, query, variables, me.token, key)

    return act


def move(world: World, me: Person) -> Act | None:
    """Another slot instead."""
    if (found := _booking(world, me)) is None:
        return None
    (booking, whose), slot, key = found, _slot(world, me.rng), _key(me)
    wish = {
        "bookingId": booking,
        "slotId": f"slot_{slot}",
        "waitMs": me.rng.choice(WAITS_MS),
        "idempotencyKey": key,
    }
    claims = ((slot, whose),)
    return Act("move", me.id, documents.MOVE, {"input": wish}, me.token, key, claims)


def _in_line(name: str, query: str) -> Callable[[World, Person], Act]:
    def act(world: World, me: Person) -> Act:
        slot = _slot(world, me.rng)
        full = [each for each in world.slots if world.free.get(each, 1) <= 0]
        if name == "join" and full:
            slot = me.rng.choice(full)
        variables = {"slot": f"slot_{slot}", "wait": me.rng.choice(WAITS_MS)}
        return Act(name, me.id, query, variables, me.token)

    return act


async def reuse_key(world: World, me: Person) -> None:
    """The key of a booking with another question must be refused."""
    mine = [act for act in world.recent if act.by == me.id and act.name == "book" and act.grant]
    if not mine:
        return
    first = me.rng.choice(mine)
    wish = first.variables["input"]
    other = {"input": {**wish, "hold": not wish["hold"]}}
    act = Act("reuse", me.id, documents.BOOK, other, me.token)
    sent = await send(world, act, me.rng)
    if sent.final and sent.outcome != "KeyReused":
        world.ledger.violation("key reused", f"key {first.key} of {me.id}: {sent.outcome}")


DEEDS: dict[Callable[[World, Person], Act | None], float] = {
    book: 24,
    request: 20,
    book_all: 9,
    _on_booking("confirm", documents.CONFIRM): 9,
    _on_booking("extend", documents.EXTEND): 4,
    _on_booking("cancel", documents.CANCEL): 17,
    move: 9,
    _in_line("join", documents.JOIN): 16,
    _in_line("leave", documents.LEAVE): 4,
}
