"""What organisers do to slots and what becomes of teams while everybody books."""

from bench.soak import documents
from bench.soak.ledger import Act, Json
from bench.soak.scene import KINDS, bring_in, open_slot
from bench.soak.sending import send
from bench.soak.servers import SoakError
from bench.soak.world import Person, World

MOST_TRIES = 150


async def keep_slots(world: World, me: Person) -> None:
    """More places or fewer; now and then a slot is called off and another opened."""
    slot = me.rng.choice(world.slots)
    if me.rng.random() < 0.03:
        await _call_off(world, me, slot)
        return
    changes: Json = {"slotId": f"slot_{slot}", "capacity": me.rng.choice((1, 2, 2, 3, 3, 4, 5))}
    if me.rng.random() < 0.1 and slot not in world.choices:
        changes = {"slotId": f"slot_{slot}", "waitlistOfferMinutes": me.rng.choice((1, None))}
    act = Act("edit", me.id, documents.UPDATE, {"input": changes}, me.token)
    world.ledger.acts.append(act)
    await send(world, act, me.rng)


async def _call_off(world: World, me: Person, slot: str) -> None:
    act = Act("callOff", me.id, documents.CALL_OFF, {"slot": f"slot_{slot}"}, me.token)
    world.ledger.acts.append(act)
    await send(world, act, me.rng)
    fields, later = dict(me.rng.choice(KINDS)[1]), 172_800.0
    if slot in world.in_campaign:
        fields = {"campaignId": world.campaign, "capacity": 4, "waitlistOfferMinutes": 1}
        later = world.in_campaign[slot]
    if choice := world.choices.get(slot):
        fields["choice"] = choice
    for _ in range(MOST_TRIES):
        try:
            await open_slot(world, me, fields, later)
        except SoakError:  # MongoDB is away
            if not await world.sleep(0.5):
                return
        else:
            break
    if slot in world.slots:
        world.slots.remove(slot)


async def reshuffle_team(world: World, me: Person) -> None:
    """Leave a team and come back, so that what others saw of it is stale."""
    team = next((team for team in world.teams if me in team.members[1:]), None)
    if team is None:
        return
    team.members.remove(me)
    act = Act("leaveTeam", me.id, documents.LEAVE_TEAM, {"team": team.id}, me.token)
    await send(world, act, me.rng)
    await world.sleep(me.rng.uniform(0, 1))
    await bring_in(world, team, team.members[0], me)
    team.members.append(me)
