"""`GET /personal-data` and `/personal-data/{user}`: all data about one user, as JSON.

That of a guardian has the same about each dependent. The document is sent while it is read, so that
memory use does not depend on the number of bookings.
"""

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from bson import ObjectId
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from slotlock.api.endpoints.callers import require_caller
from slotlock.api.endpoints.downloads import content_disposition
from slotlock.api.endpoints.endpoint import Endpoint
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.domain.admission.tickets import TICKET_TTL, TicketRef
from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntry, WaitlistEntryId
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import Caller, MailTopic, Role, User, UserId
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import RETRY_AFTER_HEADERS
from slotlock.graphql.core.refusals import refusal_codes
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.times import format_time
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.users.privacy import PersonalDataQueries, Section
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.stored_enums import limits_from_stored
from slotlock.services.container import Services

# Stored fields that the schema calls otherwise; all others have its names already.
_NAMES = {
    "start": "startTime",
    "end": "endTime",
    "user": "userId",
    "users": "userIds",
    "slot": "slotId",
    "campaign": "campaignId",
    "team": "teamId",
    "dependents": "dependentIds",
    "resource": "resourceName",
    "userAgent": "client",
    "calendar": "calendarFeed",
}
_SECTION_NAMES = {
    "bookings": {"at": "createdAt"},
    "endedWaitlistEntries": {"at": "endedAt"},
    "teamInvitations": {"name": "teamName", "at": "invitedAt"},
}
# Of parts of a record, which have names of their own.
_PART_NAMES = {
    "calendar": {"at": "createdAt"},
    "history": {"status": "after"},
    "invitation": {"until": "expiresAt"},
    "passwordReset": {"until": "expiresAt"},
    "emailVerification": {"until": "expiresAt"},
}
_ID_PREFIXES = {"slot": "slot", "campaign": "campaign", "team": "team"}
_ENUMS = {"action", "role", "state", "status"}
# Versions of documents, marks of transactions, and what `_own_fields` says.
_NOT_SHOWN = {
    *("_id", "id", "schemaVersion", "adminCheckedBy", "guardianCheckedBy"),
    *("withoutPassword", "refusedTopics"),
}


class _SessionEndedError(Exception):
    """The session of the reader has ended."""


def personal_data_endpoint(
    services: Services, auth: Auth, rate_limits: OperationRateLimits, queries: PersonalDataQueries
) -> Endpoint[Caller]:
    """Create the endpoint of every path at and under `/personal-data`."""
    handler = partial(_respond, services, queries)
    return Endpoint(auth, rate_limits, require_caller, handler, ("GET",))


async def _respond(
    services: Services, queries: PersonalDataQueries, auth: Auth, caller: Caller, request: Request
) -> Response:
    user = await _find_user(auth, caller, request.path_params.get("user"))
    try:
        tickets = await _find_tickets(services, user.id)
    except RedisUnavailableError:
        text = "The tickets cannot be read now. Please try again."
        raise HttpError(503, text, RETRY_AFTER_HEADERS) from None
    file_name = f"personal-data-{services.now():%Y-%m-%d}.json"
    return StreamingResponse(
        _chunks(auth, caller, queries, user.id, tickets),
        media_type="application/json",
        headers={
            "Content-Disposition": content_disposition(user.name, file_name),
            "Cache-Control": "no-store",
        },
    )


async def _find_user(auth: Auth, caller: Caller, global_id: str | None) -> User:
    """Return whose data to send. Raises HttpError: 403 or 404."""
    user_id = caller.user_id if global_id is None else ids.parse_user_id(global_id)
    if user_id != caller.user_id and caller.role is not Role.ADMIN:
        raise HttpError(403, "Only admins may do this.")
    user = user_id and await auth.repositories.users.find_soon(user_id)
    if not user:
        raise HttpError(404, "There is no such user.")
    return user


async def _find_tickets(
    services: Services, user_id: UserId
) -> Mapping[UserId, list[dict[str, str]]]:
    """Return the tickets of a user and of each dependent."""
    since = services.now() - TICKET_TTL
    dependents = await services.users.find_dependents([user_id])
    return {
        each: list(map(_ticket_fields, await services.ticket_index.find(each, since)))
        for each in (user_id, *(dependent.id for dependent in dependents))
    }


