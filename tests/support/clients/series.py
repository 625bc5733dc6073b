"""Series of slots, and the periods of a school day, over GraphQL."""

from typing import Any

from tests.support.clients.client import LOCK_WAIT_MS, GraphQLTestClient, Json

SERIES_SLOT_FRAGMENT = """fragment S on Slot {
  id title startTime endTime status capacity remaining seriesId resource version
  campaign { id }
}"""
RESOURCE_TAKEN_FRAGMENT = """fragment T on ResourceTaken {
  meeting { startTime endTime }
  other { id title resource } otherMeeting { startTime endTime }
}"""
CREATE_SERIES = f"""mutation($input: CreateSlotSeriesInput!) {{ createSlotSeries(input: $input) {{
  __typename
  ... on SlotSeriesCreated {{ seriesId slots {{ ...S }} conflicts {{ code ...T }} }}
  ... on SeriesConflicts {{ code conflicts {{ code ...T }} }}
  ... on InvalidInput {{ fields {{ field message }} }}
  ... on CampaignNotFound {{ campaignId }}
}} }} {SERIES_SLOT_FRAGMENT} {RESOURCE_TAKEN_FRAGMENT}"""
UPDATE_SERIES = f"""mutation($input: UpdateSlotInput!) {{ updateSlot(input: $input) {{
  __typename ...S ... on Refusal {{ code }} ... on InvalidInput {{ fields {{ field }} }} ...T
}} }} {SERIES_SLOT_FRAGMENT} {RESOURCE_TAKEN_FRAGMENT}"""
CANCEL_SERIES = f"""mutation($slot: ID!, $scope: SeriesScope!) {{
  cancelSlot(slotId: $slot, scope: $scope) {{ __typename ...S }}
}} {SERIES_SLOT_FRAGMENT}"""
PUBLISH_SERIES = f"""mutation($slot: ID!, $scope: SeriesScope! = THIS) {{
  publishSlot(slotId: $slot, scope: $scope) {{ __typename ...S ...T }}
}} {SERIES_SLOT_FRAGMENT} {RESOURCE_TAKEN_FRAGMENT}"""
SERIES_SLOTS = f"""query($series: ID!, $status: SlotStatus!) {{
  slots(filter: {{seriesId: $series, status: $status, includePast: true}}, first: 100) {{
    nodes {{ ...S }}
  }}
}} {SERIES_SLOT_FRAGMENT}"""

BOOK_SERIES = """mutation($input: BookSeriesInput!) { bookSeries(input: $input) {
  __typename ... on Refusal { code message }
  ... on SeriesBooked {
    seriesId bookings { id status onBehalf slot { id remaining } }
    refusals { claim slotId refusal { code } }
  }
  ... on ClaimsRefused { refusals { claim slotId refusal { code } } }
  ... on SeriesNotFound { seriesId }
  ... on NothingToBook { seriesId }
  ... on SeriesTooLong { slotCount limit }
} }"""

MONDAY_TIMES = {"startTime": "2031-03-17T09:00:00+01:00", "endTime": "2031-03-17T10:00:00+01:00"}


async def create_series(
    organizer: GraphQLTestClient,
    rrule: str = "FREQ=WEEKLY;COUNT=4",
    on_conflict: str = "STRICT",
    **fields: Any,
) -> Json:
    """Create a series in Berlin, on Mondays at nine across a clock change. Returns the result."""
    slot = {"title": "Yoga", "timeZone": "Europe/Berlin", **MONDAY_TIMES, **fields}
    await organizer.import_resources(slot.get("resource"))
    fields = {"slot": slot, "rrule": rrule, "onConflict": on_conflict}
    result: Json = await organizer.execute(CREATE_SERIES, input=fields)
    return result


async def fetch_series_slots(
    organizer: GraphQLTestClient, created: Json, status: str = "PUBLISHED"
) -> list[Json]:
    """Return the slots of a series."""
    found: list[Json] = (
        await organizer.execute(SERIES_SLOTS, series=created["seriesId"], status=status)
    )["nodes"]
    return found


def start_times(slots: list[Json]) -> list[str]:
    """Return month, day and time of the starts of slots in UTC."""
    return [slot["startTime"][5:16] for slot in slots]


async def book_series(user: GraphQLTestClient, series_id: str, **options: Any) -> Json:
    """Book the slots of a series and return the result."""
    fields = {"seriesId": series_id, "waitMs": LOCK_WAIT_MS, **options}
    outcome: Json = await user.execute(BOOK_SERIES, input=fields)
    return outcome


async def update_series(
    organizer: GraphQLTestClient, slot: Json, scope: str, **changes: Any
) -> Json:
    """Change slots of a series and return the result."""
    await organizer.import_resources(changes.get("resource"))
    fields = {"slotId": slot["id"], "scope": scope, **changes}
    outcome: Json = await organizer.execute(UPDATE_SERIES, input=fields)
    return outcome


async def cancel_series(organizer: GraphQLTestClient, slot: Json, scope: str) -> Json:
    """Cancel slots of a series and return the result."""
    outcome: Json = await organizer.execute(CANCEL_SERIES, slot=slot["id"], scope=scope)
    return outcome


SET_PERIODS = """mutation($periods: [PeriodInput!]!) { setPeriods(periods: $periods) { __typename
  ... on PeriodsSaved { unmatchedSlotCount }
  ... on InvalidInput { fields { field code values { name value } } } } }"""


async def set_periods(organizer: GraphQLTestClient, *periods: Json) -> int:
    """Replace all periods of a school day, and return how many slots are in none now."""
    saved = await organizer.execute(SET_PERIODS, periods=periods)
    assert saved["__typename"] == "PeriodsSaved"
    return int(saved["unmatchedSlotCount"])
