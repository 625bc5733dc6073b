"""Series of slots as an organiser keeps them."""

from typing import Any

from tests.support.client import Client, Json

SLOT = """fragment S on Slot {
  id title startTime endTime status capacity remaining seriesId resource version
  campaign { id }
}"""
TAKEN = """fragment T on ResourceTaken {
  meeting { startTime endTime }
  other { id title resource } otherMeeting { startTime endTime }
}"""
CREATE = f"""mutation($input: CreateSlotSeriesInput!) {{ createSlotSeries(input: $input) {{
  __typename
  ... on SlotSeriesCreated {{ seriesId slots {{ ...S }} conflicts {{ code ...T }} }}
  ... on SeriesConflicts {{ code conflicts {{ code ...T }} }}
  ... on InvalidInput {{ fields {{ field message }} }}
  ... on CampaignNotFound {{ campaignId }}
}} }} {SLOT} {TAKEN}"""
UPDATE = f"""mutation($input: UpdateSlotInput!) {{ updateSlot(input: $input) {{
  __typename ...S ... on Refusal {{ code }} ... on InvalidInput {{ fields {{ field }} }} ...T
}} }} {SLOT} {TAKEN}"""
CANCEL = f"""mutation($slot: ID!, $scope: SeriesScope!) {{
  cancelSlot(slotId: $slot, scope: $scope) {{ __typename ...S }}
}} {SLOT}"""
PUBLISH = f"""mutation($slot: ID!, $scope: SeriesScope! = THIS) {{
  publishSlot(slotId: $slot, scope: $scope) {{ __typename ...S ...T }}
}} {SLOT} {TAKEN}"""
ALL = f"""query($series: ID!, $status: SlotStatus!) {{
  slots(filter: {{seriesId: $series, status: $status}}, first: 100) {{ nodes {{ ...S }} }}
}} {SLOT}"""

MONDAY = {"startTime": "2031-03-17T09:00:00+01:00", "endTime": "2031-03-17T10:00:00+01:00"}


async def series(
    organiser: Client, rrule: str = "FREQ=WEEKLY;COUNT=4", on: str = "STRICT", **fields: Any
) -> Json:
    """What came of creating a series in Berlin, on Mondays at nine over a clock change."""
    slot = {"title": "Yoga", "timeZone": "Europe/Berlin", **MONDAY, **fields}
    wanted = {"slot": slot, "rrule": rrule, "onConflict": on}
    made: Json = await organiser.ask(CREATE, input=wanted)
    return made


async def of_series(organiser: Client, made: Json, status: str = "PUBLISHED") -> list[Json]:
    """The slots of a series as they are now."""
    found: list[Json] = (await organiser.ask(ALL, series=made["seriesId"], status=status))["nodes"]
    return found


def starts(slots: list[Json]) -> list[str]:
    """When slots begin, UTC."""
    return [slot["startTime"][5:16] for slot in slots]


async def update(organiser: Client, slot: Json, scope: str, **changes: Any) -> Json:
    """What came of changing slots of a series."""
    wanted = {"slotId": slot["id"], "scope": scope, **changes}
    outcome: Json = await organiser.ask(UPDATE, input=wanted)
    return outcome


async def call_off(organiser: Client, slot: Json, scope: str) -> Json:
    """What came of calling slots of a series off."""
    outcome: Json = await organiser.ask(CANCEL, slot=slot["id"], scope=scope)
    return outcome
