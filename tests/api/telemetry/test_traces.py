"""One trace leads from a request to its commands, and to the worker that served its ticket."""

import asyncio
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app, forked_worker
from tests.support.apps.processes import AppProcess, named_environment
from tests.support.apps.restartable_servers import restartable_server
from tests.support.apps.trace_receiver import TraceReceiver, trace_receiver
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, http_client, open_websocket
from tests.support.clients.exports import create_export_link
from tests.support.polling import wait_until
from tests.support.queue.queued_users import request_ticket
from tests.support.stores.users import UserTokens, create_user_tokens

BOOK = "mutation Book($input: BookSlotInput!) { bookSlot(input: $input) { __typename } }"


@dataclass
class TracedApps:
    """An app that leaves its queue to a worker; both send traces to the receiver."""

    app: AppProcess
    worker: AppProcess
    receiver: TraceReceiver
    tokens: UserTokens


@pytest.fixture(scope="module")
def traced(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TracedApps]:
    """Yield processes that record traces."""
    directory = tmp_path_factory.mktemp("traced")
    with trace_receiver() as receiver, restartable_server(directory / "valkey", "valkey") as valkey:
        environment = {
            **named_environment(servers, "traced"),
            **receiver.environment,
            # Workers of other tests would serve the queue of the shared one.
            "SLOTLOCK_REDIS_URL": valkey.url,
            "SLOTLOCK_QUEUE_WORKER": "off",
            "SLOTLOCK_LOG_FORMAT": "json",
            "SLOTLOCK_ACCESS_LOG": "on",
        }
        with (
            forked_app(environment, directory / "app") as app,
            forked_worker(environment, directory / "worker") as worker,
        ):
            yield TracedApps(app, worker, receiver, create_user_tokens(environment, 8))


