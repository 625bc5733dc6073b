"""What everybody may read before they sign in: the site, and the time of the server."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import httpx

from tests.support.apps.processes import ADMIN_EMAIL, ADMIN_PASSWORD, AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient


async def test_everybody_may_read_the_site(anonymous: GraphQLTestClient) -> None:
    site = "{ site { name registration color logoUrl imprintUrl privacyUrl } }"
    assert await anonymous.execute(site) == {
        "name": "slotlock",
        "registration": "OPEN",
        **dict.fromkeys(("color", "logoUrl", "imprintUrl", "privacyUrl")),
    }


async def test_the_time_of_the_server_is_that_by_which_it_decides(
    anonymous: GraphQLTestClient,
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)  # the clock of the host may differ
    times = [datetime.fromisoformat(await anonymous.execute("{ serverTime }")) for _ in range(2)]
    assert before <= times[0] <= times[1] <= datetime.now(UTC) + timedelta(seconds=2)
    assert times[0].utcoffset() == timedelta(0)


LOGIN = """mutation($input: LoginInput!) { login(input: $input) {
  ... on Session { accessToken }
} }"""
VALUES = "name color logoUrl imprintUrl privacyUrl locale timeZone mailClosing formOfAddress"
SETUP = f"{{ siteSetup {{ own {{ {VALUES} }} settings {{ {VALUES} }} }} }}"
UPDATE = f"""mutation($input: UpdateSiteInput!) {{ updateSite(input: $input) {{
  __typename ... on SiteSetup {{ own {{ {VALUES} }} }} ... on InvalidInput {{ fields {{ field }} }}
}} }}"""
PREVIEWS = """query($site: UpdateSiteInput) { mailPreviews(site: $site) { kind text } }"""
LOG = """{ auditLog(first: 1, filter: {actions: [SITE_EDITED]}) {
  nodes { by { name } edits { field before after } }
} }"""


async def test_admins_set_up_the_site_organizers_read_it_and_members_do_neither(
    app: AppProcess, http: httpx.AsyncClient, organizer: BookingClient, member: BookingClient
) -> None:
    nothing = dict.fromkeys(VALUES.split())
    settings = {**nothing, "name": "slotlock", "timeZone": "UTC"}
    assert await organizer.execute(SETUP) == {"own": nothing, "settings": settings}
    assert await member.error_code(SETUP) == "FORBIDDEN"
    changes = {"name": " Park School ", "color": "#aa3300"}
    for client in (organizer, member):
        assert await client.error_code(UPDATE, input=changes) == "FORBIDDEN"
    credentials = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
    session = await GraphQLTestClient(http, app.url).execute(LOGIN, input=credentials)
    admin = GraphQLTestClient(http, app.url, session["accessToken"])
    wrong = {"name": "x", "color": "red", "locale": "fr", "logo": "AAAA"}
    refused = await admin.execute(UPDATE, input=wrong)
    assert [each["field"] for each in refused["fields"]] == ["color", "locale", "logo"]
    own = {**nothing, "name": "Park School", "color": "#aa3300"}
    try:
        saved = await admin.execute(UPDATE, input=changes)
        assert (saved["__typename"], saved["own"]) == ("SiteSetup", own)
        assert await organizer.execute(SETUP) == {"own": own, "settings": settings}
        shown = await member.execute("{ site { name color timeZone } }")
        assert shown == {**changes, "name": "Park School", "timeZone": "UTC"}
        page = (await http.get(f"{app.url}/board")).text
        assert "<title>Park School</title>" in page
        assert "<style>:root {" in page
        logo = b"\xff\xd8\xff\xe0"
        with_logo = await admin.execute(UPDATE, input={"logo": b64encode(logo).decode()})
        address = with_logo["own"]["logoUrl"]
        assert await member.execute("{ site { logoUrl } }") == {"logoUrl": address}
        response = await http.get(app.url + address)
        assert (response.content, response.headers["content-type"]) == (logo, "image/jpeg")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "immutable" in response.headers["cache-control"]
        assert (await http.get(f"{app.url}/board/logo/{'0' * 16}")).status_code == 404
        await admin.execute(UPDATE, input={"formOfAddress": "FORMAL"})
        assert await member.execute("{ site { formOfAddress } }") == {"formOfAddress": "FORMAL"}
        assert (
            "&quot;formOfAddress&quot;: &quot;FORMAL&quot;"
            in (await http.get(f"{app.url}/board")).text
        )
        # What is left out stays, and null takes back.
        taken = await admin.execute(
            UPDATE, input={"color": None, "logo": None, "formOfAddress": None}
        )
        assert taken["own"] == {**own, "color": None}
    finally:
        await admin.execute(UPDATE, input=dict.fromkeys(changes))
    assert await member.execute("{ site { name } }") == {"name": "slotlock"}
    [entry] = (await organizer.execute(LOG))["nodes"]
    assert entry["edits"] == [{"field": "name", "before": "Park School", "after": None}]
    assert entry["by"] is not None
    # A preview shows what a change would say, and stores nothing.
    previews = await organizer.execute(PREVIEWS, site={"name": "Lake School"})
    assert all("Lake School" in each["text"] for each in previews)
    assert await organizer.error_code(PREVIEWS, site={"timeZone": "Lake"}) == "BAD_USER_INPUT"
    assert (await organizer.execute(SETUP))["own"] == nothing
