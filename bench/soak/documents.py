"""What the people of a long run say to the desk, as the author of a client would write it."""

BOOKING = """fragment B on Booking {
  id status heldUntil createdAt movedFrom movedTo user { id } slot { id }
  history { what at before after heldUntil }
}"""
SLOT = "fragment S on Slot { id remaining version capacity }"
REFUSAL = "__typename ... on Refusal { code message }"

BOOK = f"""mutation($input: BookSlotInput!) {{ answer: bookSlot(input: $input) {{
  {REFUSAL}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {BOOKING} {SLOT}"""
TICKET = f"""fragment T on Ticket {{ id status place outcome {{
  __typename ... on Refusal {{ code message }}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {BOOKING} {SLOT}"""
REQUEST = f"""mutation($input: BookSlotInput!) {{ answer: requestBooking(input: $input) {{
  {REFUSAL}
  ... on Ticket {{ ...T }}
  ... on AlreadyBooked {{ booking {{ id }} }}
}} }} {TICKET}"""
LOOK = f"""query($ticket: ID!) {{ answer: ticket(id: $ticket) {{ __typename ...T }} }} {TICKET}"""
FOLLOW = f"""subscription($ticket: ID!) {{ ticket(id: $ticket) {{ ...T }} }} {TICKET}"""
BOOK_ALL = f"""mutation($input: BookSlotsInput!) {{ answer: bookSlots(input: $input) {{
  {REFUSAL}
  ... on AllBooked {{ bookings {{ ...B }} }}
  ... on ClaimsRefused {{ refusals {{ claim refusal {{
    __typename code ... on AlreadyBooked {{ booking {{ id }} }}
  }} }} }}
}} }} {BOOKING}"""
MOVE = f"""mutation($input: MoveBookingInput!) {{ answer: moveBooking(input: $input) {{
  {REFUSAL}
  ... on BookingMoved {{ booking {{ ...B }} oldBooking {{ ...B }} slot {{ ...S }} }}
}} }} {BOOKING} {SLOT}"""


def _on_booking(mutation: str, granted: str) -> str:
    return f"""mutation($booking: ID!, $key: String, $wait: Int! = 5000) {{
      answer: {mutation}(bookingId: $booking, idempotencyKey: $key, waitMs: $wait) {{
        {REFUSAL} ... on {granted} {{ booking {{ ...B }} slot {{ ...S }} }}
    }} }} {BOOKING} {SLOT}"""


CONFIRM = _on_booking("confirmBooking", "BookingConfirmed")
EXTEND = _on_booking("extendHold", "HoldExtended")
CANCEL = _on_booking("cancelBooking", "BookingCancelled")

JOIN = f"""mutation($slot: ID!, $wait: Int!) {{
  answer: joinWaitlist(slotId: $slot, waitMs: $wait) {{
  {REFUSAL} ... on WaitlistJoined {{ position entry {{ id }} }}
}} }}"""
LEAVE = f"""mutation($slot: ID!, $wait: Int!) {{
  answer: leaveWaitlist(slotId: $slot, waitMs: $wait) {{ {REFUSAL} }}
}}"""

CREATE = f"""mutation($input: CreateSlotInput!) {{
  answer: createSlot(input: $input) {{ {REFUSAL} ... on Slot {{ id }} }}
}}"""
UPDATE = f"""mutation($input: UpdateSlotInput!) {{
  answer: updateSlot(input: $input) {{ {REFUSAL} ... on Slot {{ id version }} }}
}}"""
CALL_OFF = f"""mutation($slot: ID!) {{ answer: cancelSlot(slotId: $slot) {{ {REFUSAL} }} }}"""

CAMPAIGN = f"""{REFUSAL} ... on Campaign {{ id version }}"""
CREATE_CAMPAIGN = f"""mutation($input: CreateCampaignInput!) {{
  answer: createCampaign(input: $input) {{ {CAMPAIGN} }}
}}"""
PUBLISH, UNPUBLISH = (
    f"""mutation($campaign: ID!) {{ answer: {name}(campaignId: $campaign) {{ {CAMPAIGN} }} }}"""
    for name in ("publishCampaign", "unpublishCampaign")
)

TEAM = f"""{REFUSAL} ... on Team {{ id }}"""
CREATE_TEAM = f"""mutation($name: String!) {{
  answer: createTeam(input: {{name: $name}}) {{ {TEAM} }}
}}"""
INVITE = f"""mutation($team: ID!, $email: EmailAddress!) {{
  answer: inviteToTeam(input: {{teamId: $team, email: $email}}) {{ {TEAM} }}
}}"""
ACCEPT = f"""mutation($team: ID!) {{ answer: acceptTeamInvitation(teamId: $team) {{ {TEAM} }} }}"""
LEAVE_TEAM = f"""mutation($team: ID!) {{ answer: leaveTeam(teamId: $team) {{ {REFUSAL} }} }}"""

WATCH = """subscription($slots: [ID!]!) {
  slotAvailability(slotIds: $slots) { slotId version capacity remaining isBooked status }
}"""
NEWS = """subscription { myBookings {
  what at by { id } booking { id status history { what at after } }
} }"""
