"""Ten operations at once on a socket, counted by what runs, not by what is listened to."""

from pathlib import Path

from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import PausePoint, app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import (
    BOOK_SLOT,
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    http_client,
    open_websocket,
)
from tests.support.stores.users import UserTokens

Pair = tuple[AppProcess, AppProcess]


async def test_completing_a_mutation_early_makes_no_room_for_another_while_it_runs(
    servers: EmbeddedServers, two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    async with http_client() as http:
        organiser = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        slot_id = (await organiser.create_slot(capacity=20))["id"]
    with Redis.from_url(servers.redis_url) as redis:
        stage = PausePoint(redis)
        with app_variant(
            two_apps[0].environment, log_dir, pause_at="commit", pause_point=stage
        ) as app:
            async with open_websocket(app, user_tokens.members[0]) as opened:
                await opened.subscribe("paused", BOOK_SLOT, slot=slot_id)
                stage.wait_until_reached()
                await opened.send({"id": "paused", "type": "complete"})
                for number in range(9):
                    await opened.subscribe(str(number), WATCH_AVAILABILITY, slots=[slot_id])
                    assert (await opened.receive())["type"] == "next"
                await opened.subscribe("one too many", "{ me { id } }")
                refused = await opened.receive()
                assert refused["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
                stage.resume()
