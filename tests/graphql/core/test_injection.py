"""Hostile input: MongoDB operators as values, extra input fields, and the ids of other users."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from graphql import (
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_list_type,
)

from slotlock.domain.users.user import Role
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient
from tests.support.stores.users import auth_for_database, sign_in_new_user

OPERATORS: list[Any] = [{"$ne": None}, [{"$gt": ""}]]
CODE_LIKE_TEXTS = ['{"$gt": ""}', "$where", "'; return true; //", "\x00", "../..", "%00", "${7*7}"]
UNKNOWN_FIELDS = (
    "role", "id", "_id", "userId", "banned", "groups", "passwordHash", "__proto__", "$set",
)  # fmt: skip
EXPECTED_CODES = {"UNAUTHENTICATED", "FORBIDDEN", "BAD_USER_INPUT"}
ROOT_FIELDS = [
    (keyword, name, field)
    for keyword, root in (
        ("query", executable_schema.query_type),
        ("mutation", executable_schema.mutation_type),
    )
    if root is not None
    for name, field in root.fields.items()
]
ACCOUNT = {"name": "Eve", "email": "eve@slotlock.test", "password": "correct horse battery"}
CREDENTIALS = {"email": "eve@slotlock.test", "password": "correct horse battery"}
PASSWORDS = {"currentPassword": "correct horse battery", "newPassword": "another horse battery"}
NODE = "query($id: ID!) { node(id: $id) { id } }"
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
CANCEL = "mutation($id: ID!) { cancelBooking(bookingId: $id) { ... on Refusal { code } } }"


@pytest.fixture
async def organizer(app: AppProcess, http: httpx.AsyncClient) -> AsyncIterator[GraphQLTestClient]:
    """Yield an organizer whose requests must not cause an error in the log."""
    before = app.log.count(" ERROR ")
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        yield GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))
    assert app.log.count(" ERROR ") == before, app.log


def operation(keyword: str, name: str, field: GraphQLField) -> str:
    """Return an operation with a variable for each argument of a field, or "" if there are none."""
    if not field.args:
        return ""
    declarations = ", ".join(f"${key}: {argument.type}" for key, argument in field.args.items())
    arguments = ", ".join(f"{key}: ${key}" for key in field.args)
    selection = "{ __typename }" if is_composite_type(get_named_type(field.type)) else ""
    return f"{keyword} ({declarations}) {{ {name}({arguments}) {selection} }}"


def filled(type_: GraphQLInputType, value: Any) -> Any:
    """Return a value with the shape of this type that has `value` in every field and item."""
    nullable = get_nullable_type(type_)
    if is_list_type(nullable):
        return [filled(nullable.of_type, value)]
    if isinstance(nullable, GraphQLInputObjectType):
        return {key: filled(field.type, value) for key, field in nullable.fields.items()}
    return value


def variables(field: GraphQLField, value: Any) -> Iterator[dict[str, Any]]:
    """Yield the value as each whole argument and, where that differs, inside each argument."""
    whole = dict.fromkeys(field.args, value)
    inside = {key: filled(argument.type, value) for key, argument in field.args.items()}
    yield from (whole,) if inside == whole else (whole, inside)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
async def test_a_mongodb_operator_is_bad_input_for_every_argument(
    organizer: GraphQLTestClient, operator: Any
) -> None:
    for keyword, name, field in ROOT_FIELDS:
        if query := operation(keyword, name, field):
            for sent in variables(field, operator):
                code = await organizer.error_code(query, **sent)
                assert (name, code) == (name, "BAD_USER_INPUT")


@pytest.mark.parametrize("text", CODE_LIKE_TEXTS)
async def test_text_that_resembles_code_is_plain_text_in_every_query(
    organizer: GraphQLTestClient, text: str
) -> None:
    for keyword, name, field in ROOT_FIELDS:
        if keyword == "query" and (query := operation(keyword, name, field)):
            for sent in variables(field, text):
                response = await organizer.send(query, **sent)
                codes = {error["extensions"]["code"] for error in response.get("errors", ())}
                assert codes <= EXPECTED_CODES, (name, response)


@pytest.mark.parametrize("header", ['Bearer {"$gt": ""}', "Bearer [$ne]=1", '{"$gt": ""}'])
async def test_an_operator_in_the_authorization_header_is_unauthenticated(
    organizer: GraphQLTestClient, header: str
) -> None:
    for query in ("{ me { id } }", "{ mySessions { id } }"):
        response = await organizer.http.post(
            organizer.url + "/graphql", json={"query": query}, headers={"Authorization": header}
        )
        assert response.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("name", "type_", "valid"),
    [
        ("register", "RegisterInput", ACCOUNT),
        ("login", "LoginInput", CREDENTIALS),
        ("changePassword", "ChangePasswordInput", PASSWORDS),
    ],
)
async def test_an_unknown_input_field_is_bad_input(
    organizer: GraphQLTestClient, name: str, type_: str, valid: dict[str, str]
) -> None:
    query = f"mutation($input: {type_}!) {{ {name}(input: $input) {{ __typename }} }}"
    for extra in UNKNOWN_FIELDS:
        code = await organizer.error_code(query, input={**valid, extra: "ADMIN"})
        assert (extra, code) == (extra, "BAD_USER_INPUT")


async def test_ids_of_other_users_behave_like_ids_that_do_not_exist(
    member: GraphQLTestClient, organizer: GraphQLTestClient
) -> None:
    slot = await organizer.create_slot()
    booking_id = (await organizer.book(slot["id"]))["booking"]["id"]
    session_id = (await organizer.execute("{ mySessions { id } }"))[0]["id"]
    user_id = (await organizer.execute("{ me { id } }"))["id"]
    for own_id in (booking_id, session_id, user_id):
        unknown_id = own_id[:-8] + "0" * 8
        assert (await organizer.execute(NODE, id=own_id))["id"] == own_id
        assert await member.execute(NODES, ids=[own_id, unknown_id]) == [None, None]
    for id_ in (booking_id, booking_id[:-8] + "0" * 8):
        assert await member.execute(CANCEL, id=id_) == {"code": "BOOKING_NOT_FOUND"}
