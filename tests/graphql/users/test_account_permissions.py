"""Who may change which account, and references to users that are not read."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from bson import ObjectId
from graphql import FieldNode, FragmentDefinitionNode, OperationDefinitionNode, parse

from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import open_session
from slotlock.domain.users.user import Role, User, UserId
from slotlock.graphql.context import Info
from slotlock.graphql.users.user_queries import load_referenced_user
from slotlock.infrastructure.mongo.client import open_database
from tests.support.apps.processes import Pair
from tests.support.clients.client import GraphQLTestClient
from tests.support.clients.user_files import post_user_file
from tests.support.stores.users import insert_user, new_email

REFUSAL = "__typename ... on Refusal { code }"
# By name, in an order in which none prevents the next one.
DOORS = {
    "vouchForUser": "vouchForUser(userId: $user)",
    "updateUser": 'updateUser(input: {userId: $user, name: "Ada"})',
    "setGroups": 'setGroups(input: {userId: $user, groups: ["5a"]})',
    "inviteUser": "inviteUser(userId: $user)",
    "createPasswordReset": "createPasswordReset(userId: $user)",
    "unbanUser": "unbanUser(userId: $user)",
    "loginName": 'updateUser(input: {userId: $user, username: "{username}"})',
    "setUserRole": "setUserRole(userId: $user, role: {role})",
    "endUserSessions": "endUserSessions(userId: $user)",
    "unlinkUserSignIn": 'unlinkUserSignIn(userId: $user, identity: "none")',
    "banUser": "banUser(userId: $user)",
    "eraseUser": "eraseUser(userId: $user)",
}
HAS_PASSWORD = "INVALID_INPUT"  # of a user who may be invited otherwise
OK = "allowed"
ALL_DOORS = ("import", *DOORS)
FOR_ADMINS = dict.fromkeys(
    ("createPasswordReset", "setUserRole", "unlinkUserSignIn", "eraseUser"), "FORBIDDEN"
)
FORBIDDEN = dict.fromkeys(ALL_DOORS, "FORBIDDEN")
FOR_ADMINS_ONCE_SIGNED_IN = {"loginName": "ADMIN_REQUIRED"}
REFUSED = dict.fromkeys(ALL_DOORS, "ADMIN_REQUIRED") | FOR_ADMINS
ALLOWED = dict.fromkeys(ALL_DOORS, OK) | {"inviteUser": HAS_PASSWORD}
OWN = ALLOWED | {
    "banUser": "CANNOT_BAN_SELF",
    "unbanUser": "CANNOT_BAN_SELF",
    "createPasswordReset": "INVALID_INPUT",
    "eraseUser": "CANNOT_ERASE_SELF",
}
MATRIX = {
    (Role.MEMBER, "self"): FORBIDDEN,
    (Role.MEMBER, Role.MEMBER): FORBIDDEN,
    (Role.MEMBER, Role.ORGANIZER): FORBIDDEN,
    (Role.MEMBER, Role.ADMIN): FORBIDDEN,
    (Role.ORGANIZER, "self"): OWN | FOR_ADMINS | FOR_ADMINS_ONCE_SIGNED_IN,
    (Role.ORGANIZER, Role.MEMBER): ALLOWED | FOR_ADMINS | FOR_ADMINS_ONCE_SIGNED_IN,
    (Role.ORGANIZER, Role.ORGANIZER): REFUSED,
    (Role.ORGANIZER, Role.ADMIN): REFUSED,
    (Role.ADMIN, "self"): OWN,
    (Role.ADMIN, Role.MEMBER): ALLOWED,
    (Role.ADMIN, Role.ORGANIZER): ALLOWED,
    (Role.ADMIN, Role.ADMIN): ALLOWED,
}
# What gives an account something that is meant for its user, by who may use it.
GRANTS: dict[Role, tuple[str, ...]] = {
    Role.ORGANIZER: ("updateUser", "setGroups"),
    Role.ADMIN: ("updateUser", "setGroups", "setUserRole"),
}
LOG = """query($user: ID!) { auditLog(filter: {userId: $user}, first: 5) {
  nodes { action edits { field before after } } } }"""
USER_ID = UserId("0" * 23 + "7")


async def through_graphql(client: GraphQLTestClient, door: str, user: User) -> str:
    """Change a user in one way, and return what happened."""
    call = DOORS[door].replace("{role}", user.role.name).replace("{username}", user.id)
    document = f"mutation($user: ID!) {{ {call} {{ {REFUSAL} }} }}"
    result = await client.send(document, user=f"user_{user.id}")
    if "errors" in result:
        return str(result["errors"][0]["extensions"]["code"])
    (outcome,) = result["data"].values()
    return str(outcome.get("code", OK))


async def through_import(client: GraphQLTestClient, user: User) -> str:
    """Rename a user by a file, and return what happened."""
    response = await post_user_file(client, f"email,name\n{user.email},Byron\n".encode())
    if response.status_code == 422:
        (problem,) = response.json()["problems"]
        assert (problem["line"], problem["column"]) == (2, "email")
        assert "only an admin can change" in problem["message"]
        return "ADMIN_REQUIRED"
    return str(response.json().get("code", OK))


@pytest.mark.parametrize(("caller_role", "target"), MATRIX)
async def test_every_door_has_the_same_rule(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, caller_role: Role, target: Role | str
) -> None:
    caller = await insert_user(auth, caller_role)
    user = await insert_user(auth, target) if isinstance(target, Role) else caller
    outcomes = dict[str, str]()
    for door in ALL_DOORS:
        token = (await open_session(auth, caller)).access_token
        client = GraphQLTestClient(http, two_apps[0].url, token)
        if door == "import":
            outcomes[door] = await through_import(client, user)
        else:
            outcomes[door] = await through_graphql(client, door, user)
    assert outcomes == MATRIX[caller_role, target]


@pytest.mark.parametrize("role", [Role.ORGANIZER, Role.ADMIN])
async def test_an_account_that_a_stranger_registered_gets_nothing_before_somebody_vouches(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, role: Role
) -> None:
    stranger = await insert_user(auth, self_registered=True)
    token = (await open_session(auth, await insert_user(auth, role))).access_token
    client = GraphQLTestClient(http, two_apps[0].url, token)

    async def try_doors() -> dict[str, str]:
        outcomes = {door: await through_graphql(client, door, stranger) for door in GRANTS[role]}
        file = f"email,name,groups\n{stranger.email},Byron,5a\n".encode()
        report = (await post_user_file(client, file)).json()
        return outcomes | {"import": OK if report["updated"] else "SELF_REGISTERED"}

    assert set((await try_doors()).values()) == {"SELF_REGISTERED"}
    query = "query($filter: UserFilter) { users(filter: $filter) { nodes { id selfRegistered } } }"
    shown = {"id": f"user_{stranger.id}", "selfRegistered": True}
    for is_listed in (True, False):
        filter_ = {"text": stranger.email, "selfRegistered": is_listed}
        assert (await client.execute(query, filter=filter_))["nodes"] == [shown] * is_listed
    stored = await auth.repositories.users.find_many([stranger.id])
    assert stored == {stranger.id: stranger}

    assert await through_graphql(client, "vouchForUser", stranger) == OK
    assert set((await try_doors()).values()) == {OK}


async def test_only_organizers_see_that_a_user_registered(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth
) -> None:
    stranger = await insert_user(auth, self_registered=True)
    client = GraphQLTestClient(
        http, two_apps[0].url, (await open_session(auth, stranger)).access_token
    )
    assert await client.execute("{ me { selfRegistered } }") == {"selfRegistered": None}


async def test_a_vouch_preserves_the_password_and_the_sessions_and_is_in_the_log(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth
) -> None:
    pupil = await insert_user(auth, self_registered=True)
    session = await open_session(auth, pupil)
    token = (await open_session(auth, await insert_user(auth, Role.ORGANIZER))).access_token
    organizer = GraphQLTestClient(http, two_apps[0].url, token)
    for _ in range(2):  # the second one changes nothing
        assert await through_graphql(organizer, "vouchForUser", pupil) == OK
    assert await authenticate(auth, f"Bearer {session.access_token}")
    known = (await auth.repositories.users.find_many([pupil.id]))[pupil.id]
    assert known == replace(pupil, self_registered=False)
    log = await organizer.execute(LOG, user=f"user_{pupil.id}")
    edits = [{"field": "selfRegistered", "before": "true", "after": "false"}]
    assert log["nodes"] == [{"action": "VOUCHED_FOR", "edits": edits}]


async def test_a_file_that_changes_an_admin_imports_nothing_of_an_organizer(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth
) -> None:
    organizer = await insert_user(auth, Role.ORGANIZER)
    admin = await insert_user(auth, Role.ADMIN)
    token = (await open_session(auth, organizer)).access_token
    client = GraphQLTestClient(http, two_apps[0].url, token)
    email = new_email()
    body = f"email,name,groups\n{email},Ada,5a\n{admin.email},{{name}},\n"
    response = await post_user_file(client, body.format(name="Byron").encode())
    assert response.status_code == 422
    assert [problem["line"] for problem in response.json()["problems"]] == [3]
    assert await auth.repositories.users.find_with_password_hash(email) is None
    # A line that changes nothing needs no permission: a list of everybody can be imported again.
    unchanged = await post_user_file(client, body.format(name=admin.name).encode())
    assert (unchanged.json()["created"], unchanged.json()["unchanged"]) == (1, 1)


@pytest.mark.parametrize("door", ["updateUser", "setGroups", "banUser", "unbanUser"])
async def test_a_user_with_a_role_of_a_later_version_can_be_changed_later(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, door: str
) -> None:
    user = await insert_user(auth)
    query = {"_id": ObjectId(user.id)}
    token = (await open_session(auth, await insert_user(auth, Role.ORGANIZER))).access_token
    async with open_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as database:
        await database["users"].update_one(query, {"$set": {"role": "owner"}})
        before = await database["users"].find_one(query)
        document = f"mutation($user: ID!) {{ {DOORS[door]} {{ {REFUSAL} }} }}"
        client = GraphQLTestClient(http, two_apps[0].url, token)
        (error,) = (await client.send(document, user=f"user_{user.id}"))["errors"]
        assert error["extensions"].keys() >= {"errorId", "retryAfterMs"}
        assert error["extensions"]["code"] == "INTERNAL"
        assert await database["users"].find_one(query) == before


class UserReadError(Exception):
    """The user was read."""


class Context:
    """A context that cannot read users."""

    @property
    def loaders(self) -> None:
        """Fail."""
        raise UserReadError


def info_of(text: str) -> Info:
    """Return the info for the first field of an operation."""
    document = parse(text)
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    nodes = [node for node in operation.selection_set.selections if isinstance(node, FieldNode)]
    raw_info = SimpleNamespace(field_nodes=nodes, fragments=fragments)
    return cast("Info", SimpleNamespace(_raw_info=raw_info, context=Context()))


@pytest.mark.parametrize(
    "text",
    [
        "{ user { id } }",
        "{ user { __typename } }",
        "{ user { key: id } user { __typename } }",
        "{ user { ... on Node { id } ...F } } fragment F on User { id }",
    ],
)
async def test_a_reference_with_only_the_id_is_not_read(text: str) -> None:
    info = info_of(text)
    for _ in range(2):  # the names that are selected are remembered
        user = await load_referenced_user(info, USER_ID)
        assert user is not None
        assert user.id == f"user_{USER_ID}"


@pytest.mark.parametrize(
    "text",
    [
        "{ user { id name } }",
        "{ user { id } user { email } }",
        "{ user { id ...F } } fragment F on User { ... on User { role } }",
        "query($no: Boolean!) { user { id name @include(if: $no) } }",
    ],
)
async def test_control_any_other_field_is_read(text: str) -> None:
    with pytest.raises(UserReadError):
        await load_referenced_user(info_of(text), USER_ID)
