"""The GraphQL documents of a campaign; each has one root field.

Those for sessions, campaigns and new slots are the documents of the simulation.
"""

from slotlock.simulation.client.documents import (
    CREATE_CAMPAIGN,
    CREATE_SLOT,
    PUBLISH_CAMPAIGN,
    REFRESH,
)

CREATE, NEW_CAMPAIGN, PUBLISH, REFRESH_SESSION = (
    CREATE_SLOT,
    CREATE_CAMPAIGN,
    PUBLISH_CAMPAIGN,
    REFRESH,
)

BOOKING_FRAGMENT = """fragment B on Booking {
  id status heldUntil createdAt movedFrom movedTo user { id } slot { id }
  history { action at before after heldUntil }
}"""
SLOT_FRAGMENT = "fragment S on Slot { id remaining version capacity }"
REFUSAL_FIELDS = "__typename ... on Refusal { code message }"

BOOK = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  {REFUSAL_FIELDS}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
TICKET_FRAGMENT = f"""fragment T on Ticket {{ id status position outcome {{
  __typename ... on Refusal {{ code message }}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
REQUEST = f"""mutation($input: BookSlotInput!) {{ requestBooking(input: $input) {{
  {REFUSAL_FIELDS}
  ... on Ticket {{ ...T }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {TICKET_FRAGMENT}"""
TICKET_QUERY = f"""query($ticket: ID!) {{
  ticket(id: $ticket) {{ __typename ...T }}
}} {TICKET_FRAGMENT}"""
TICKET_SUBSCRIPTION = (
    f"""subscription($ticket: ID!) {{ ticket(id: $ticket) {{ ...T }} }} {TICKET_FRAGMENT}"""
)
BOOK_ALL = f"""mutation($input: BookSlotsInput!) {{ bookSlots(input: $input) {{
  {REFUSAL_FIELDS}
  ... on AllBooked {{ bookings {{ ...B }} }}
  ... on ClaimsRefused {{ refusals {{ claim refusal {{
    __typename code ... on AlreadyBooked {{ booking {{ id }} }}
  }} }} }}
}} }} {BOOKING_FRAGMENT}"""
MOVE = f"""mutation($input: MoveBookingInput!) {{ moveBooking(input: $input) {{
  {REFUSAL_FIELDS}
  ... on BookingMoved {{ booking {{ ...B }} oldBooking {{ ...B }} slot {{ ...S }} }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""


def _booking_mutation(mutation: str, success_type: str) -> str:
    return f"""mutation($booking: ID!, $key: String, $wait: Int! = 5000) {{
      {mutation}(bookingId: $booking, idempotencyKey: $key, waitMs: $wait) {{
        {REFUSAL_FIELDS} ... on {success_type} {{ booking {{ ...B }} slot {{ ...S }} }}
    }} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""


CONFIRM = _booking_mutation("confirmBooking", "BookingConfirmed")
EXTEND = _booking_mutation("extendHold", "HoldExtended")
CANCEL = _booking_mutation("cancelBooking", "BookingCancelled")

JOIN = f"""mutation($slot: ID!, $wait: Int!) {{
  joinWaitlist(slotId: $slot, waitMs: $wait) {{
  {REFUSAL_FIELDS} ... on WaitlistJoined {{ position entry {{ id }} }}
}} }}"""
LEAVE = f"""mutation($slot: ID!, $wait: Int!) {{
  leaveWaitlist(slotId: $slot, waitMs: $wait) {{ {REFUSAL_FIELDS} }}
}}"""

UPDATE = f"""mutation($input: UpdateSlotInput!) {{
  updateSlot(input: $input) {{ {REFUSAL_FIELDS} ... on Slot {{ id version }} }}
}}"""
CANCEL_SLOT = f"""mutation($slot: ID!) {{ cancelSlot(slotId: $slot) {{ {REFUSAL_FIELDS} }} }}"""

VIEWER = "{ me { __typename id } }"
READ_SLOT = """query($slot: ID!) {
  slot(id: $slot) { __typename id version remaining capacity status }
}"""

UNPUBLISH = f"""mutation($id: ID!) {{
  unpublishCampaign(campaignId: $id) {{ {REFUSAL_FIELDS} ... on Campaign {{ id }} }}
}}"""

TEAM_FIELDS = f"""{REFUSAL_FIELDS} ... on Team {{ id }}"""
CREATE_TEAM = f"""mutation($input: CreateTeamInput!) {{
  createTeam(input: $input) {{ {TEAM_FIELDS} }}
}}"""
INVITE = f"""mutation($team: ID!, $email: EmailAddress!) {{
  inviteToTeam(input: {{teamId: $team, email: $email}}) {{ {TEAM_FIELDS} }}
}}"""
ACCEPT = f"""mutation($team: ID!) {{
  acceptTeamInvitation(teamId: $team) {{ {TEAM_FIELDS} }}
}}"""
LEAVE_TEAM = f"""mutation($team: ID!) {{ leaveTeam(teamId: $team) {{ {REFUSAL_FIELDS} }} }}"""

UPDATE_USER = f"""mutation($input: UpdateUserInput!) {{
  updateUser(input: $input) {{ {REFUSAL_FIELDS} ... on UserUpdated {{ user {{ id }} }} }}
}}"""

AVAILABILITY = """subscription($slots: [ID!]!) {
  slotAvailability(slotIds: $slots) { slotId version capacity remaining isBooked status }
}"""
BOOKING_EVENTS = """subscription { myBookings {
  action at by { id } booking { id status history { action at after } }
} }"""
