"""GraphQL documents about tickets."""

from tests.support.clients.booking_client import BOOKING_FRAGMENT, REFUSAL_FIELDS, SLOT_FRAGMENT

TICKET_FRAGMENT = f"""fragment T on Ticket {{ id slotId status position requestedAt outcome {{
  __typename {REFUSAL_FIELDS}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ ...B }} }}
  ... on KeyReused {{ idempotencyKey }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
REQUEST_BOOKING = f"""mutation($input: BookSlotInput!) {{ requestBooking(input: $input) {{
  __typename ...T {REFUSAL_FIELDS}
  ... on QueueFull {{ slotId retryAfterMs }} ... on KeyReused {{ idempotencyKey }}
}} }} {TICKET_FRAGMENT}"""
TICKET_BY_ID = f"query($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET_FRAGMENT}"
TICKETS_BY_ID = (
    "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on Ticket { ...T } } } " + TICKET_FRAGMENT
)
WATCH_TICKET = f"subscription($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET_FRAGMENT}"
CANCEL_TICKET = f"""mutation($id: ID!) {{ cancelTicket(ticketId: $id) {{
  __typename {REFUSAL_FIELDS}
  ... on TicketCancelled {{ ticket {{ ...T }} }} ... on TicketNotQueued {{ ticket {{ ...T }} }}
}} }} {TICKET_FRAGMENT}"""
MY_TICKETS = f"""query($first: Int! = 20, $after: String) {{
  myTickets(first: $first, after: $after) {{
    totalCount nodes {{ ...T }} pageInfo {{ hasNextPage endCursor }}
  }}
}} {TICKET_FRAGMENT}"""
