"""Setting the scene: people who are signed in, their teams, and slots of every kind."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

from bench.soak import documents
from bench.soak.campaign import group_of, open_campaign
from bench.soak.ledger import Act, Json
from bench.soak.sending import send
from bench.soak.servers import SoakError
from bench.soak.world import Person, Team, World
from slotlock.auth.tokens import Token, Tokens, new_token_id
from slotlock.domain.people import Role
from slotlock.stores import mongo
from slotlock.stores.sessions import Sessions, SignIn
from slotlock.stores.users import Users

MEMBERS = 60
ORGANISERS = 4
TEAM_SIZE = 4
TEAMS = 20
SECRET = secrets.token_hex(32)

# Slots by how many of them, and how they differ from one of two places tomorrow.
KINDS: tuple[tuple[int, Json], ...] = (
    (5, {"holdMinutes": 1}),
    (4, {"capacity": 1}),
    (5, {"waitlistOfferMinutes": 1, "capacity": 3}),
    (6, {"waitlistCapacity": 0, "capacity": 4, "holdMinutes": 1}),
    (2, {"waitlistCapacity": 0, "capacity": 1}),
    (2, {"waitlistCapacity": 3, "capacity": 1}),
    (1, {"capacity": 25}),
    (1, {"cancelCutoffMinutes": 86400, "capacity": 3}),
)
CHOICES = ("bed", "boat", "bus")
SLOTS_A_CHOICE = 3
CAMPAIGN_SLOTS = 8


async def set_scene(world: World) -> None:
    """Everybody and everything that is there before the first act."""
    world.people = await _sign_in(world)
    organiser = world.people[-1]
    kinds = [fields for count, fields in KINDS for _ in range(count)]
    kinds += [
        {"choice": choice, "capacity": 3, "waitlistOfferMinutes": 1 if place else None}
        for choice in CHOICES
        for place in range(SLOTS_A_CHOICE)
    ]
    world.rng("kinds").shuffle(kinds)
    for fields in kinds:
        await open_slot(world, organiser, fields)
    await open_campaign(world, organiser)
    for place in range(CAMPAIGN_SLOTS):
        # Two at a time, so that some overlap.
        later = 172_800.0 + 3600.0 * (place // 2)
        fields = {"campaignId": world.campaign, "capacity": 5, "waitlistOfferMinutes": 1}
        await open_slot(world, organiser, fields if place % 3 else {**fields, "capacity": 3}, later)
    for share in (0.4, 0.7):  # begin in the middle of the run
        await open_slot(world, organiser, {"capacity": 3}, world.seconds * share)
    await _form_teams(world)


async def open_slot(
    world: World, organiser: Person, fields: Json, begins_in_s: float = 172_800.0
) -> None:
    """One more slot. Errors: SoakError."""
    begins = datetime.now(UTC) + timedelta(seconds=begins_in_s)
    times = [at.isoformat(timespec="seconds") for at in (begins, begins + timedelta(hours=1))]
    plain = {"title": "A slot", "startTime": times[0], "endTime": times[1], "capacity": 2}
    answer = await _ask(world, organiser, documents.CREATE, {"input": {**plain, **fields}})
    slot_id = str(answer["id"])[-24:]
    world.slots.append(slot_id)
    if "campaignId" in fields:
        world.in_campaign[slot_id] = begins_in_s
    if "choice" in fields:
        world.choices[slot_id] = fields["choice"]


async def _sign_in(world: World) -> list[Person]:
    client, database = mongo.connect(world.mongo_url)
    try:
        users, sessions, tokens = Users(database), Sessions(database), Tokens([SECRET])
        now = datetime.now(UTC)
        # One token for the whole run: to refresh it is not what is tried here.
        until = now + timedelta(seconds=world.seconds + 1800)
        people = []
        for index in range(MEMBERS + ORGANISERS):
            role = Role.MEMBER if index < MEMBERS else Role.ORGANIZER
            email = f"person{index}@slotlock.test"
            user = await users.add(f"Person {index}", email, role, "no password", now)
            if user is None:
                raise SoakError("the database is not new")
            await users.set_groups(user.id, [group_of(index)], None, now)
            opened = await sessions.open(SignIn(user.id, new_token_id(), now, until))
            if opened is None:
                raise SoakError("who was just added cannot sign in")
            token = tokens.sign("access", Token(user.id, opened[0], new_token_id(), until), now)
            rng = world.rng(f"person {index}")
            organises = role is Role.ORGANIZER
            people.append(Person(index, str(user.id), email, token, organises, rng))
        return people
    finally:
        await client.close()


async def _form_teams(world: World) -> None:
    rng = world.rng("teams")
    for number in range(TEAMS):
        members = rng.sample(world.people[:MEMBERS], TEAM_SIZE)
        answer = await _ask(world, members[0], documents.CREATE_TEAM, {"name": f"Team {number}"})
        if answer["__typename"] != "Team":
            continue  # they are in as many as they may be
        team = Team(str(answer["id"]), members)
        await asyncio.gather(*(bring_in(world, team, members[0], one) for one in members[1:]))
        world.teams.append(team)


async def bring_in(world: World, team: Team, host: Person, guest: Person) -> None:
    """Invite somebody, who accepts; should it be refused, whoever leans on it is told."""
    invited = {"team": team.id, "email": guest.email}
    for person, query, variables in (
        (host, documents.INVITE, invited),
        (guest, documents.ACCEPT, {"team": team.id}),
    ):
        for _ in range(20):
            act = Act("team", person.id, query, variables, person.token)
            if (await send(world, act, person.rng)).final:
                break
            await asyncio.sleep(0.2)


async def _ask(world: World, person: Person, query: str, variables: Json) -> Json:
    act = Act("scene", person.id, query, variables, person.token)
    sent = await send(world, act, person.rng)
    if not sent.answer or sent.outcome not in ("Slot", "Team"):
        raise SoakError(f"the scene is not set: {sent.outcome} {sent.answer}")
    return sent.answer
