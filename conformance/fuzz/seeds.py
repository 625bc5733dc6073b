"""What is there before the fuzzing begins, so that it gets beyond "there is no such slot"."""

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
# A page that is not the last has a cursor that leads somewhere.
CURSOR = "{ %s(first: 1) { pageInfo { endCursor } } }"
PAGED_FIELDS = ("slots", "users", "campaigns", "myBookings")

Seeds = dict[str, list[str]]


def create_seeds(app: ConformanceApp, token: str) -> tuple[Seeds, dict[str, str]]:
    """Ids by what they are of, and a cursor for some lists; all made by whom the token is."""
    with httpx.Client(
        trust_env=False, timeout=60, headers={"Authorization": f"Bearer {token}"}
    ) as http:

        def execute(document: str, **variables: Any) -> Any:
            sent = {"query": document, "variables": variables}
            answer = http.post(app.url, json=sent).json()
            (field,) = answer["data"].values()
            return field

        campaigns = [execute(CAMPAIGN)["id"] for _ in range(3)]
        in_turn = [None, *campaigns] * SLOTS
        slots = [execute(SLOT, campaign=campaign)["id"] for campaign in in_turn[:SLOTS]]
        held = [execute(BOOK, slot=slot, hold=True) for slot in slots[:3]]
        booked = [execute(BOOK, slot=slot, hold=False) for slot in slots[3:6]]
        series = execute(SERIES)
        seeds = {
            "campaigns": campaigns,
            "slots": [*slots, *(slot["id"] for slot in series["slots"])],
            "series": [series["seriesId"]],
            "bookings": [outcome["booking"]["id"] for outcome in (*held, *booked)],
            "tickets": [execute(REQUEST, slot=slot)["id"] for slot in slots[6:9]],
            "teams": [execute(TEAM)["id"] for _ in range(2)],
            "users": [person["id"] for person in execute(USERS)["nodes"]],
        }
        cursors = {name: execute(CURSOR % name)["pageInfo"]["endCursor"] for name in PAGED_FIELDS}
    return seeds, cursors
