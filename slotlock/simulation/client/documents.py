"""Every GraphQL document that the simulation sends."""

SIGN_IN = """mutation SignIn($email: EmailAddress!, $password: String!) {
  login(input: {email: $email, password: $password}) {
    __typename
    ... on Session { accessToken user { id } }
    ... on Refusal { message }
  }
}"""
REGISTER = """mutation Register($input: RegisterInput!) {
  register(input: $input) {
    __typename
    ... on Session { accessToken refreshToken user { id } }
    ... on Refusal { message }
  }
}"""
REFRESH = """mutation Refresh($token: String!) {
  refreshSession(refreshToken: $token) {
    __typename
    ... on Session { accessToken refreshToken user { id } }
    ... on Refusal { message }
  }
}"""
CREATE_CAMPAIGN = """mutation CreateCampaign($input: CreateCampaignInput!) {
  createCampaign(input: $input) { __typename ... on Campaign { id } ... on Refusal { message } }
}"""
CREATE_SLOT = """mutation CreateSlot($input: CreateSlotInput!) {
  createSlot(input: $input) { __typename ... on Slot { id } ... on Refusal { message } }
}"""
UPDATE_CAMPAIGN = """mutation UpdateCampaign($input: UpdateCampaignInput!) {
  updateCampaign(input: $input) { __typename ... on Campaign { id } ... on Refusal { message } }
}"""
PUBLISH_CAMPAIGN = """mutation PublishCampaign($id: ID!) {
  publishCampaign(campaignId: $id) { __typename ... on Campaign { id } ... on Refusal { message } }
}"""
UNPUBLISH_CAMPAIGN = """mutation UnpublishCampaign($id: ID!) {
  unpublishCampaign(campaignId: $id) { __typename ... on Refusal { message } }
}"""
CAMPAIGN = "query Campaign($id: ID!) { campaign(id: $id) { id name admission eligibleGroups } }"
COPY_CAMPAIGN = """mutation CopyCampaign($input: CopyCampaignInput!) {
  copyCampaign(input: $input) {
    __typename
    ... on CampaignCopy { campaign { id } }
    ... on Refusal { message }
    ... on CampaignNotCopied { problems { message } }
  }
}"""
SLOTS_OF_CAMPAIGN = """query SlotsOfCampaign($campaign: ID!, $status: SlotStatus!, $after: String) {
  slots(filter: {campaignId: $campaign, status: $status}, first: 100, after: $after) {
    nodes { id title onlyForGroups } pageInfo { hasNextPage endCursor }
  }
}"""
VOUCH_FOR_USER = """mutation VouchForUser($id: ID!) {
  vouchForUser(userId: $id) { __typename ... on Refusal { message } }
}"""
SET_GROUPS = """mutation SetGroups($input: SetGroupsInput!) {
  setGroups(input: $input) { __typename ... on Refusal { message } }
}"""
DELETE_SLOT = """mutation DeleteSlot($id: ID!) {
  deleteSlot(slotId: $id) { __typename ... on Refusal { message } }
}"""
CANCEL_SLOT = """mutation CancelSlot($id: ID!) {
  cancelSlot(slotId: $id) { __typename ... on Refusal { message } }
}"""
DELETE_CAMPAIGN = """mutation DeleteCampaign($id: ID!) {
  deleteCampaign(campaignId: $id) { __typename ... on Refusal { message } }
}"""
ERASE_USER = """mutation EraseUser($id: ID!) {
  eraseUser(userId: $id) { __typename ... on Refusal { message } }
}"""
AVAILABILITY = """subscription Availability($ids: [ID!]!) {
  slotAvailability(slotIds: $ids) { slotId remaining version }
}"""

OUTCOME_FIELDS = """__typename
    ... on Booked { booking { id } }
    ... on Refusal { message }
    ... on Locked { retryAfterMs }"""
BOOK = f"""mutation Book($input: BookSlotInput!) {{
  bookSlot(input: $input) {{
    {OUTCOME_FIELDS}
  }}
}}"""

TICKET_FIELDS = f"""id status position outcome {{
    {OUTCOME_FIELDS}
  }}"""
REQUEST = f"""mutation Request($input: BookSlotInput!) {{
  requestBooking(input: $input) {{
    __typename
    ... on Ticket {{ {TICKET_FIELDS} }}
    ... on Refusal {{ message }}
    ... on QueueFull {{ retryAfterMs }}
  }}
}}"""
TICKET_QUERY = f"query Ticket($id: ID!) {{ ticket(id: $id) {{ {TICKET_FIELDS} }} }}"
TICKET_SUBSCRIPTION = (
    f"subscription TicketUpdates($id: ID!) {{ ticket(id: $id) {{ {TICKET_FIELDS} }} }}"
)

SLOTS = """query Slots($ids: [ID!]!) {
  nodes(ids: $ids) { ... on Slot { id capacity remaining version } }
}"""
ROSTER = """query Roster($id: ID!, $after: String) {
  slotRoster(slotId: $id, first: 100, after: $after) {
    nodes { id user { id } } pageInfo { hasNextPage endCursor }
  }
}"""
MY_BOOKINGS = """query MyBookings($after: String) {
  myBookings(first: 100, after: $after) {
    nodes { id status } pageInfo { hasNextPage endCursor }
  }
}"""
