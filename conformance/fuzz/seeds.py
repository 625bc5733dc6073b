"""Creates data before the fuzzing, so that its requests find existing objects."""

from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import httpx

from conformance.apps import ConformanceApp

SLOTS = 12
SLOT_TIMES = 'startTime: "2081-05-05T09:00:00Z", endTime: "2081-05-05T10:00:00Z"'
CAMPAIGN = """mutation {
  createCampaign(input: {
    name: "Swimming", opensAt: "2021-01-01T00:00:00Z", closesAt: "2091-01-01T00:00:00Z",
    published: true
  }) { ... on Campaign { id } }
}"""
SLOT = f"""mutation ($campaign: ID) {{
  createSlot(input: {{title: "A slot", capacity: 9, campaignId: $campaign, {SLOT_TIMES}}}) {{
    ... on Slot {{ id }}
  }}
}}"""
SERIES = f"""mutation {{
  createSlotSeries(
    input: {{slot: {{title: "Weekly", {SLOT_TIMES}}}, rrule: "FREQ=WEEKLY;COUNT=3"}}
  ) {{
    ... on SlotSeriesCreated {{ seriesId slots {{ id }} }}
  }}
}}"""
BOOK = """mutation ($slot: ID!, $hold: Boolean!) {
  bookSlot(input: {slotId: $slot, hold: $hold}) { ... on Booked { booking { id } } }
}"""
REQUEST = """mutation ($slot: ID!) {
  requestBooking(input: {slotId: $slot}) { ... on Ticket { id } }
}"""
TEAM = 'mutation { createTeam(input: {name: "Lions"}) { ... on Team { id } } }'
USERS = "{ users(first: 50) { nodes { id } } }"
CALLER = "{ me { id } }"
# The first of several pages has a valid cursor.
CURSOR = "{ %s(first: 1) { pageInfo { endCursor } } }"
PAGED_FIELDS = ("slots", "users", "campaigns", "myBookings")


@dataclass(frozen=True, slots=True)
class Seeds:
    """Ids by kind, cursors by list, and the id of the user who created the objects."""

    ids: dict[str, list[str]]
    cursors: dict[str, str]
    caller_id: str


def create_seeds(app: ConformanceApp, token: str) -> Seeds:
    """Create objects as the token's user."""
    with httpx.Client(
        trust_env=False, timeout=60, headers={"Authorization": f"Bearer {token}"}
    ) as http:

        def execute(document: str, **variables: Any) -> Any:
            body = {"query": document, "variables": variables}
            response = http.post(app.url, json=body).json()
            (field,) = response["data"].values()
            return field

        campaigns = [execute(CAMPAIGN)["id"] for _ in range(3)]
        slot_campaigns = list(islice(cycle([None, *campaigns]), SLOTS))
        slots = [execute(SLOT, campaign=campaign)["id"] for campaign in slot_campaigns]
        held = [execute(BOOK, slot=slot, hold=True) for slot in slots[:3]]
        booked = [execute(BOOK, slot=slot, hold=False) for slot in slots[3:6]]
        series = execute(SERIES)
        caller_id = execute(CALLER)["id"]
        users = [user["id"] for user in execute(USERS)["nodes"] if user["id"] != caller_id]
        ids = {
            "campaigns": campaigns,
            "slots": [*slots, *(slot["id"] for slot in series["slots"])],
            "series": [series["seriesId"]],
            "bookings": [outcome["booking"]["id"] for outcome in (*held, *booked)],
            "tickets": [execute(REQUEST, slot=slot)["id"] for slot in slots[6:9]],
            "teams": [execute(TEAM)["id"] for _ in range(2)],
            "users": users,
        }
        cursors = {name: execute(CURSOR % name)["pageInfo"]["endCursor"] for name in PAGED_FIELDS}
    return Seeds(ids, cursors, caller_id)
