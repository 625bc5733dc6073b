"""What the crowd rushes at: a campaign with its slots, opened at one instant."""

from datetime import UTC, datetime, timedelta
from typing import Any

from slotlock.api.simulation.abreast import gather_limited
from slotlock.api.simulation.documents import (
    CREATE_CAMPAIGN,
    CREATE_SLOT,
    OPEN_CAMPAIGN,
    PUBLISH_CAMPAIGN,
)
from slotlock.api.simulation.http import GraphQLClient
from slotlock.api.simulation.ledger import SimulatedSlot
from slotlock.api.simulation.plan import SimulationConfig, SimulationError

# Time for the opening to be known everywhere before it comes.
OPENING_DELAY = timedelta(seconds=2)


async def create_campaign(
    client: GraphQLClient, config: SimulationConfig, token: str
) -> tuple[str, list[SimulatedSlot]]:
    """A published campaign that opens far too late, and its slots, "Bed 1" first."""
    now = datetime.now(UTC)
    campaign = {
        "name": f"Rush of {now:%Y-%m-%d %H:%M:%S}",
        "opensAt": _format_time(now + timedelta(hours=12)),
        "closesAt": _format_time(now + timedelta(hours=24)),
    }
    told = await client.query(CREATE_CAMPAIGN, token, input=campaign)
    campaign_id = str(_require_type(told, "Campaign")["id"])
    begin = now + timedelta(days=2)

    async def create_slot(number: int) -> SimulatedSlot:
        title = f"Bed {number}"
        slot = {
            "title": title,
            "startTime": _format_time(begin),
            "endTime": _format_time(begin + timedelta(hours=1)),
            "capacity": config.places,
            "waitlistCapacity": 0,
            "campaignId": campaign_id,
        }
        told = await client.query(CREATE_SLOT, token, input=slot)
        return SimulatedSlot(_require_type(told, "Slot")["id"], title)

    slots = await gather_limited(create_slot, range(1, config.slots + 1))
    _require_type(await client.query(PUBLISH_CAMPAIGN, token, id=campaign_id), "Campaign")
    return campaign_id, slots


async def set_opening(client: GraphQLClient, token: str, campaign_id: str) -> datetime:
    """Let the campaign open in a moment, and when that is by this machine's clock."""
    opens_at = datetime.now(UTC) + OPENING_DELAY
    change = {"campaignId": campaign_id, "opensAt": _format_time(opens_at)}
    _require_type(await client.query(OPEN_CAMPAIGN, token, input=change), "Campaign")
    return opens_at


def _format_time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _require_type(response: dict[str, Any], type_name: str) -> dict[str, Any]:
    if response["__typename"] != type_name:
        raise SimulationError(f"the organiser is refused: {response['message']}")
    return response
