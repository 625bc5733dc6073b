"""What the crowd rushes at: a campaign with its slots, opened at one instant."""

from datetime import UTC, datetime, timedelta
from typing import Any

from slotlock.api.simulation.abreast import abreast
from slotlock.api.simulation.documents import (
    CREATE_CAMPAIGN,
    CREATE_SLOT,
    OPEN_CAMPAIGN,
    PUBLISH_CAMPAIGN,
)
from slotlock.api.simulation.http import Server
from slotlock.api.simulation.ledger import Slot
from slotlock.api.simulation.plan import Plan, SimulationError

# Time for the opening to be known everywhere before it comes.
OPENS_IN = timedelta(seconds=2)


async def build(server: Server, plan: Plan, token: str) -> tuple[str, list[Slot]]:
    """A published campaign that opens far too late, and its slots, "Bed 1" first."""
    now = datetime.now(UTC)
    campaign = {
        "name": f"Rush of {now:%Y-%m-%d %H:%M:%S}",
        "opensAt": _text(now + timedelta(hours=12)),
        "closesAt": _text(now + timedelta(hours=24)),
    }
    told = await server.ask(CREATE_CAMPAIGN, token, input=campaign)
    campaign_id = str(_made(told, "Campaign")["id"])
    begin = now + timedelta(days=2)

    async def add(number: int) -> Slot:
        title = f"Bed {number}"
        slot = {
            "title": title,
            "startTime": _text(begin),
            "endTime": _text(begin + timedelta(hours=1)),
            "capacity": plan.places,
            "waitlistCapacity": 0,
            "campaignId": campaign_id,
        }
        told = await server.ask(CREATE_SLOT, token, input=slot)
        return Slot(_made(told, "Slot")["id"], title)

    slots = await abreast(add, range(1, plan.slots + 1))
    _made(await server.ask(PUBLISH_CAMPAIGN, token, id=campaign_id), "Campaign")
    return campaign_id, slots


async def set_opening(server: Server, token: str, campaign_id: str) -> datetime:
    """Let the campaign open in a moment, and when that is by this machine's clock."""
    opens_at = datetime.now(UTC) + OPENS_IN
    change = {"campaignId": campaign_id, "opensAt": _text(opens_at)}
    _made(await server.ask(OPEN_CAMPAIGN, token, input=change), "Campaign")
    return opens_at


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _made(told: dict[str, Any], wanted: str) -> dict[str, Any]:
    if told["__typename"] != wanted:
        raise SimulationError(f"the organiser is refused: {told['message']}")
    return told
