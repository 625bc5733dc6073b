"""The setup of a run: users with sessions, their teams, and slots of every kind."""

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

from bench.soak.campaign import class_group, create_campaign
from bench.soak.clients import documents
from bench.soak.clients.client_user import Accounts
from bench.soak.clients.sending import send
from bench.soak.processes.servers import SoakError
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakTeam, SoakUser, World
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import repositories_on

MEMBERS = 60
ORGANIZERS = 4
TEAM_SIZE = 4
TEAMS = 20
SECRET = secrets.token_hex(32)
DEFAULT_START_S = 172_800.0
INVITATION_ATTEMPTS = 20

# The number of slots of each kind, and their differences from a slot with two places.
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


async def set_up(world: World) -> None:
    """Create all users, slots and teams; raises SoakError."""
    world.users = await _create_users(world)
    organizer = world.users[-1]
    kinds = [fields for count, fields in SLOT_KINDS for _ in range(count)]
    kinds += [
        {"choiceGroup": name, "capacity": 3, "waitlistOfferMinutes": 1 if number else None}
        for name in CHOICE_GROUPS
        for number in range(SLOTS_PER_CHOICE_GROUP)
    ]
    world.rng("kinds").shuffle(kinds)
    for fields in kinds:
        await create_slot(world, organizer, fields)
    await create_campaign(world, organizer)
    for number in range(CAMPAIGN_SLOTS):
        # Two slots at a time overlap.
        starts_in_s = DEFAULT_START_S + 3600.0 * (number // 2)
        capacity = 5 if number % 3 else 3
        fields = {"campaignId": world.campaign, "capacity": capacity, "waitlistOfferMinutes": 1}
        await create_slot(world, organizer, fields, starts_in_s)
    for share in (0.4, 0.7):  # these slots start during the run
        await create_slot(world, organizer, {"capacity": 3}, world.seconds * share)
    await _create_teams(world)


async def create_slot(
    world: World, organizer: SoakUser, fields: Json, starts_in_s: float = DEFAULT_START_S
) -> None:
    """Create a slot and add it to the world; raises SoakError."""
    start = datetime.now(UTC) + timedelta(seconds=starts_in_s)
    end = start + timedelta(hours=1)
    defaults = {
        "title": "A slot",
        "startTime": start.isoformat(timespec="seconds"),
        "endTime": end.isoformat(timespec="seconds"),
        "capacity": 2,
    }
    variables = {"input": {**defaults, **fields}}
    response = await _execute(world, organizer, documents.CREATE, variables)
    slot_id = str(response["id"])[-24:]
    world.slots.append(slot_id)
    if "campaignId" in fields:
        world.campaign_start_offsets_s[slot_id] = starts_in_s
    if "choiceGroup" in fields:
        world.choice_groups[slot_id] = fields["choiceGroup"]


async def _create_users(world: World) -> list[SoakUser]:
    client, database = connect(world.mongo_url)
    try:
        repositories = repositories_on(database)
        now = datetime.now(UTC)
        # One token lasts for the whole run, because no check covers its renewal.
        accounts = Accounts(repositories, SECRET, now, timedelta(seconds=world.seconds + 1800))
        users = []
        for index in range(MEMBERS + ORGANIZERS):
            role = Role.MEMBER if index < MEMBERS else Role.ORGANIZER
            email = f"user{index}@slotlock.test"
            name = f"user {index}"
            session = await accounts.create(name, email, role)
            user_id = session.user.id
            await repositories.users.set_groups(user_id, [class_group(index)], None, now)
            users.append(
                SoakUser(
                    name=name,
                    id=str(user_id),
                    token=session.token,
                    rng=world.rng(name),
                    email=email,
                    is_organizer=role is Role.ORGANIZER,
                )
            )
        return users
    finally:
        await client.close()


async def _create_teams(world: World) -> None:
    rng = world.rng("teams")
    for number in range(TEAMS):
        members = rng.sample(world.users[:MEMBERS], TEAM_SIZE)
        response = await _execute(
            world, members[0], documents.CREATE_TEAM, {"name": f"Team {number}"}
        )
        team = SoakTeam(str(response["id"]), members)
        await asyncio.gather(
            *(add_team_member(world, team, members[0], member) for member in members[1:])
        )
        world.teams.append(team)


async def add_team_member(world: World, team: SoakTeam, host: SoakUser, guest: SoakUser) -> None:
    """Invite a user and accept; after a refusal, bookings for that user are refused, too."""
    invitation = {"team": team.id, "email": guest.email}
    for user, document, variables in (
        (host, documents.INVITE, invitation),
        (guest, documents.ACCEPT, {"team": team.id}),
    ):
        for _ in range(INVITATION_ATTEMPTS):
            operation = ClientOperation("team", user.id, document, variables, user.token)
            if (await send(world, operation, user.rng)).is_final:
                break
            await asyncio.sleep(0.2)


async def _execute(world: World, user: SoakUser, document: str, variables: Json) -> Json:
    operation = ClientOperation("setup", user.id, document, variables, user.token)
    sent = await send(world, operation, user.rng)
    if not sent.response or sent.outcome not in ("Slot", "Team"):
        raise SoakError(f"the setup failed: {sent.outcome} {sent.response}")
    return sent.response
