"""A flood from one address does not keep the clients of another waiting behind it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import orjson
import pytest

from slotlock.api.app_state import open_app_state
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import UserId
from slotlock.graphql.core.errors import RateLimitedError
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import MAX_DOCUMENT_MS_PER_MINUTE
from slotlock.graphql.transport.graphql_server import GraphQLServer
from slotlock.graphql.transport.http import JSON, HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpRequest
from slotlock.infrastructure import request_deadline
from slotlock.infrastructure.fair_scheduler import FairScheduler, Priority
from tests.support.apps.processes import app_settings
from tests.support.clients.client import Json
from tests.support.polling import eventually
from tests.support.stores.users import new_email

FLOOD_SIZE = 6
FLOODER, OTHER = "192.0.2.1", "192.0.2.2"
REGISTER = "mutation($input: RegisterInput!) { register(input: $input) { __typename } }"
LOGIN = "mutation($input: LoginInput!) { login(input: $input) { __typename } }"
CACHED = "{ __typename }"
PASSWORD = "correct horse battery"

numbers = count()
original_find_or_add = FairScheduler._find_or_add


class Deployment:
    """An app without its HTTP server, to which clients at any address send requests."""

    def __init__(self, server: GraphQLServer) -> None:
        self.server = server
        self._endpoint = HttpEndpoint(server, max_body_bytes=64_000, development=False)

    async def send(self, address: str, document: str, **variables: object) -> Json:
        """Send a request, and return the body of the response."""
        body = orjson.dumps({"query": document, "variables": variables})
        post = HttpRequest({"content-type": JSON}, JSON, body, address)
        response: Json = orjson.loads((await self._endpoint.respond(post)).body)
        return response

    async def register(self, address: str, email: str | None = None) -> Json:
        """Register an account, which hashes a password."""
        account = {"name": "Eve", "email": email or new_email(), "password": PASSWORD}
        return await self.send(address, REGISTER, input=account)

    async def sign_in(self, address: str, email: str | None = None) -> Json:
        """Sign in with a password that is checked, by default that of an unknown account."""
        credentials = {"email": email or new_email(), "password": PASSWORD}
        return await self.send(address, LOGIN, input=credentials)

    async def send_new_document(self, address: str) -> Json:
        """Send a document that the server has not seen."""
        return await self.send(address, f"{{ nothing{next(numbers)} }}")


@pytest.fixture
async def deployment(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Deployment]:
    """Yield an app that has read the documents of sign-ins."""
    # On a busy machine, several hashes one after the other take longer than a request may.
    monkeypatch.setattr(request_deadline, "REQUEST_TIMEOUT_S", 60.0)
    settings = app_settings(servers, "fair_turns", redis_budget_ms=1000)
    async with open_app_state(settings, development=False) as state:
        opened = Deployment(state.graphql_server)
        for document in (REGISTER, LOGIN, CACHED):
            await opened.send(OTHER, document)
        yield opened


@pytest.fixture
def in_order_of_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queues serve all jobs in order of arrival."""

    def find_or_add(self: FairScheduler[Any], job: Any) -> Any:
        job.client, job.priority = None, Priority.NORMAL
        return original_find_or_add(self, job)

    monkeypatch.setattr(FairScheduler, "_find_or_add", find_or_add)


async def left_of_flood(queue: Any, flood: Any, other: Any) -> int:
    """Return how many jobs of a flood have not begun when a later one of another address begins."""
    added = record_results(queue, "_find_or_add")
    begun = record_results(queue, "_take_next")
    with paused(queue):
        sent = [asyncio.create_task(flood(FLOODER)) for _ in range(FLOOD_SIZE)]
        await wait_for_jobs(queue, FLOOD_SIZE)
        sent.append(asyncio.create_task(other(OTHER)))
        await wait_for_jobs(queue, FLOOD_SIZE + 1)
    for response in await asyncio.gather(*sent):
        assert "INTERNAL" not in str(response)
    return FLOOD_SIZE - begun.index(added[-1])


@contextmanager
def paused(queue: Any) -> Iterator[None]:
    """Let jobs wait until the end of the context, which starts them."""
    queue._start_jobs = lambda: None
    yield
    del queue._start_jobs
    queue._start_jobs()


def waiting_count(queue: Any) -> int:
    """Return how many jobs wait."""
    return sum(map(queue._waiting_count, Priority))


def let_wait(queue: Any, number: int) -> None:
    """Let only so many jobs wait."""
    queue._job_s = queue._max_wait_s * queue._max_running / number


def record_results(queue: Any, method: str) -> list[object]:
    """Return the list of what a method of a queue returns from now on."""
    results, call = list[object](), getattr(queue, method)

    def recorded(*arguments: object) -> object:
        results.append(call(*arguments))
        return results[-1]

    setattr(queue, method, recorded)
    return results


async def wait_for_jobs(queue: FairScheduler[Any], number: int) -> None:
    """Wait until so many jobs wait."""

    async def are_waiting() -> bool:
        return waiting_count(queue) == number

    await eventually(are_waiting, f"{number} jobs wait")


async def test_a_sign_in_does_not_wait_for_the_registrations_of_another_address(
    deployment: Deployment,
) -> None:
    queue = deployment.server.auth.password_hasher._scheduler
    queue._max_running = 1
    left = await left_of_flood(queue, deployment.register, deployment.sign_in)
    assert left >= FLOOD_SIZE - 2


