"""MongoDB is the source of truth: bookings survive servers that hang, die or return."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from tests.support.apps.deployment import (
    app_variant,
    assert_slot_consistent,
    lock_key,
    slot_document,
)
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import SECRET, AppProcess
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.client import (
    BOOK_SLOT,
    CREATE_SLOT,
    GraphQLTestClient,
    Json,
    WebSocketTestClient,
    http_client,
    open_websocket,
    slot_input,
)
from tests.support.polling import eventually, wait_until
from tests.support.stores.users import UserTokens, create_user_tokens
from tests.support.transport.simultaneous_requests import MAX_LUCKY_RUNS, book_simultaneously


@dataclass(frozen=True)
class Town:
    """Servers that a test may harm, and two processes of the app on them."""

    mongo: RestartableServer
    valkey: RestartableServer
    apps: tuple[AppProcess, AppProcess]


@pytest.fixture(scope="module")
def restartable_deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Start the restartable deployment of this file."""
    home = tmp_path_factory.mktemp("restartable")
    with ExitStack() as stack:
        mongo = stack.enter_context(restartable_server(home / "mongo", "mongo"))
        valkey = stack.enter_context(restartable_server(home / "valkey", "valkey"))
        settings = {
            "SLOTLOCK_MONGO_URL": mongo.url,
            "SLOTLOCK_REDIS_URL": valkey.url,
            "SLOTLOCK_SECRET_KEY": SECRET,
        }
        first, second = (
            stack.enter_context(forked_app(settings, home / name)) for name in ("a", "b")
        )
        yield Town(mongo, valkey, (first, second))


@pytest.fixture(autouse=True)
async def whole_again(restartable_deployment: Town) -> AsyncIterator[None]:
    """Restore the servers after each test, and wait until every process uses them."""
    yield
    for server in (restartable_deployment.mongo, restartable_deployment.valkey):
        server.restore()
    for app in restartable_deployment.apps:
        wait_until(lambda url=app.url: status(url) == 200, "the app found its servers again")  # type: ignore[misc]
        organizer = create_user_tokens(app.environment, 0).organizer

        async def accepts_writes(url: str = app.url, organizer: str = organizer) -> bool:
            async with http_client() as http:
                client = GraphQLTestClient(http, url, organizer)
                return "errors" not in await client.send(CREATE_SLOT, input=slot_input())

        await eventually(accepts_writes, "a created slot")


def status(url: str, path: str = "/readyz") -> int:
    """Return the status of a plain page."""
    return httpx.get(url + path, trust_env=False, timeout=10).status_code


def readiness(app: AppProcess) -> tuple[int, str, str]:
    """Return the status of /readyz and what it reports of MongoDB and Redis."""
    page = httpx.get(app.url + "/readyz", trust_env=False, timeout=10)
    reply = page.json()
    assert reply.get("code") == ("UNAVAILABLE" if page.status_code == 503 else None)
    return page.status_code, reply["mongodb"], reply["redis"]


async def new_slot(restartable_deployment: Town, user_tokens: UserTokens, capacity: int) -> str:
    """Create a slot without bookings."""
    async with http_client() as http:
        slot = await GraphQLTestClient(
            http, restartable_deployment.apps[0].url, user_tokens.organizer
        ).create_slot(capacity=capacity)
        return str(slot["id"])


async def rush(
    restartable_deployment: Town, apps: tuple[AppProcess, ...], size: int, capacity: int
) -> tuple[str, list[Json]]:
    """Retry for each user until the outcome is not `Locked`."""
    user_tokens = create_user_tokens(restartable_deployment.apps[0].environment, size)
    slot_id = await new_slot(restartable_deployment, user_tokens, capacity)
    urls = [app.url for app in apps]
    outcomes = await book_simultaneously(urls, user_tokens.members, slot_id)
    while again := [i for i, o in enumerate(outcomes) if o["__typename"] == "Locked"]:
        tokens = [user_tokens.members[i] for i in again]
        for i, outcome in zip(again, await book_simultaneously(urls, tokens, slot_id), strict=True):
            outcomes[i] = outcome
    return slot_id, outcomes


def counts(outcomes: list[Json]) -> Counter[str]:
    """Count the outcomes by type."""
    return Counter(outcome["__typename"] for outcome in outcomes)


