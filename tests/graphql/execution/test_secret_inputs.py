"""Errors never repeat a password, a token, an e-mail address or an id; the log no secret."""

import dataclasses
import json
import logging
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_required_argument,
    is_required_input_field,
)

from slotlock.graphql.context import Context
from slotlock.graphql.execution.document_cache import DocumentCache, DocumentError
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient

SECRET_NAMES = ("password", "token", "email")
MARK = "4711471147"
# Values of wrong types that contain the mark, as JSON.
WRONG_VALUES: list[Any] = [
    int(MARK),
    float(MARK) + 0.5,
    [MARK],
    [[MARK]],
    {"value": MARK},
    {MARK: MARK},
    [None, {"value": MARK}],
]
# The same in a document, and mistakes of syntax around a string or a name.
WRONG_LITERALS = [
    MARK,
    f"{MARK}.5",
    f"x{MARK}",
    f'["{MARK}"]',
    f'{{value: "{MARK}"}}',
    f'"a" "{MARK}"',
    f'"""a""" """{MARK}"""',
    f"a x{MARK}",
    f"a {MARK}",
    f'{{"{MARK}"}}',
    f'{{value "{MARK}"}}',
]


def secret_paths(type_: GraphQLInputType) -> Iterator[tuple[str, ...]]:
    """Yield the path of each secret inside an input object, in which nothing refers to itself."""
    named = get_named_type(type_)
    if isinstance(named, GraphQLInputObjectType):
        for name, field in named.fields.items():
            yield from ((name, *path) for path in paths_of(name, field))


def paths_of(name: str, value: GraphQLArgument | GraphQLInputField) -> Iterator[tuple[str, ...]]:
    """Yield the empty path for a secret or an id, and the paths inside of any other value."""
    is_id = get_named_type(value.type).name == "ID"
    if is_id or any(secret in name.lower() for secret in SECRET_NAMES):
        if not str(value.type).startswith("Boolean"):
            yield ()
    else:
        yield from secret_paths(value.type)


ROOT_TYPES = (
    ("query", executable_schema.query_type),
    ("mutation", executable_schema.mutation_type),
    ("subscription", executable_schema.subscription_type),
)
# The root field, its argument, and the path of the secret inside of the argument.
SECRETS = [
    (keyword, name, argument_name, path)
    for keyword, root_type in ROOT_TYPES
    if root_type is not None
    for name, field in root_type.fields.items()
    for argument_name, argument in field.args.items()
    for path in paths_of(argument_name, argument)
]


# Arguments of one name and type are read alike, whichever field has them.
KINDS_OF_SECRETS = {
    (name, str(dict(ROOT_TYPES)[keyword].fields[field].args[name].type), path): (  # type: ignore[union-attr]
        keyword,
        field,
        name,
        path,
    )
    for keyword, field, name, path in SECRETS
}


def nested(path: tuple[str, ...], value: Any) -> Any:
    """Return an input object with a value at the path."""
    for name in reversed(path):
        value = {name: value}
    return value


def document(keyword: str, name: str, argument: str, literal: str, declaration: str) -> str:
    """Return a document with one argument, to which others may be missing."""
    field_type = dict(ROOT_TYPES)[keyword].fields[name].type  # type: ignore[union-attr]
    selection = " { __typename }" if is_composite_type(get_named_type(field_type)) else ""
    return f"{keyword}{declaration} {{ {name}({argument}: {literal}){selection} }}"


async def responses_to(text: str, *sent: dict[str, Any]) -> list[str]:
    """Return the errors of requests with these variables, compiled and not, as JSON."""
    try:
        cache = DocumentCache(executable_schema, introspection=True)
        compiled = cache.resolve_operation(text, None)
    except DocumentError as error:
        return [json.dumps(error.errors)]
    responses = [
        await execute_operation(operation, variables, cast("Context", None))
        for operation in (compiled, dataclasses.replace(compiled, compiled=None))
        for variables in sent
    ]
    return [json.dumps(response.body.get("errors")) for response in responses]


def test_the_secrets_of_the_schema_are_found() -> None:
    found = {(name, *path) for _, name, _, path in SECRETS}
    assert found >= {
        ("register", "email"),
        ("register", "password"),
        ("login", "email"),
        ("login", "password"),
        ("changePassword", "currentPassword"),
        ("changePassword", "newPassword"),
        ("setPassword",),
        ("refreshSession",),
        ("inviteToTeam", "email"),
        ("withdrawTeamInvitation",),
        ("auditLog", "userId"),
        ("bookSlots", "claims", "slotId"),
        ("slotAvailability",),
        ("ticket",),
    }


