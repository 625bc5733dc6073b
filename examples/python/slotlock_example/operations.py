"""The GraphQL documents of the example, each with one root field."""

REGISTER = """mutation ($input: RegisterInput!) {
  register(input: $input) {
    __typename
    ... on Session { accessToken refreshToken }
    ... on Refusal { code message }
  }
}"""

LOGIN = """mutation ($input: LoginInput!) {
  login(input: $input) {
    __typename
    ... on Session { accessToken refreshToken }
    ... on Refusal { code message }
  }
}"""

REFRESH_SESSION = """mutation ($refreshToken: String!) {
  refreshSession(refreshToken: $refreshToken) {
    __typename
    ... on Session { accessToken refreshToken }
    ... on Refusal { code message }
  }
}"""

LIST_SLOTS = """query ($text: String!, $after: String) {
  slots(filter: {text: $text, onlyWithPlacesLeft: true}, first: 20, after: $after) {
    nodes { id title remaining }
    pageInfo { endCursor hasNextPage }
  }
}"""

WATCH_SLOTS = """subscription ($slotIds: [ID!]!) {
  slotAvailability(slotIds: $slotIds) { slotId version remaining status }
}"""

BOOK = """mutation ($input: BookSlotInput!) {
  bookSlot(input: $input) {
    __typename
    ... on Booked { booking { id status heldUntil } }
    ... on Locked { retryAfterMs }
    ... on Refusal { code message }
  }
}"""

CONFIRM = """mutation ($bookingId: ID!, $key: String!) {
  confirmBooking(bookingId: $bookingId, idempotencyKey: $key) {
    __typename
    ... on BookingConfirmed { booking { id status heldUntil } }
    ... on Locked { retryAfterMs }
    ... on Refusal { code message }
  }
}"""

CANCEL = """mutation ($bookingId: ID!, $key: String!) {
  cancelBooking(bookingId: $bookingId, idempotencyKey: $key) {
    __typename
    ... on BookingCancelled { booking { id status heldUntil } }
    ... on Locked { retryAfterMs }
    ... on Refusal { code message }
  }
}"""

JOIN_WAITLIST = """mutation ($slotId: ID!) {
  joinWaitlist(slotId: $slotId) {
    __typename
    ... on WaitlistJoined { position }
    ... on Locked { retryAfterMs }
    ... on Refusal { code message }
  }
}"""

MY_PLACE = """query ($slotId: ID!) {
  slot(id: $slotId) {
    myBooking { id status heldUntil }
    myWaitlistEntry { position }
  }
}"""

FOLLOW_MY_BOOKINGS = """subscription {
  myBookings { action booking { id status heldUntil } }
}"""

REQUEST_TICKET = """mutation ($input: BookSlotInput!) {
  requestBooking(input: $input) {
    __typename
    ... on Ticket { id }
    ... on QueueFull { retryAfterMs }
    ... on Refusal { code message }
  }
}"""

FOLLOW_TICKET = """subscription ($id: ID!) {
  ticket(id: $id) {
    status
    position
    outcome {
      __typename
      ... on Booked { booking { id status heldUntil } }
      ... on Refusal { code message }
    }
  }
}"""

# The tour needs these: organizers create and cancel slots.
CREATE_SLOT = """mutation ($input: CreateSlotInput!) {
  createSlot(input: $input) { __typename ... on Refusal { code message } }
}"""

CANCEL_SLOT = """mutation ($slotId: ID!) {
  cancelSlot(slotId: $slotId) { __typename ... on Refusal { code message } }
}"""
