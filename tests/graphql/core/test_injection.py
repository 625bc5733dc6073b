"""What was never asked for: operators of MongoDB as values, fields nobody may send, others' ids."""

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

OPERATORS: list[Any] = [{"$gt": ""}, {"$where": "sleep(1000)"}, {"$ne": None}, [{"$gt": ""}]]
TEXTS = ['{"$gt": ""}', "$where", "'; return true; //", "\x00", "../..", "%00", "${7*7}"]
OK_TOO = {"UNAUTHENTICATED", "FORBIDDEN", "BAD_USER_INPUT"}
ROOTS = [
    (keyword, name, field)
    for keyword, root in (
        ("query", executable_schema.query_type),
        ("mutation", executable_schema.mutation_type),
    )
    if root is not None
    for name, field in root.fields.items()
]


@pytest.fixture
async def organizer(app: AppProcess, http: httpx.AsyncClient) -> AsyncIterator[GraphQLTestClient]:
    before = app.log.count(" ERROR ")
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        yield GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))
    assert app.log.count(" ERROR ") == before, app.log


def operation(keyword: str, name: str, field: GraphQLField) -> str:
    """An operation whose every argument is a variable of its own."""
    if not field.args:
        return ""
    declared = ", ".join(f"${key}: {argument.type}" for key, argument in field.args.items())
    given = ", ".join(f"{key}: ${key}" for key in field.args)
    chosen = "{ __typename }" if is_composite_type(get_named_type(field.type)) else ""
    return f"{keyword} ({declared}) {{ {name}({given}) {chosen} }}"


def filled(type_: GraphQLInputType, value: Any) -> Any:
    """A value of this type as far as its shape goes, with this one in every place."""
    bare = get_nullable_type(type_)
    if is_list_type(bare):
        return [filled(bare.of_type, value)]
    if isinstance(bare, GraphQLInputObjectType):
        return {key: filled(part.type, value) for key, part in bare.fields.items()}
    return value


def variables(field: GraphQLField, value: Any) -> Iterator[dict[str, Any]]:
    yield dict.fromkeys(field.args, value)
    yield {key: filled(argument.type, value) for key, argument in field.args.items()}


@pytest.mark.parametrize(("keyword", "name", "field"), ROOTS, ids=lambda part: str(part)[:30])
async def test_an_operator_of_mongodb_is_no_value_of_any_argument(
    organizer: GraphQLTestClient, keyword: str, name: str, field: GraphQLField
) -> None:
    if query := operation(keyword, name, field):
        for operator in OPERATORS:
            for sent in variables(field, operator):
                assert await organizer.error_code(query, **sent) == "BAD_USER_INPUT"


@pytest.mark.parametrize("text", TEXTS)
async def test_text_that_looks_like_code_is_text_in_every_query(
    organizer: GraphQLTestClient, text: str
) -> None:
    for keyword, name, field in ROOTS:
        if keyword == "query" and (query := operation(keyword, name, field)):
            for sent in variables(field, text):
                answer = await organizer.send(query, **sent)
                codes = {error["extensions"]["code"] for error in answer.get("errors", ())}
                assert codes <= OK_TOO, (name, answer)


@pytest.mark.parametrize("header", ['Bearer {"$gt": ""}', "Bearer [$ne]=1", '{"$gt": ""}'])
async def test_an_operator_in_the_header_is_no_identity(
    organizer: GraphQLTestClient, header: str
) -> None:
    for query in ("{ me { id } }", "{ mySessions { id } }"):
        response = await organizer.http.post(
            organizer.url + "/graphql", json={"query": query}, headers={"Authorization": header}
        )
        assert response.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


MINE = {"name": "Eve", "email": "eve@slotlock.test", "password": "correct horse battery"}
CHANGE = {"currentPassword": "correct horse battery", "newPassword": "another horse battery"}


@pytest.mark.parametrize(
    ("name", "type_", "given"),
    [
        ("register", "RegisterInput", MINE),
        ("login", "LoginInput", {key: MINE[key] for key in ("email", "password")}),
        ("changePassword", "ChangePasswordInput", CHANGE),
    ],
)
@pytest.mark.parametrize(
    "more", ["role", "id", "_id", "userId", "banned", "groups", "passwordHash", "__proto__", "$set"]
)
async def test_a_field_that_nobody_may_send_is_bad_input(
    organizer: GraphQLTestClient, name: str, type_: str, given: dict[str, str], more: str
) -> None:
    query = f"mutation($input: {type_}!) {{ {name}(input: $input) {{ __typename }} }}"
    sent = {**given, more: "ADMIN"}
    assert await organizer.error_code(query, input=sent) == "BAD_USER_INPUT"


async def test_ids_of_others_are_as_ids_of_nothing(
    app: AppProcess, http: httpx.AsyncClient, organizer: GraphQLTestClient
) -> None:
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        eve = GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.MEMBER))
    slot = await organizer.create_slot()
    booking = (await organizer.book(slot["id"]))["booking"]["id"]
    session = (await organizer.execute("{ mySessions { id } }"))[0]["id"]
    person = (await organizer.execute("{ me { id } }"))["id"]
    for gid in (booking, session, person):
        assert (await organizer.execute("query($id: ID!) { node(id: $id) { id } }", id=gid))[
            "id"
        ] == gid
        assert await eve.execute("query($id: ID!) { node(id: $id) { id } }", id=gid) is None
        nothing = gid[:-8] + "0" * 8
        both = await eve.execute(
            "query($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=[gid, nothing]
        )
        assert both == [None, None]
    cancel = "mutation($id: ID!) { cancelBooking(bookingId: $id) { ... on Refusal { code } } }"
    refused = {"code": "BOOKING_NOT_FOUND"}
    for gid in (booking, booking[:-8] + "0" * 8):
        assert await eve.execute(cancel, id=gid) == refused