@pytest.mark.parametrize("harm", ["kill", "pause"])
async def test_bookings_stay_correct_without_redis_and_readyz_reports_it(
    restartable_deployment: Town, harm: str
) -> None:
    getattr(restartable_deployment.valkey, harm)()
    slot_id, outcomes = await rush(
        restartable_deployment, restartable_deployment.apps, size=50, capacity=10
    )
    assert counts(outcomes) == {"Booked": 10, "SlotFull": 40}
    assert_slot_consistent(slot_document(restartable_deployment.mongo.url, slot_id), 10)
    for app in restartable_deployment.apps:
        assert app.metric("slotlock_redis_degraded") == 1
        assert "Redis is unavailable" in app.log
        assert readiness(app) == (503, "up", "unavailable")
        assert status(app.url, "/readyz?of=mongodb") == 200


async def test_locks_are_used_again_when_redis_is_available_again(
    restartable_deployment: Town,
) -> None:
    restartable_deployment.valkey.kill()
    await rush(restartable_deployment, restartable_deployment.apps, size=4, capacity=1)
    restartable_deployment.valkey.start()
    for app in restartable_deployment.apps:
        wait_until(lambda app=app: app.metric("slotlock_redis_degraded") == 0, "Redis is used")  # type: ignore[misc]
        assert "Redis is available again" in app.log


async def test_a_redis_that_hung_and_continued_has_no_orphaned_lock(
    restartable_deployment: Town,
) -> None:
    user_tokens = create_user_tokens(restartable_deployment.apps[0].environment, 2)
    slot_id = await new_slot(restartable_deployment, user_tokens, 2)
    restartable_deployment.valkey.pause()
    (ada,) = await book_simultaneously(
        [restartable_deployment.apps[0].url], user_tokens.members[:1], slot_id
    )
    assert ada["__typename"] == "Booked"
    restartable_deployment.valkey.resume()
    with Redis.from_url(restartable_deployment.valkey.url) as redis:
        # Well before the ten seconds after which it would run out.
        wait_until(
            lambda: restartable_deployment.apps[0].metric("slotlock_redis_degraded") == 0,
            "Redis is used",
        )
        wait_until(lambda: not redis.exists(lock_key(slot_id)), "no lock is left", timeout_s=5)
    (ben,) = await book_simultaneously(
        [restartable_deployment.apps[0].url], user_tokens.members[1:], slot_id
    )
    assert ben["__typename"] == "Booked"


async def test_control_without_the_version_a_rush_without_redis_oversells(
    restartable_deployment: Town, log_dir: Path
) -> None:
    environment = restartable_deployment.apps[0].environment
    with (
        app_variant(environment, log_dir / "a", without_guards="lock slot-version") as first,
        app_variant(environment, log_dir / "b", without_guards="lock slot-version") as second,
    ):
        restartable_deployment.valkey.kill()
        for _ in range(MAX_LUCKY_RUNS):
            slot_id, _ = await rush(restartable_deployment, (first, second), size=50, capacity=10)
            if slot_document(restartable_deployment.mongo.url, slot_id)["remaining"] < 0:
                break
    assert slot_document(restartable_deployment.mongo.url, slot_id)["remaining"] < 0


async def test_redis_killed_and_flushed_in_the_middle_of_a_rush_costs_no_place(
    restartable_deployment: Town,
) -> None:
    user_tokens = create_user_tokens(restartable_deployment.apps[0].environment, 60)
    slot_id = await new_slot(restartable_deployment, user_tokens, 20)
    async with http_client() as http:

        async def insist(app: AppProcess, token: str) -> Json:
            user = GraphQLTestClient(http, app.url, token)
            while (outcome := await user.book(slot_id))["__typename"] == "Locked":
                await asyncio.sleep(outcome["retryAfterMs"] / 1000)
            return outcome

        users = [
            asyncio.create_task(insist(restartable_deployment.apps[i % 2], token))
            for i, token in enumerate(user_tokens.members)
        ]
        await asyncio.wait(users, return_when=asyncio.FIRST_COMPLETED)
        with Redis.from_url(restartable_deployment.valkey.url) as redis:
            redis.flushall()
        await asyncio.to_thread(restartable_deployment.valkey.kill)
        await asyncio.to_thread(restartable_deployment.valkey.start)
        outcomes = await asyncio.gather(*users)
    assert counts(list(outcomes)) == {"Booked": 20, "SlotFull": 40}
    assert_slot_consistent(slot_document(restartable_deployment.mongo.url, slot_id), 20)