@pytest.mark.parametrize(("keyword", "name", "argument", "path"), KINDS_OF_SECRETS.values())
async def test_a_secret_of_a_wrong_type_is_in_no_error_and_not_in_the_log(
    keyword: str, name: str, argument: str, path: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    type_ = dict(ROOT_TYPES)[keyword].fields[name].args[argument].type  # type: ignore[union-attr]
    with_variable = document(keyword, name, argument, "$sent", f"($sent: {type_})")
    with caplog.at_level(logging.DEBUG):
        sent = [{"sent": nested(path, value)} for value in WRONG_VALUES]
        responses = await responses_to(with_variable, *sent)
        for literal in WRONG_LITERALS:
            opening = "".join(f"{{{each}: " for each in path)
            text = document(keyword, name, argument, opening + literal + "}" * len(path), "")
            responses += await responses_to(text, {})
    assert [each for each in responses if MARK in each] == []
    assert MARK not in caplog.text


# A text that is no id, in the place of one.
NO_ID = f"ada{MARK}@school.example"
VALID_VALUES: dict[str, Any] = {
    "ID": "slot_000000000000000000000000",
    "String": "a",
    "Int": 1,
    "Boolean": True,
    "Date": "2031-05-05",
    "DateTime": "2031-05-05T09:00:00Z",
    "EmailAddress": "ben@school.example",
}


def type_at(type_: GraphQLInputType, path: tuple[str, ...]) -> str:
    """Return the name of the type at a path inside of a value."""
    for name in path:
        type_ = cast("GraphQLInputObjectType", get_named_type(type_)).fields[name].type
    return get_named_type(type_).name


def value_with_no_id(type_: GraphQLInputType, path: tuple[str, ...] | None) -> Any:
    """Return a value of a type, with `NO_ID` at a path and only required fields besides."""
    nullable = get_nullable_type(type_)
    if isinstance(nullable, GraphQLList):
        return [value_with_no_id(nullable.of_type, path)]
    if isinstance(nullable, GraphQLInputObjectType):
        next_name = path[0] if path else None
        return {
            name: value_with_no_id(field.type, path[1:] if path and name == next_name else None)
            for name, field in nullable.fields.items()
            if name == next_name or is_required_input_field(field)
        }
    if isinstance(nullable, GraphQLEnumType):
        return next(iter(nullable.values))
    return NO_ID if path == () else VALID_VALUES[get_named_type(type_).name]


def request_with_no_id(
    keyword: str, name: str, argument_name: str, path: tuple[str, ...]
) -> dict[str, Any]:
    """Return a request with `NO_ID` at a path inside of an argument of a root field."""
    field = dict(ROOT_TYPES)[keyword].fields[name]  # type: ignore[union-attr]
    sent = {
        each: argument.type
        for each, argument in field.args.items()
        if each == argument_name or is_required_argument(argument)
    }
    declared = ", ".join(f"${each}: {type_}" for each, type_ in sent.items())
    passed = ", ".join(f"{each}: ${each}" for each in sent)
    selection = " { __typename }" if is_composite_type(get_named_type(field.type)) else ""
    return {
        "query": f"{keyword}({declared}) {{ {name}({passed}){selection} }}",
        "variables": {
            each: value_with_no_id(type_, path if each == argument_name else None)
            for each, type_ in sent.items()
        },
    }


IDS = [
    (keyword, name, argument_name, path)
    for keyword, name, argument_name, path in SECRETS
    if type_at(dict(ROOT_TYPES)[keyword].fields[name].args[argument_name].type, path) == "ID"  # type: ignore[union-attr]
]


async def test_no_error_repeats_a_text_that_is_no_id(
    organizer: BookingClient, app: AppProcess, http: httpx.AsyncClient
) -> None:
    repeated = []
    for place in IDS:
        accept = "text/event-stream" if place[0] == "subscription" else "application/json"
        response = await http.post(
            app.url + "/graphql",
            json=request_with_no_id(*place),
            headers=organizer.headers | {"Accept": accept},
        )
        assert "VALIDATION_FAILED" not in response.text, (place, response.text)
        if MARK in response.text:
            repeated.append((place, response.text))
    assert repeated == []
