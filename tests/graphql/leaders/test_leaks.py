"""No query leads a user to names and addresses that are not for them, whatever it selects."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
from graphql import (
    GraphQLField,
    GraphQLNamedType,
    get_named_type,
    is_abstract_type,
    is_object_type,
    is_required_argument,
)

from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.exports import set_name_and_groups
from tests.support.scenarios.led_course import LedCourse, led_course

MAX_DEPTH = 3
USER = "name email username"
PUPILS = ("self", "member")
# Those who lead or led a course, or act or acted for its user, and a child of the same guardian.
READERS = ("leader", "other", "former", "guardian", "parted", "sibling")


def path_to_users(type_: GraphQLNamedType, depth: int = MAX_DEPTH) -> str:
    """Return a selection of all users that a type leads to; empty if there are none."""
    if type_.name == "User" and depth == MAX_DEPTH:
        return f"{{ {USER} guardians {{ {USER} }} dependents {{ {USER} guardians {{ {USER} }} }} }}"
    if type_.name == "User":
        return f"{{ {USER} }}"
    if depth == 0:
        return ""
    parts: list[str] = []
    if is_abstract_type(type_):
        possible = executable_schema.get_possible_types(type_)
        parts = [
            f"... on {t.name} {found}" for t in possible if (found := path_to_users(t, depth - 1))
        ]
    elif is_object_type(type_):
        for name, field in type_.fields.items():
            found = path_to_users(get_named_type(field.type), depth - 1)
            if found and not any(map(is_required_argument, field.args.values())):
                parts.append(f"{name} {found}")
    return "{ __typename " + " ".join(parts) + " }" if parts else ""


def documents(course: LedCourse) -> Iterator[str]:
    """Yield a document of each query that leads to users, for each object that it may name."""
    assert executable_schema.query_type is not None
    for name, field in executable_schema.query_type.fields.items():
        if path := path_to_users(get_named_type(field.type)):
            for arguments in argument_lists(name, field, course):
                yield f"{{ {name}{arguments} {path} }}"


def argument_lists(name: str, field: GraphQLField, course: LedCourse) -> Iterator[str]:
    """Yield the arguments of a query for the course, and for `node` for all that belongs to it."""
    named = [name for name, arg in field.args.items() if get_named_type(arg.type).name == "ID"]
    global_ids = [course.slot_id]
    if name == "node":
        global_ids += [course.booking_id, course.user_ids["self"], course.resource_id]
    for global_id in global_ids if named else ():
        values = (
            f'{each}: ["{global_id}"]' if each == "ids" else f'{each}: "{global_id}"'
            for each in named
        )
        yield f"({', '.join(values)})"
    if not named:
        yield ""


async def found_words(
    course: LedCourse, words: dict[str, str], query: str = ""
) -> dict[str, set[str]]:
    """Return which of these words a query, or any, shows to each of the readers."""
    shown: dict[str, set[str]] = {}
    for kind in READERS:
        sent = [each for each in documents(course) if query in each]
        texts = [str(await course.clients[kind].send(each)) for each in sent]
        assert "LIMIT_EXCEEDED" not in "".join(texts)
        shown[kind] = {name for name, word in words.items() if any(word in text for text in texts)}
    return shown


async def test_names_are_for_who_leads_the_course_and_addresses_for_guardians_alone(
    app: AppProcess, http: httpx.AsyncClient, log_dir: Path
) -> None:
    course, words = await led_course(app, http), dict[str, str]()
    for kind in (*PUPILS, "guardian"):
        client, words[f"name of {kind}"] = course.clients[kind], secrets.token_hex(8)
        url = app.environment["SLOTLOCK_MONGO_URL"]
        await set_name_and_groups(url, client, words[f"name of {kind}"])
        words[f"address of {kind}"] = (await client.execute("{ me { email } }"))["email"]
    names = {f"name of {kind}" for kind in PUPILS}
    assert len(list(documents(course))) > 20
    nothing = set[str]()
    own = {"name of guardian", "address of guardian"}
    assert await found_words(course, words) == {
        "leader": names, "other": nothing, "former": nothing,
        "guardian": {"name of self", "address of self", *own},
        "parted": nothing, "sibling": {"name of guardian"},
    }  # fmt: skip
    with app_variant(app.environment, log_dir, without_guards="led-slots") as unguarded:
        for client in course.clients.values():
            client.url = unguarded.url
        found = await found_words(course, words, "slotRoster(")
    for kind in ("other", "former", "parted", "sibling"):
        assert found[kind] == {"name of self"}
