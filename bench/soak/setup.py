"""Setting the scene: people who are signed in, their teams, and slots of every kind."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

from bench.soak.campaign import class_group, create_campaign
from bench.soak.clients import documents
from bench.soak.clients.sending import send
from bench.soak.processes.servers import SoakError
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakTeam, SoakUser, World
from slotlock.auth.tokens import TokenClaims, TokenSigner, new_token_id
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.sessions import NewSession, SessionRepository

MEMBERS = 60
ORGANIZERS = 4
TEAM_SIZE = 4
TEAMS = 20
SECRET = secrets.token_hex(32)

# Slots by how many of them, and how they differ from one of two places tomorrow.
SLOT_KINDS: tuple[tuple[int, Json], ...] = (
    (5, {"holdMinutes": 1}),
    (4, {"capacity": 1}),
    (5, {"waitlistOfferMinutes": 1, "capacity": 3}),
    (6, {"waitlistCapacity": 0, "capacity": 4, "holdMinutes": 1}),
    (2, {"waitlistCapacity": 0, "capacity": 1}),
    (2, {"waitlistCapacity": 3, "capacity": 1}),
    (1, {"capacity": 25}),
    (1, {"cancelCutoffMinutes": 86400, "capacity": 3}),
)
CHOICE_GROUPS = ("bed", "boat", "bus")
SLOTS_PER_CHOICE_GROUP = 3
CAMPAIGN_SLOTS = 8


async def create_scene(world: World) -> None:
    """Everybody and everything that is there before the first act."""
    world.users = await _create_users(world)
    organiser = world.users[-1]
    kinds = [fields for count, fields in SLOT_KINDS for _ in range(count)]
    kinds += [
        {"choiceGroup": choice, "capacity": 3, "waitlistOfferMinutes": 1 if place else None}
        for choice in CHOICE_GROUPS
        for place in range(SLOTS_PER_CHOICE_GROUP)
    ]
    world.rng("kinds").shuffle(kinds)
    for fields in kinds:
        await create_slot(world, organiser, fields)
    await create_campaign(world, organiser)
    for place in range(CAMPAIGN_SLOTS):
        # Two at a time, so that some overlap.
        later = 172_800.0 + 3600.0 * (place // 2)
        fields = {"campaignId": world.campaign, "capacity": 5, "waitlistOfferMinutes": 1}
        await create_slot(
            world, organiser, fields if place % 3 else {**fields, "capacity": 3}, later
        )
    for share in (0.4, 0.7):  # begin in the middle of the run
        await create_slot(world, organiser, {"capacity": 3}, world.seconds * share)
    await _create_teams(world)


async def create_slot(
    world: World, organizer: SoakUser, fields: Json, starts_in_s: float = 172_800.0
) -> None:
    """One more slot. Errors: SoakError."""
    begins = datetime.now(UTC) + timedelta(seconds=starts_in_s)
    times = [at.isoformat(timespec="seconds") for at in (begins, begins + timedelta(hours=1))]
    plain = {"title": "A slot", "startTime": times[0], "endTime": times[1], "capacity": 2}
    answer = await _execute(world, organizer, documents.CREATE, {"input": {**plain, **fields}})
    slot_id = str(answer["id"])[-24:]
    world.slots.append(slot_id)
    if "campaignId" in fields:
        world.campaign_start_offsets_s[slot_id] = starts_in_s
    if "choiceGroup" in fields:
        world.choice_groups[slot_id] = fields["choiceGroup"]


async def _create_users(world: World) -> list[SoakUser]:
    client, database = connect(world.mongo_url)
    try:
        users, sessions, tokens = (
            UserRepository(database),
            SessionRepository(database),
            TokenSigner([SECRET]),
        )
        now = datetime.now(UTC)
        # One token for the whole run: to refresh it is not what is tried here.
        until = now + timedelta(seconds=world.seconds + 1800)
        people = []
        for index in range(MEMBERS + ORGANIZERS):
            role = Role.MEMBER if index < MEMBERS else Role.ORGANIZER
            email = f"person{index}@slotlock.test"
            user = await users.insert(f"Person {index}", email, role, "no password", now)
            if user is None:
                raise SoakError("the database is not new")
            await users.set_groups(user.id, [class_group(index)], None, now)
            opened = await sessions.open(NewSession(user.id, new_token_id(), now, until))
            if opened is None:
                raise SoakError("who was just added cannot sign in")
            token = tokens.sign(
                "access", TokenClaims(user.id, opened[0], new_token_id(), until), now
            )
            rng = world.rng(f"person {index}")
            organises = role is Role.ORGANIZER
            people.append(SoakUser(index, str(user.id), email, token, organises, rng))
        return people
    finally:
        await client.close()


async def _create_teams(world: World) -> None:
    rng = world.rng("teams")
    for number in range(TEAMS):
        members = rng.sample(world.users[:MEMBERS], TEAM_SIZE)
        answer = await _execute(
            world, members[0], documents.CREATE_TEAM, {"name": f"Team {number}"}
        )
        if answer["__typename"] != "Team":
            continue  # they are in as many as they may be
        team = SoakTeam(str(answer["id"]), members)
        await asyncio.gather(
            *(add_team_member(world, team, members[0], one) for one in members[1:])
        )
        world.teams.append(team)


async def add_team_member(world: World, team: SoakTeam, host: SoakUser, guest: SoakUser) -> None:
    """Invite somebody, who accepts; should it be refused, whoever leans on it is told."""
    invited = {"team": team.id, "email": guest.email}
    for person, query, variables in (
        (host, documents.INVITE, invited),
        (guest, documents.ACCEPT, {"team": team.id}),
    ):
        for _ in range(20):
            act = ClientOperation("team", person.id, query, variables, person.token)
            if (await send(world, act, person.rng)).is_final:
                break
            await asyncio.sleep(0.2)


async def _execute(world: World, user: SoakUser, document: str, variables: Json) -> Json:
    act = ClientOperation("scene", user.id, document, variables, user.token)
    sent = await send(world, act, user.rng)
    if not sent.response or sent.outcome not in ("Slot", "Team"):
        raise SoakError(f"the scene is not set: {sent.outcome} {sent.response}")
    return sent.response