async def test_a_user_known_at_an_address_does_not_wait_for_unknown_accounts_there(
    deployment: Deployment,
) -> None:
    queue = deployment.server.auth.password_hasher._scheduler
    queue._max_running, queue._begun_count, email = 1, 0, new_email()
    await deployment.register(FLOODER, email)
    sign_in = deployment.sign_in
    assert await left_of_flood(queue, sign_in, lambda _: sign_in(FLOODER, email)) == FLOOD_SIZE
    # Nobody knows the account elsewhere.
    assert await left_of_flood(queue, sign_in, lambda _: sign_in(OTHER, email)) < FLOOD_SIZE


async def test_sign_ins_do_not_wait_for_the_flood_of_one_account_from_their_address(
    deployment: Deployment,
) -> None:
    queue = deployment.server.auth.password_hasher._scheduler
    queue._max_running, flooded = 1, new_email()
    sign_in = deployment.sign_in
    left = await left_of_flood(
        queue, lambda address: sign_in(address, flooded), lambda _: sign_in(FLOODER)
    )
    assert left >= FLOOD_SIZE - 2


@pytest.mark.usefixtures("in_order_of_arrival")
async def test_control_in_order_of_arrival_known_users_wait_for_unknown_accounts(
    deployment: Deployment,
) -> None:
    queue = deployment.server.auth.password_hasher._scheduler
    queue._max_running, email = 1, new_email()
    await deployment.register(FLOODER, email)
    sign_in = deployment.sign_in
    assert await left_of_flood(queue, sign_in, lambda _: sign_in(FLOODER, email)) == 0


async def test_a_registration_does_not_wait_for_the_sign_ins_of_another_address(
    deployment: Deployment,
) -> None:
    queue = deployment.server.auth.password_hasher._scheduler
    queue._max_running = 1
    left = await left_of_flood(queue, deployment.sign_in, deployment.register)
    assert left >= 1


async def test_a_new_document_never_waits_for_another_address(deployment: Deployment) -> None:
    send = deployment.send_new_document
    assert await left_of_flood(deployment.server.new_documents, send, send) >= FLOOD_SIZE - 2


@pytest.mark.usefixtures("in_order_of_arrival")
async def test_control_in_order_of_arrival_clients_wait_for_the_flood_of_another_address(
    deployment: Deployment,
) -> None:
    queue, send = deployment.server.auth.password_hasher._scheduler, deployment.send_new_document
    queue._max_running = 1
    assert await left_of_flood(queue, deployment.register, deployment.sign_in) == 0
    assert await left_of_flood(deployment.server.new_documents, send, send) == 0


async def test_a_document_that_was_read_never_waits_for_new_ones(deployment: Deployment) -> None:
    queue = deployment.server.new_documents
    with paused(queue):
        waiting = asyncio.create_task(deployment.send_new_document(FLOODER))
        await wait_for_jobs(queue, 1)
        assert await deployment.send(FLOODER, CACHED) == {"data": {"__typename": "Query"}}
    await waiting


async def test_new_documents_beyond_those_that_may_wait_are_rejected_with_a_time_to_retry(
    deployment: Deployment,
) -> None:
    let_wait(deployment.server.new_documents, 2)
    responses = await asyncio.gather(*(deployment.send_new_document(FLOODER) for _ in range(5)))
    errors = [response["errors"][0]["extensions"] for response in responses]
    assert {each["code"] for each in errors} == {"RATE_LIMITED", "GRAPHQL_VALIDATION_FAILED"}
    assert all(each["retryAfterMs"] > 0 for each in errors if each["code"] == "RATE_LIMITED")


async def test_sign_ins_beyond_those_that_may_wait_are_refused(deployment: Deployment) -> None:
    queue = deployment.server.auth.password_hasher._scheduler
    let_wait(queue, 2)
    with paused(queue):
        sent = [asyncio.create_task(deployment.register(FLOODER)) for _ in range(4)]
        await eventually(lambda: sum(task.done() for task in sent) == 2, "two are refused")
    responses = await asyncio.gather(*sent)
    types = [response["data"]["register"]["__typename"] for response in responses]
    assert sorted(types) == ["ServerBusy"] * 2 + ["Session"] * 2


async def test_equal_new_documents_of_an_address_are_read_once_and_take_one_place(
    deployment: Deployment,
) -> None:
    queue, document = deployment.server.new_documents, f"{{ nothing{next(numbers)} }}"
    with paused(queue):
        sent = [asyncio.create_task(deployment.send(FLOODER, document)) for _ in range(3)]
        await wait_for_jobs(queue, 1)
    responses = await asyncio.gather(*sent)
    assert responses[0] == responses[1] == responses[2]


async def test_a_user_beyond_their_limit_takes_no_equal_new_document_from_others(
    deployment: Deployment,
) -> None:
    server, text = deployment.server, f"{{ a{next(numbers)}: __typename }}"
    spender, other = UserId("spender"), UserId("other")
    queue, limits = server.new_documents, server.rate_limits
    with paused(queue):
        sent = [asyncio.create_task(server._parse_new(text, spender, FLOODER))]
        await wait_for_jobs(queue, 1)
        sent.append(asyncio.create_task(server._parse_new(text, other, FLOODER)))
        spent = limits._charges({OperationKind.DOCUMENT: MAX_DOCUMENT_MS_PER_MINUTE}, spender, None)
        assert limits._local_limiter.charge(spent) == 0
        await asyncio.sleep(0)
        assert waiting_count(queue) == 1
    refusal, accepted = await asyncio.gather(*sent, return_exceptions=True)
    assert isinstance(refusal, RateLimitedError)
    assert accepted is None
    with pytest.raises(RateLimitedError):
        await server._parse_new(text, spender, FLOODER)
    assert waiting_count(queue) == 0
