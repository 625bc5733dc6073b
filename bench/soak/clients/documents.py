"""The GraphQL documents of the clients; the alias `result` names the root field of each."""

BOOKING_FRAGMENT = """fragment B on Booking {
  id status heldUntil createdAt movedFrom movedTo user { id } slot { id }
  history { action at before after heldUntil }
}"""
SLOT_FRAGMENT = "fragment S on Slot { id remaining version capacity }"
REFUSAL_FIELDS = "__typename ... on Refusal { code message }"

BOOK = f"""mutation($input: BookSlotInput!) {{ result: bookSlot(input: $input) {{
  {REFUSAL_FIELDS}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
TICKET_FRAGMENT = f"""fragment T on Ticket {{ id status position outcome {{
  __typename ... on Refusal {{ code message }}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
REQUEST = f"""mutation($input: BookSlotInput!) {{ result: requestBooking(input: $input) {{
  {REFUSAL_FIELDS}
  ... on Ticket {{ ...T }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {TICKET_FRAGMENT}"""
TICKET_QUERY = f"""query($ticket: ID!) {{
  result: ticket(id: $ticket) {{ __typename ...T }}
}} {TICKET_FRAGMENT}"""
TICKET_SUBSCRIPTION = (
    f"""subscription($ticket: ID!) {{ ticket(id: $ticket) {{ ...T }} }} {TICKET_FRAGMENT}"""
)
BOOK_ALL = f"""mutation($input: BookSlotsInput!) {{ result: bookSlots(input: $input) {{
  {REFUSAL_FIELDS}
  ... on AllBooked {{ bookings {{ ...B }} }}
  ... on ClaimsRefused {{ refusals {{ claim refusal {{
    __typename code ... on AlreadyBooked {{ booking {{ id }} }}
  }} }} }}
}} }} {BOOKING_FRAGMENT}"""
MOVE = f"""mutation($input: MoveBookingInput!) {{ result: moveBooking(input: $input) {{
  {REFUSAL_FIELDS}
  ... on BookingMoved {{ booking {{ ...B }} oldBooking {{ ...B }} slot {{ ...S }} }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""


def _booking_mutation(mutation: str, success_type: str) -> str:
    return f"""mutation($booking: ID!, $key: String, $wait: Int! = 5000) {{
      result: {mutation}(bookingId: $booking, idempotencyKey: $key, waitMs: $wait) {{
        {REFUSAL_FIELDS} ... on {success_type} {{ booking {{ ...B }} slot {{ ...S }} }}
    }} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""


CONFIRM = _booking_mutation("confirmBooking", "BookingConfirmed")
EXTEND = _booking_mutation("extendHold", "HoldExtended")
CANCEL = _booking_mutation("cancelBooking", "BookingCancelled")

JOIN = f"""mutation($slot: ID!, $wait: Int!) {{
  result: joinWaitlist(slotId: $slot, waitMs: $wait) {{
  {REFUSAL_FIELDS} ... on WaitlistJoined {{ position entry {{ id }} }}
}} }}"""
LEAVE = f"""mutation($slot: ID!, $wait: Int!) {{
  result: leaveWaitlist(slotId: $slot, waitMs: $wait) {{ {REFUSAL_FIELDS} }}
}}"""

CREATE = f"""mutation($input: CreateSlotInput!) {{
  result: createSlot(input: $input) {{ {REFUSAL_FIELDS} ... on Slot {{ id }} }}
}}"""
UPDATE = f"""mutation($input: UpdateSlotInput!) {{
  result: updateSlot(input: $input) {{ {REFUSAL_FIELDS} ... on Slot {{ id version }} }}
}}"""
CANCEL_SLOT = (
    f"""mutation($slot: ID!) {{ result: cancelSlot(slotId: $slot) {{ {REFUSAL_FIELDS} }} }}"""
)

REFRESH_SESSION = f"""mutation($token: String!) {{
  result: refreshSession(refreshToken: $token) {{
  {REFUSAL_FIELDS} ... on Session {{ accessToken refreshToken }}
}} }}"""
VIEWER = "{ result: me { __typename id } }"

CAMPAIGN_FIELDS = f"""{REFUSAL_FIELDS} ... on Campaign {{ id version }}"""
CREATE_CAMPAIGN = f"""mutation($input: CreateCampaignInput!) {{
  result: createCampaign(input: $input) {{ {CAMPAIGN_FIELDS} }}
}}"""
PUBLISH, UNPUBLISH = (
    f"""mutation($campaign: ID!) {{
  result: {name}(campaignId: $campaign) {{ {CAMPAIGN_FIELDS} }}
}}"""
    for name in ("publishCampaign", "unpublishCampaign")
)

TEAM_FIELDS = f"""{REFUSAL_FIELDS} ... on Team {{ id }}"""
CREATE_TEAM = f"""mutation($name: String!) {{
  result: createTeam(input: {{name: $name}}) {{ {TEAM_FIELDS} }}
}}"""
INVITE = f"""mutation($team: ID!, $email: EmailAddress!) {{
  result: inviteToTeam(input: {{teamId: $team, email: $email}}) {{ {TEAM_FIELDS} }}
}}"""
ACCEPT = f"""mutation($team: ID!) {{
  result: acceptTeamInvitation(teamId: $team) {{ {TEAM_FIELDS} }}
}}"""
LEAVE_TEAM = (
    f"""mutation($team: ID!) {{ result: leaveTeam(teamId: $team) {{ {REFUSAL_FIELDS} }} }}"""
)

AVAILABILITY = """subscription($slots: [ID!]!) {
  slotAvailability(slotIds: $slots) { slotId version capacity remaining isBooked status }
}"""
BOOKING_EVENTS = """subscription { myBookings {
  action at by { id } booking { id status history { action at after } }
} }"""
