"""Fuzzes the subscriptions, which schemathesis does not support, as if they were queries.

After each subscription, a query on the same WebSocket shows that the socket is still usable.
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

RESPONSE_TIMEOUT_S = 20.0
LIVENESS_QUERY = {"query": "{ __typename }"}


def fuzz_subscriptions(
    app: ConformanceApp, examples: int, token: str, *, is_fixed: bool = False
) -> Row:
    """Fuzz each subscription with and without the token, and return a row."""
    fuzzed: list[str] = []
    failures: list[str] = []
    callers: tuple[tuple[str, dict[str, str]], ...] = (
        ("signed in", {"authorization": f"Bearer {token}"}),
        ("not signed in", {}),
    )
    for caller, payload in callers:
        for operation in _operations():
            field = f"{operation.label}, {caller}"
            fuzzed.append(field)
            try:
                with _open_socket(app, payload) as socket:
                    _fuzz_operation(
                        operation,
                        examples,
                        socket,
                        stays_signed_in=bool(payload),
                        is_fixed=is_fixed,
                    )
            except (AssertionError, TimeoutError, ConnectionClosed) as error:
                failures.append(f"{field}: {type(error).__name__} {error}")
    return Row(
        "schemathesis, subscriptions",
        len(fuzzed),
        tuple(failures),
        f"{examples} examples per field and caller",
    )


def _operations() -> Iterator[APIOperation[Any, Any, Any, Any]]:
    register()
    as_queries = GraphQLSchema(query=executable_schema.subscription_type)
    schema = schemathesis.graphql.from_file(StringIO(print_schema(as_queries)))
    for name in schema:
        yield from schema[name].values()


def _open_socket(app: ConformanceApp, payload: dict[str, str]) -> ClientConnection:
    socket = connect(app.socket_url, subprotocols=[Subprotocol("graphql-transport-ws")], proxy=None)
    socket.send(json.dumps({"type": "connection_init", "payload": payload}))
    socket.recv(RESPONSE_TIMEOUT_S)
    return socket


def _fuzz_operation(
    operation: APIOperation[Any, Any, Any, Any],
    examples: int,
    socket: ClientConnection,
    *,
    stays_signed_in: bool,
    is_fixed: bool,
) -> None:
    """Send the examples of one field.

    Raises:
        AssertionError: A response is a server error.
        TimeoutError: The server does not respond.
        ConnectionClosed: The server closed the socket.
    """

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        derandomize=is_fixed,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check_case(case: Any) -> None:
        _send(socket, "fuzzed", "subscribe", {"query": f"subscription {case.body}"})
        _send(socket, "liveness", "subscribe", LIVENESS_QUERY)
        for payload in _payloads_until(socket, "liveness"):
            response = {"errors": payload} if isinstance(payload, list) else payload
            judgment = judge(200, json.dumps(response).encode(), stays_signed_in=stays_signed_in)
            assert judgment.problem is None, f"{judgment.problem} for {case.body}"  # noqa: S101
        _send(socket, "fuzzed", "complete")

    check_case()


def _send(socket: ClientConnection, name: str, kind: str, payload: object = None) -> None:
    optional_payload = {} if payload is None else {"payload": payload}
    socket.send(json.dumps({"id": name, "type": kind, **optional_payload}))


def _payloads_until(socket: ClientConnection, last: str) -> Iterator[Any]:
    """Yield the payloads of all messages until this operation is complete."""
    while True:
        message = json.loads(socket.recv(RESPONSE_TIMEOUT_S))
        if message["type"] == "complete" and message["id"] == last:
            return
        if "payload" in message:
            yield message["payload"]