async def assert_retryable(
    app: AppProcess, ada: GraphQLTestClient, opened: WebSocketTestClient, slot_id: str
) -> None:
    """Assert that HTTP and WebSocket return the same retryable error and the socket stays open."""
    sent, url = {"query": BOOK_SLOT, "variables": {"slot": slot_id}}, ada.url + "/graphql"
    await opened.subscribe("1", BOOK_SLOT, slot=slot_id)
    response, message, visitor, refused = await asyncio.gather(
        ada.http.post(url, json=sent, headers=ada.headers),
        opened.receive(),
        GraphQLTestClient(ada.http, ada.url).send("{ slots { nodes { id } } }"),
        closed_with(app, ada.token),
    )
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert (message["id"], message["type"]) == ("1", "error")
    for (error,) in (response.json()["errors"], message["payload"], visitor["errors"]):
        assert "mongo" not in error["message"].lower()
        assert error["extensions"].pop("errorId") in app.log
        assert error["extensions"].pop("requestId")
        assert error["extensions"] == {"code": "INTERNAL", "retryAfterMs": 1_000}
    assert refused == 1013  # after which clients come again; after 1011 they do not
    assert "Traceback" not in app.log


async def closed_with(app: AppProcess, token: str | None) -> int | None:
    """Return how a socket ends for a caller that cannot be authenticated now."""
    with pytest.raises(ConnectionClosed) as closed:
        async with open_websocket(app, token):
            pass
    return closed.value.rcvd.code if closed.value.rcvd else None


@pytest.mark.parametrize("harm", ["kill", "pause"])
async def test_without_mongodb_requests_fail_clearly_and_nothing_is_half_done(
    restartable_deployment: Town, harm: str
) -> None:
    user_tokens = create_user_tokens(restartable_deployment.apps[0].environment, 2)
    slot_id = await new_slot(restartable_deployment, user_tokens, 2)
    async with (
        http_client() as http,
        open_websocket(restartable_deployment.apps[0], user_tokens.members[0]) as opened,
    ):
        ada = GraphQLTestClient(http, restartable_deployment.apps[0].url, user_tokens.members[0])
        getattr(restartable_deployment.mongo, harm)()
        await assert_retryable(restartable_deployment.apps[0], ada, opened, slot_id)
        assert readiness(restartable_deployment.apps[0]) == (503, "unavailable", "up")
        assert status(restartable_deployment.apps[0].url, "/healthz") == 200
        if harm == "kill":
            restartable_deployment.mongo.start()
        else:
            restartable_deployment.mongo.resume()
        wait_until(
            lambda: status(restartable_deployment.apps[0].url) == 200, "work resumes by itself"
        )
        await opened.subscribe("1", "{ me { __typename } }")
        assert await opened.next_result() == {"__typename": "User"}
        outcome = await ada.book(slot_id)
        while outcome["__typename"] == "Locked":  # the act that failed may still hold the lock
            outcome = await ada.book(slot_id)
        # A write that hung may have landed; then it is complete and acknowledged.
        assert outcome["__typename"] in ("Booked", "AlreadyBooked")
    assert_slot_consistent(slot_document(restartable_deployment.mongo.url, slot_id), 1)


async def test_every_acknowledged_booking_survives_the_death_of_mongodb(
    restartable_deployment: Town,
) -> None:
    user_tokens = create_user_tokens(restartable_deployment.apps[0].environment, 30)
    slot_id = await new_slot(restartable_deployment, user_tokens, 30)
    acknowledged = []
    async with http_client() as http:

        async def book(token: str) -> None:
            outcome = (
                await GraphQLTestClient(http, restartable_deployment.apps[0].url, token).send(
                    BOOK_SLOT, slot=slot_id
                )
            ).get("data")
            if outcome and outcome["bookSlot"]["__typename"] == "Booked":
                acknowledged.append(outcome["bookSlot"]["booking"]["id"][-24:])
                if len(acknowledged) == 10:
                    restartable_deployment.mongo.kill()

        for token in user_tokens.members:
            await book(token)
            if len(acknowledged) == 10:
                break
    restartable_deployment.mongo.start()
    document = slot_document(restartable_deployment.mongo.url, slot_id)
    assert {str(booking["id"]) for booking in document["bookings"]} >= set(acknowledged)
