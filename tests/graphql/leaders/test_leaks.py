"""No operation leads a user to names and addresses that are not for them, whatever it selects."""

import secrets
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import httpx
from bson import ObjectId
from graphql import (
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLNamedType,
    get_named_type,
    get_nullable_type,
    is_abstract_type,
    is_composite_type,
    is_list_type,
    is_object_type,
    is_required_argument,
    is_required_input_field,
)

from slotlock.graphql.schema.schema import executable_schema
from tests.graphql.core.test_access import FOR_ORGANIZERS, sample
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.attendance import fetch_code
from tests.support.clients.exports import set_name_and_groups
from tests.support.scenarios.led_course import LedCourse, change_document, led_course

MAX_DEPTH = 3
USER = "name email username"
PUPILS = ("self", "member")
# Those who lead or led a course, or act or acted for its user, and a child of the same guardian.
READERS = ("leader", "other", "former", "guardian", "parted", "sibling")
# What somebody without a right to a course and its users gets for naming them.
REFUSED = dict.fromkeys(FOR_ORGANIZERS, "FORBIDDEN") | {
    "bookSlot": "NOT_TEAMMATE",
    "bookSlots": "CLAIMS_REFUSED",
    "bookSeries": "SERIES_NOT_FOUND",
    "requestBooking": "NOT_TEAMMATE",
    "cancelTicket": "TICKET_NOT_FOUND",
    "confirmBooking": "BOOKING_NOT_FOUND",
    "extendHold": "BOOKING_NOT_FOUND",
    "cancelBooking": "BOOKING_NOT_FOUND",
    "moveBooking": "BOOKING_NOT_FOUND",
    "joinWaitlist": "FORBIDDEN",
    "leaveWaitlist": "FORBIDDEN",
    "inviteToTeam": "TEAM_NOT_FOUND",
    "acceptTeamInvitation": "NOT_INVITED",
    "declineTeamInvitation": "NOT_INVITED",
    "withdrawTeamInvitation": "TEAM_NOT_FOUND",
    "leaveTeam": "TEAM_NOT_FOUND",
    "setWishes": "DRAW_NOT_FOUND",
}
# What those may of it who lead the course, and the guardians of its user: `test_who_may_what`.
GRANTED = {
    "leader": {
        "slotRoster", "slotWaitlist", "bookableUsers", "announcementRecipientCount", "checkIn",
        "undoCheckIn", "markNoShow", "undoNoShow", "sendAnnouncement", "createExportLink",
    },
    "guardian": {
        "bookSlot", "bookSlots", "requestBooking", "confirmBooking", "extendHold", "cancelBooking",
        "moveBooking", "joinWaitlist", "leaveWaitlist",
    },
}  # fmt: skip
# They name nobody else than the caller.
OF_THE_CALLER = {
    "register", "login", "setPassword", "requestPasswordReset", "resetPassword", "refreshSession",
    "logout", "endSession", "endOtherSessions", "changePassword", "requestEmailVerification",
    "changeEmail", "verifyEmail", "startSignIn", "finishSignIn", "linkSignIn", "unlinkSignIn",
    "createTeam", "updateMe", "createCalendarFeed", "revokeCalendarFeed",
}  # fmt: skip


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
                # The types of a result have slots of two types.
                alias = "slot_or_null: " if str(field.type) == "Slot" else ""
                parts.append(f"{alias}{name} {found}")
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


def filled(type_: GraphQLInputType, name: str, known: dict[str, str]) -> Any:
    """Return a value that has what is required, and the ids that are known by their names."""
    nullable = get_nullable_type(type_)
    if is_list_type(nullable):
        return [filled(nullable.of_type, name.removesuffix("s"), known)]
    if not isinstance(nullable, GraphQLInputObjectType):
        return known.get(name) or sample(type_)
    return {
        key: filled(field.type, key, known)
        for key, field in nullable.fields.items()
        if is_required_input_field(field) or key in known
    }


def operation(
    keyword: str, name: str, field: GraphQLField, known: dict[str, str]
) -> tuple[str, dict[str, Any]]:
    """Return an operation of a field that names all that is known, and its variables."""
    used = {k: arg for k, arg in field.args.items() if is_required_argument(arg) or k in known}
    variables = {key: filled(argument.type, key, known) for key, argument in used.items()}
    declared = ", ".join(f"${key}: {argument.type}" for key, argument in used.items())
    arguments = ", ".join(f"{key}: ${key}" for key in used)
    head, call = (f"({declared})", f"({arguments})") if used else ("", "")
    path, result = "", get_named_type(field.type)
    if is_composite_type(result) and keyword == "query":
        path = "{ __typename }"
    elif is_composite_type(result):
        path = (path_to_users(result) or "{ __typename }").removesuffix("}")
        path += " ... on Refusal { code message } }" if is_abstract_type(result) else " }"
    return f"{keyword}{head} {{ {name}{call} {path} }}", variables


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


async def test_what_is_for_organizers_is_refused_to_all_others_and_shows_no_name(
    app: AppProcess, http: httpx.AsyncClient, log_dir: Path
) -> None:
    course, words = await led_course(app, http), list[str]()
    for kind in PUPILS:
        words += [
            secrets.token_hex(8),
            (await course.clients[kind].execute("{ me { email } }"))["email"],
        ]
        url = app.environment["SLOTLOCK_MONGO_URL"]
        await set_name_and_groups(url, course.clients[kind], words[-2])
    # Both are parents, too, but of somebody else.
    parents = [ObjectId(course.user_ids[kind][-24:]) for kind in ("other", "former")]
    change_document(app, "users", course.user_ids["teammate"], guardians=parents)
    known = {
        "slotId": course.slot_id,
        "bookingId": course.booking_id,
        "userId": course.user_ids["self"],
        "resourceId": course.resource_id,
        "code": await fetch_code(course.clients["organizer"], course.booking_id),
    }
    query, mutation = executable_schema.query_type, executable_schema.mutation_type
    assert query is not None
    assert mutation is not None
    assert mutation.fields.keys() - REFUSED.keys() == OF_THE_CALLER
    sent = {
        name: operation(keyword, name, field, known)
        for keyword, root in (("query", query), ("mutation", mutation))
        for name, field in root.fields.items()
        if name in REFUSED
    }
    assert sent.keys() == REFUSED.keys()

    async def codes(kind: str, names: Collection[str]) -> tuple[dict[str, str], str]:
        found, texts = dict[str, str](), ""
        for name in names:
            document, variables = sent[name]
            result = await course.clients[kind].send(document, **variables)
            texts += str(result)
            if errors := result.get("errors"):
                found[name] = errors[0]["extensions"]["code"]
            else:
                found[name] = result["data"][name].get("code") or result["data"][name]["__typename"]
        return found, texts

    for kind in READERS:
        asked = sent.keys() - GRANTED.get(kind, ())
        found, texts = await codes(kind, asked)
        assert found == {name: REFUSED[name] for name in asked}
        assert [word for word in words if word in texts] == []
    with app_variant(app.environment, log_dir, without_guards="led-slots") as unguarded:
        for client in course.clients.values():
            client.url = unguarded.url
        found, texts = await codes("former", ["undoNoShow"])
    assert found == {"undoNoShow": "NoShowUndone"}
    assert words[0] in texts