def new_trace() -> tuple[str, Json]:
    """Return the id of a new trace, and the header of a client that has begun it."""
    trace_id = secrets.token_hex(16)
    return trace_id, {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"}


def ancestors(span: Span, spans: list[Span]) -> list[str]:
    """Return the names of the spans around a span, from the nearest to the root."""
    by_id = {each.span_id: each for each in spans}
    names = []
    while (parent := by_id.get(span.parent_span_id)) is not None:
        names.append(parent.name)
        span = parent
    return names


def attributes(span: Span) -> dict[str, str]:
    """Return the texts among the attributes of a span."""
    return {each.key: each.value.string_value for each in span.attributes}


def paths(spans: list[Span]) -> set[str]:
    """Return the path from the root to each span."""
    return {" > ".join([*reversed(ancestors(span, spans)), span.name]) for span in spans}


def wait_for_log_line(traced: TracedApps, request_id: str) -> Json:
    """Return the only line of the app's log about a request, which follows its response."""
    found: list[Json] = []

    def is_logged() -> bool:
        lines = [json.loads(line) for line in traced.app.log.splitlines() if line.startswith("{")]
        found[:] = [line for line in lines if line.get("requestId") == request_id]
        return bool(found)

    wait_until(is_logged, "the request is logged")
    (line,) = found
    return line


async def post_booking(
    traced: TracedApps, http: httpx.AsyncClient, slot_id: str, number: int, headers: Json
) -> None:
    response = await http.post(
        f"{traced.app.url}/graphql",
        json={"query": BOOK, "variables": {"input": {"slotId": slot_id}}},
        headers={"authorization": f"Bearer {traced.tokens.members[number]}", **headers},
    )
    assert response.json()["data"]["bookSlot"]["__typename"] == "Booked"


async def request_traced_ticket(
    traced: TracedApps, slot_id: str, number: int, headers: Json
) -> None:
    async with http_client() as own:
        own.headers.update(headers)
        client = BookingClient(own, traced.app.url, traced.tokens.members[number])
        await request_ticket(client, slot_id)


async def test_booking_over_http_is_one_trace(traced: TracedApps, http: httpx.AsyncClient) -> None:
    slot_id = await BookingClient(http, traced.app.url, traced.tokens.organizer).add_slot()
    trace_id, headers = new_trace()
    await post_booking(traced, http, slot_id, 0, headers)
    # A span comes after those within it.
    spans = traced.receiver.wait_for(trace_id, "mutation", "slotlock.batch", "slotlock.publish")
    found = paths(spans)
    batch = "mutation > slotlock.batch"
    assert {
        "mutation",
        f"{batch} > slotlock.lock > EVAL",
        f"{batch} > slotlock.load",
        f"{batch} > slotlock.decide",
        f"{batch} > slotlock.commit",
        f"{batch} > slotlock.publish",
    } <= found
    # The batches of reads and writes, which may serve other requests as well.
    assert any(re.match(rf"{batch} > slotlock.load.* > traced\.\w+$", path) for path in found)
    assert any(re.match(rf"{batch} > slotlock.commit.* > traced\.update$", path) for path in found)
    root = next(span for span in spans if span.name == "mutation")
    assert root.kind == Span.SPAN_KIND_SERVER
    assert root.parent_span_id.hex() in headers["traceparent"]
    assert attributes(root) | {
        "graphql.operation.type": "mutation",
        "graphql.operation.name": "Book",
    } == attributes(root)
    assert traced.receiver.services == {"slotlock"}


async def test_booking_by_socket_is_one_trace(traced: TracedApps, http: httpx.AsyncClient) -> None:
    slot_id = await BookingClient(http, traced.app.url, traced.tokens.organizer).add_slot()
    trace_id, headers = new_trace()
    async with open_websocket(traced.app, traced.tokens.members[1]) as opened:
        payload = {
            "query": BOOK,
            "variables": {"input": {"slotId": slot_id}},
            "extensions": headers,
        }
        await opened.send({"id": "1", "type": "subscribe", "payload": payload})
        assert (await opened.receive())["payload"]["data"]["bookSlot"]["__typename"] == "Booked"
    spans = traced.receiver.wait_for(trace_id, "mutation", "slotlock.batch", "slotlock.commit")
    assert "mutation > slotlock.batch > slotlock.commit" in paths(spans)


async def test_the_trace_of_a_ticket_leads_to_the_worker_that_served_it(
    traced: TracedApps, http: httpx.AsyncClient
) -> None:
    slot_id = await BookingClient(http, traced.app.url, traced.tokens.organizer).add_slot()
    trace_id, headers = new_trace()
    await request_traced_ticket(traced, slot_id, 2, headers)
    names = ("mutation", "process ticket", "slotlock.batch", "slotlock.commit")
    spans = traced.receiver.wait_for(trace_id, *names)
    ticket = next(span for span in spans if span.name == "process ticket")
    assert ticket.kind == Span.SPAN_KIND_CONSUMER
    # The span of the request that enqueued it, which ended long before.
    assert ancestors(ticket, spans)[-1] == "mutation"
    path = "process ticket > slotlock.batch > slotlock.commit"
    assert any(each.endswith(path) for each in paths(spans))


def has_batch(traced: TracedApps, ticket: Span) -> bool:
    """Return whether the span of a ticket is linked with a batch, or is around it."""
    batches = [each for each in list(traced.receiver.spans) if each.name == "slotlock.batch"]
    linked = {link.span_id for link in ticket.links}
    return any(each.span_id in linked or each.parent_span_id == ticket.span_id for each in batches)


async def test_a_batch_of_several_callers_is_linked_with_each_of_them(
    traced: TracedApps, http: httpx.AsyncClient
) -> None:
    organizer = BookingClient(http, traced.app.url, traced.tokens.organizer)
    slot_id = await organizer.add_slot(capacity=8)
    traces = [new_trace() for _ in range(8)]
    await asyncio.gather(
        *(
            request_traced_ticket(traced, slot_id, number, headers)
            for number, (_, headers) in enumerate(traces)
        )
    )
    trace_ids = {trace_id for trace_id, _ in traces}
    for trace_id in trace_ids:
        spans = traced.receiver.wait_for(trace_id, "process ticket")
        (ticket,) = (span for span in spans if span.name == "process ticket")
        wait_until(lambda ticket=ticket: has_batch(traced, ticket), "its batch")  # type: ignore[misc]


async def test_log_lines_and_durations_name_the_trace_of_their_request(
    traced: TracedApps, http: httpx.AsyncClient
) -> None:
    slot_id = await BookingClient(http, traced.app.url, traced.tokens.organizer).add_slot()
    trace_id, headers = new_trace()
    await post_booking(traced, http, slot_id, 3, {**headers, "x-request-id": "my-request"})
    line = wait_for_log_line(traced, "my-request")
    assert line["traceId"] == trace_id
    assert (line["method"], line["path"], line["status"]) == ("POST", "/graphql", 200)
    assert line["operation"] == "Book"
    assert re.fullmatch(r"user_[0-9a-f]{24}", line["userId"])
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    text = (await http.get(f"{traced.app.url}/metrics", headers=accept)).text
    assert re.search(r'slotlock_request_seconds_bucket.*bookSlot.* # \{trace_id="\w{32}"\}', text)


@pytest.mark.parametrize(
    ("method", "path", "logged_path"),
    [
        ("POST", "/users/import", "/users/import"),
        ("POST", "/users/invitations?group=none", "/users/invitations"),
        ("GET", "/personal-data", "/personal-data"),
        ("GET", "/personal-data/none", "/personal-data/{path}"),
        ("GET", "/draws/none/record", "/draws/{path}"),
        ("GET", "/exports/slots/none.csv", "/exports/{path}"),
        ("GET", "/calendars/published.ics", "/calendars/{path}"),
        ("GET", "link", "/exports/{path}"),
    ],
)
async def test_the_log_line_and_the_span_of_every_endpoint_name_its_path_and_caller(
    traced: TracedApps, http: httpx.AsyncClient, method: str, path: str, logged_path: str
) -> None:
    organizer = BookingClient(http, traced.app.url, traced.tokens.organizer)
    trace_id, headers = new_trace()
    headers |= {"x-request-id": f"request-{trace_id}"}
    if path == "link":
        path = await create_export_link(organizer, await organizer.add_slot())
    else:
        headers |= organizer.headers
    await http.request(method, organizer.url + path, headers=headers)
    traced.receiver.wait_for(trace_id, f"{method} {logged_path}")
    line = wait_for_log_line(traced, headers["x-request-id"])
    assert line["path"] == logged_path
    assert line["userId"] == (await organizer.fetch_user_id())
