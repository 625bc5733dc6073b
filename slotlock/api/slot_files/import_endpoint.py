"""`POST /slots/import`: create and change the slots of a campaign from a file, for organizers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from slotlock.api.endpoints.callers import recheck_organizer
from slotlock.api.endpoints.endpoint import OrganizerEndpoint, query_params
from slotlock.api.endpoints.responses import error_response
from slotlock.api.endpoints.user_file_endpoints import (
    CSV_MEDIA_TYPE,
    OTHER_CSV_MEDIA_TYPES,
    invalid_file_response,
)
from slotlock.auth.container import Auth
from slotlock.domain.campaigns.campaign import CampaignBusy, CampaignNotFound
from slotlock.domain.schedule.zones import UNKNOWN_ZONE, find_zone
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.shared.tables.table import MAX_FILE_BYTES
from slotlock.domain.slot_files.plan import ImportOptions, SlotFilePlan, SlotsImported
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.ids import parse_campaign_id
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.times import format_time
from slotlock.graphql.transport.http_messages import HttpError, check_declared_body, receive_body
from slotlock.infrastructure.request_deadline import untimed
from slotlock.services.campaigns.slot_files import import_slots
from slotlock.services.container import Services

MAX_SHOWN_SLOTS = 20


def slot_import_endpoint(
    services: Services, auth: Auth, rate_limits: OperationRateLimits
) -> OrganizerEndpoint:
    """Create the endpoint of `POST /slots/import`."""
    return OrganizerEndpoint(auth, rate_limits, partial(_import_slots, services))


async def _import_slots(
    services: Services, auth: Auth, organizer: Caller, request: Request
) -> Response:
    flags = {"dryRun": "false", "createResources": "false"}
    params = flags | query_params(request, "campaign", "timeZone", *flags)
    for name in flags:
        if params[name] not in ("true", "false"):
            raise HttpError(400, f"`{name}` is true or false.")
    campaign_id = parse_campaign_id(params.get("campaign", ""))
    if campaign_id is None:
        raise HttpError(400, "`campaign` is the id of a campaign.")
    options = ImportOptions(params.get("timeZone", ""), params["createResources"] == "true")
    if "timeZone" not in params:
        site = await services.site.load()
        options = replace(options, time_zone=site.time_zone)
    if find_zone(options.time_zone) is None:
        raise HttpError(400, f"`timeZone`: {UNKNOWN_ZONE.message}")
    check_declared_body(request.headers, CSV_MEDIA_TYPE, *OTHER_CSV_MEDIA_TYPES)
    with untimed():
        body = await receive_body(request.receive, MAX_FILE_BYTES)
    # The body can take minutes to arrive, in which the session may end or the role change.
    organizer = await recheck_organizer(auth, organizer)
    dry_run = params["dryRun"] == "true"
    with untimed():  # a large file takes seconds, and an import has limits of its own
        outcome = await import_slots(
            services, body, campaign_id, options, organizer.user_id, dry_run=dry_run
        )
    match outcome:
        case SlotsImported():
            return JSONResponse(slot_import_report(outcome))
        case InvalidFile():
            return invalid_file_response(outcome)
        case CampaignNotFound():
            raise HttpError(404, "There is no such campaign.")
        case CampaignBusy():
            text = "Others change this campaign; nothing was imported. Try again."
            response = error_response(409, "IMPORT_BUSY", text, retryAfterMs=outcome.retry_after_ms)
            response.headers["Retry-After"] = str(-(-outcome.retry_after_ms // 1000))
            return response
        case _:
            assert_never(outcome)


def slot_import_report(result: SlotsImported) -> dict[str, object]:
    """Return the JSON of an import."""
    plan, file = result.plan, result.file
    return {
        "dryRun": result.dry_run,
        "created": len(plan.created),
        "updated": len(plan.patches),
        "unchanged": plan.unchanged,
        "notInFile": plan.not_in_file,
        "newResources": [
            {"name": each.name, "kind": each.kind.name} for each in plan.new_resources
        ],
        "ignoredColumns": list(file.ignored_columns),
        **({"preview": list(_preview(plan, dict(file.headers)))} if result.dry_run else {}),
    }


def _preview(plan: SlotFilePlan, headers: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """Yield the first slots that are new or change, with the headers of the cells that do that."""
    slots = [each.slot for each in (*plan.created, *plan.edited.values())]
    for slot in sorted(slots, key=lambda slot: plan.lines[slot.id])[:MAX_SHOWN_SLOTS]:
        yield {
            "line": plan.lines[slot.id],
            "number": slot.number,
            "title": slot.title,
            "startTime": format_time(slot.start),
            "timeZone": slot.time_zone,
            "meetingCount": len(slot.all_meetings),
            "changed": [headers[column] for column in plan.changed.get(slot.id, ())],
        }
