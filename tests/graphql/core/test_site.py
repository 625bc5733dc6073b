"""What everybody may read before they sign in: the site, and the time of the server."""

from datetime import UTC, datetime, timedelta

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