async def _chunks(
    auth: Auth,
    caller: Caller,
    queries: PersonalDataQueries,
    user_id: UserId,
    tickets: Mapping[UserId, list[dict[str, str]]],
) -> AsyncIterator[str]:
    """Yield the parts of the document. It ends early, and invalid, with the session."""
    separator = ""
    try:
        async for chunk in _sections(auth, caller, tickets[user_id], queries.sections(user_id)):
            yield chunk
        yield ',\n"dependents": ['
        async for dependent_id in _dependents(auth, user_id, tickets):
            sections = queries.sections(dependent_id, for_guardian=True)
            yield separator
            async for chunk in _sections(auth, caller, tickets[dependent_id], sections):
                yield chunk
            yield "}"
            separator = ",\n"
        yield "]}\n"
    except _SessionEndedError:
        return


async def _sections(
    auth: Auth, caller: Caller, tickets: list[dict[str, str]], sections: Sequence[Section]
) -> AsyncIterator[str]:
    """Yield an object without its end. Raises _SessionEndedError."""
    yield '{"tickets": ' + json.dumps(tickets)
    for name, read in sections:
        if not await session_still_valid(auth, caller):
            raise _SessionEndedError
        yield f',\n"{name}": ['
        separator = "\n"
        async for record in read():
            yield separator + json.dumps(to_api(name, record), ensure_ascii=False)
            separator = ",\n"
        yield "]"


async def _dependents(
    auth: Auth, user_id: UserId, known: Collection[UserId]
) -> AsyncIterator[UserId]:
    """Yield those of these users whose guardian the user is when their turn comes."""
    for each in known:
        found = await auth.repositories.users.find_dependents([user_id])
        if any(dependent.id == each for dependent in found):
            yield each


def _ticket_fields(ticket: TicketRef) -> dict[str, str]:
    return {
        "id": ids.ticket_global_id(ticket),
        "slotId": ids.slot_global_id(ticket.slot_id),
        "requestedAt": format_time(ticket.requested_at),
    }


def to_api(section: str, record: Document) -> Document:
    """Return a stored record of a section with the names, ids and enum values of the schema.

    A stored field that the schema lacks is there, too: the user has a right to it.
    """
    names = _NAMES | _SECTION_NAMES.get(section, {})
    return {**_own_fields(section, record), **_renamed(record, names)}


def _own_fields(section: str, record: Document) -> Document:
    id_, slot = record.get("_id", record.get("id")), record.get("slot")
    slot_id = SlotId(str(slot["_id"] if isinstance(slot, dict) else slot))
    match section:
        case "account":
            refused = record.get("refusedTopics", ())
            return {
                "id": ids.user_global_id(UserId(str(id_))),
                "hasPassword": "withoutPassword" not in record,
                "wantsReminders": MailTopic.REMINDERS.value not in refused,
                "wantsAnnouncements": MailTopic.ANNOUNCEMENTS.value not in refused,
            }
        case "bookings" | "endedBookings":
            return {"id": ids.booking_global_id(slot_id, BookingId(str(id_)))}
        case "waitlistEntries" | "endedWaitlistEntries":
            user_id, since = UserId(str(record["user"])), record["since"]
            entry = WaitlistEntry(WaitlistEntryId(str(id_)), slot_id, user_id, since)
            return {"id": ids.waitlist_entry_global_id(entry)}
        case "teams":
            return {"id": ids.team_global_id(TeamId(str(id_)))}
        case _:
            return {}


def _renamed(record: Document, names: Mapping[str, str]) -> Document:
    shown = ((name, value) for name, value in record.items() if name not in _NOT_SHOWN)
    return dict(_field(name, value, names) for name, value in shown)


def _field(name: str, value: Any, names: Mapping[str, str]) -> tuple[str, object]:
    shown_name = names.get(name, name)
    match value:
        case {"slot": slot, "id": booking} if name in {"movedFrom", "movedTo"}:
            return name, ids.booking_global_id(SlotId(str(slot)), BookingId(str(booking)))
        case {"_id": slot} if name == "slot":
            return name, {"id": ids.slot_global_id(SlotId(str(slot))), **_renamed(value, _NAMES)}
        case dict():
            return shown_name, _renamed(value, _PART_NAMES.get(name, _NAMES))
        case list() if name == "overriddenLimits":
            return "overriddenRefusals", [
                each.name for each in refusal_codes(limits_from_stored(value))
            ]
        case list():
            part_names = _PART_NAMES.get(name, _NAMES)
            return shown_name, [_field(name, each, part_names)[1] for each in value]
        case ObjectId():
            return shown_name, f"{_ID_PREFIXES.get(name, 'user')}_{value}"
        case datetime():
            return shown_name, format_time(value)
        case str() if name in _ENUMS:
            return shown_name, value.upper()
        case _:
            return shown_name, value
