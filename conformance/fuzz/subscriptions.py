"""The subscriptions, which schemathesis does not know: it is told that they are queries.

Each goes over one WebSocket, followed by a query whose answer says that the socket lives on.
"""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import schemathesis
from graphql import GraphQLSchema, print_schema
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import APIOperation
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from conformance.apps import ConformanceApp
from conformance.fuzz.judgment import judge
from conformance.fuzz.scalars import register
from conformance.table import Row
from slotlock.graphql.schema.schema import executable_schema

ANSWER_TIMEOUT_S = 20.0
LIVENESS_QUERY = {"query": "{ __typename }"}


def fuzz_subscriptions(app: ConformanceApp, examples: int, token: str) -> Row:
    """A row of the fields, asked by who has the token and by nobody."""
    asked: list[str] = []
    failures: list[str] = []
    for who, sent in (("signed in", {"authorization": f"Bearer {token}"}), ("nobody", {})):
        for operation in _operations():
            field = f"{operation.label}, {who}"
            asked.append(field)
            try:
                with _open_socket(app, sent) as socket:
                    _fuzz_operation(operation, examples, socket, stays_signed_in=bool(sent))
            except (AssertionError, TimeoutError, ConnectionClosed) as error:
                failures.append(f"{field}: {type(error).__name__} {error}")
    return Row(
        "schemathesis, subscriptions",
        len(asked),
        tuple(failures),
        f"{examples} examples a field and who asks",
    )


def _operations() -> Iterator[APIOperation[Any, Any, Any, Any]]:
    register()
    pretended = GraphQLSchema(query=executable_schema.subscription_type)
    schema = schemathesis.graphql.from_file(StringIO(print_schema(pretended)))
    for name in schema:
        yield from schema[name].values()


def _open_socket(app: ConformanceApp, payload: dict[str, str]) -> ClientConnection:
    socket = connect(app.socket_url, subprotocols=[Subprotocol("graphql-transport-ws")], proxy=None)
    socket.send(json.dumps({"type": "connection_init", "payload": payload}))
    socket.recv(ANSWER_TIMEOUT_S)
    return socket


def _fuzz_operation(
    operation: APIOperation[Any, Any, Any, Any],
    examples: int,
    socket: ClientConnection,
    *,
    stays_signed_in: bool,
) -> None:
    """Errors: AssertionError with what is wrong, TimeoutError, ConnectionClosed."""

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check_case(case: Any) -> None:
        _send(socket, "it", "subscribe", {"query": f"subscription {case.body}"})
        _send(socket, "there", "subscribe", LIVENESS_QUERY)
        for told in _payloads_until(socket, "there"):
            errors = {"errors": told} if isinstance(told, list) else told
            found = judge(200, json.dumps(errors).encode(), stays_signed_in=stays_signed_in)
            assert found.problem is None, f"{found.problem} for {case.body}"  # noqa: S101
        _send(socket, "it", "complete")

    check_case()


def _send(socket: ClientConnection, name: str, kind: str, payload: object = None) -> None:
    given_payload = {} if payload is None else {"payload": payload}
    socket.send(json.dumps({"id": name, "type": kind, **given_payload}))


def _payloads_until(socket: ClientConnection, last: str) -> Iterator[Any]:
    """What comes until the operation of this name is complete."""
    while True:
        message = json.loads(socket.recv(ANSWER_TIMEOUT_S))
        if message["type"] == "complete" and message["id"] == last:
            return
        if "payload" in message:
            yield message["payload"]
