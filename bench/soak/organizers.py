"""What organizers do to slots, and users to their teams, during the run."""

from bench.soak.clients import documents
from bench.soak.clients.sending import send
from bench.soak.processes.servers import SoakError
from bench.soak.run_log import ClientOperation, Json
from bench.soak.setup import DEFAULT_START_S, SLOT_KINDS, add_team_member, create_slot
from bench.soak.world import SoakUser, World

MAX_ATTEMPTS = 150


async def edit_slots(world: World, user: SoakUser) -> None:
    """Change the capacity of a slot, or sometimes cancel it and create another."""
    slot = user.rng.choice(world.slots)
    if user.rng.random() < 0.03:
        await _replace_slot(world, user, slot)
        return
    changes: Json = {"slotId": f"slot_{slot}", "capacity": user.rng.choice((1, 2, 2, 3, 3, 4, 5))}
    if user.rng.random() < 0.1 and slot not in world.choice_groups:
        changes = {"slotId": f"slot_{slot}", "waitlistOfferMinutes": user.rng.choice((1, None))}
    operation = ClientOperation("edit", user.id, documents.UPDATE, {"input": changes}, user.token)
    world.run_log.operations.append(operation)
    await send(world, operation, user.rng)


async def _replace_slot(world: World, user: SoakUser, slot: str) -> None:
    operation = ClientOperation(
        "cancelSlot", user.id, documents.CANCEL_SLOT, {"slot": f"slot_{slot}"}, user.token
    )
    world.run_log.operations.append(operation)
    await send(world, operation, user.rng)
    fields, starts_in_s = dict(user.rng.choice(SLOT_KINDS)[1]), DEFAULT_START_S
    if slot in world.campaign_start_offsets_s:
        fields = {"campaignId": world.campaign, "capacity": 4, "waitlistOfferMinutes": 1}
        starts_in_s = world.campaign_start_offsets_s[slot]
    if choice_group := world.choice_groups.get(slot):
        fields["choiceGroup"] = choice_group
    for _ in range(MAX_ATTEMPTS):
        try:
            await create_slot(world, user, fields, starts_in_s)
        except SoakError:  # MongoDB is unavailable
            if not await world.sleep(0.5):
                return
        else:
            break
    if slot in world.slots:
        world.slots.remove(slot)


async def rejoin_team(world: World, user: SoakUser) -> None:
    """Leave a team and join it again, so that requests of its members use an old version."""
    team = next((team for team in world.teams if user in team.members[1:]), None)
    if team is None:
        return
    team.members.remove(user)
    operation = ClientOperation(
        "leaveTeam", user.id, documents.LEAVE_TEAM, {"team": team.id}, user.token
    )
    await send(world, operation, user.rng)
    await world.sleep(user.rng.uniform(0, 1))
    await add_team_member(world, team, team.members[0], user)
    team.members.append(user)
