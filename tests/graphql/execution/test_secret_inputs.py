"""Errors and the log never repeat a password, a token or an e-mail address from a request."""

import dataclasses
import json
import logging
from collections.abc import Iterator
from typing import Any, cast

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
)

from slotlock.graphql.context import Context
from slotlock.graphql.execution.documents import DocumentCache, DocumentError
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.schema.schema import executable_schema

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
    nullable = get_nullable_type(type_)
    if isinstance(nullable, GraphQLInputObjectType):
        for name, field in nullable.fields.items():
            yield from ((name, *path) for path in paths_of(name, field))


def paths_of(name: str, value: GraphQLArgument | GraphQLInputField) -> Iterator[tuple[str, ...]]:
    """Yield the empty path for a secret, and the paths inside of any other value."""
    if any(secret in name.lower() for secret in SECRET_NAMES):
        if not str(value.type).startswith("Boolean"):
            yield ()
    else:
        yield from secret_paths(value.type)


ROOT_TYPES = (
    ("query", executable_schema.query_type),
    ("mutation", executable_schema.mutation_type),
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


async def response_to(text: str, variables: dict[str, Any], *, is_compiled: bool) -> str:
    """Return the errors of a request, as JSON."""
    try:
        cache = DocumentCache(executable_schema, introspection=True)
        operation = cache.resolve_operation(text, None)
    except DocumentError as error:
        return json.dumps(error.errors)
    if not is_compiled:
        operation = dataclasses.replace(operation, compiled=None)
    response = await execute_operation(operation, variables, cast("Context", None))
    return json.dumps(response.body["errors"])


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
    }


@pytest.mark.parametrize(("keyword", "name", "argument", "path"), SECRETS)
async def test_a_secret_of_a_wrong_type_is_in_no_error_and_not_in_the_log(
    keyword: str,
    name: str,
    argument: str,
    path: tuple[str, ...],
    caplog: pytest.LogCaptureFixture,
) -> None:
    type_ = dict(ROOT_TYPES)[keyword].fields[name].args[argument].type  # type: ignore[union-attr]
    with_variable = document(keyword, name, argument, "$sent", f"($sent: {type_})")
    responses = []
    with caplog.at_level(logging.DEBUG):
        for value in WRONG_VALUES:
            for is_compiled in (True, False):
                variables = {"sent": nested(path, value)}
                responses.append(
                    await response_to(with_variable, variables, is_compiled=is_compiled)
                )
        for literal in WRONG_LITERALS:
            opening = "".join(f"{{{each}: " for each in path)
            text = document(keyword, name, argument, opening + literal + "}" * len(path), "")
            responses.append(await response_to(text, {}, is_compiled=True))
    assert [each for each in responses if MARK in each] == []
    assert MARK not in caplog.text
