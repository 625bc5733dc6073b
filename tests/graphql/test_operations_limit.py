"""Ten operations at once on a socket, counted by what runs, not by what is listened to."""

from pathlib import Path

from redis import Redis

from slotlock.api.embedded import Servers
from tests.support.client import BOOK, WATCH, Client, http_client, socket
from tests.support.people import Crowd
from tests.support.processes import AppProcess
from tests.support.stage import Stage, variant

Pair = tuple[AppProcess, AppProcess]


async def test_completing_a_mutation_early_makes_no_room_for_another_while_it_runs(
    servers: Servers, two_apps: Pair, crowd: Crowd, logs: Path
) -> None:
    async with http_client() as http:
        organiser = Client(http, two_apps[0].url, crowd.organiser)
        slot_id = (await organiser.create_slot(capacity=20))["id"]
    with Redis.from_url(servers.redis_url) as redis:
        stage = Stage(redis)
        with variant(two_apps[0].environment, logs, pause="commit", stage=stage) as app:
            async with socket(app, crowd.members[0]) as opened:
                await opened.subscribe("paused", BOOK, slot=slot_id)
                stage.wait_until_reached()
                await opened.send({"id": "paused", "type": "complete"})
                for number in range(9):
                    await opened.subscribe(str(number), WATCH, slots=[slot_id])
                    assert (await opened.receive())["type"] == "next"
                await opened.subscribe("one too many", "{ me { id } }")
                refused = await opened.receive()
                assert refused["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"
                stage.go()
