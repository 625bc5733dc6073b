"""`POST /users/letters`: what `POST /users/invitations` returned, as letters to print.

It creates nothing, so that the same letters can be printed again, or class by class.
"""

import json
import re

from starlette.requests import Request
from starlette.responses import Response

from slotlock.api.endpoints.callers import recheck_organizer
from slotlock.api.endpoints.downloads import content_disposition
from slotlock.api.endpoints.endpoint import OrganizerEndpoint, query_params
from slotlock.api.endpoints.user_file_endpoints import CSV_MEDIA_TYPE, OTHER_CSV_MEDIA_TYPES
from slotlock.api.exports.export_builder import ExportBuilder
from slotlock.api.exports.export_endpoint import MEDIA_TYPES, FileResponse, require_file
from slotlock.api.exports.letters import (
    MAX_LETTERS,
    InvalidInvitationsError,
    read_invitations,
)
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError, check_declared_body, receive_body
from slotlock.infrastructure.mail.mail_texts import language_of
from slotlock.infrastructure.request_deadline import untimed
from slotlock.services.site.current_site import CurrentSite

MAX_BODY_BYTES = 2_000_000
_PAGE = re.compile(r"https?://[^\s/]+/\S{0,400}")
NO_PAGE = (
    "`page` is the address of the page for codes, to whose end a code is added. By default it is "
    "that of the board below SLOTLOCK_PUBLIC_URL."
)


class Letters:
    """Letters of the site, in its language, or else in that of the organizer."""

    def __init__(self, site: CurrentSite, board_url: str, builder: ExportBuilder) -> None:
        self._site = site
        self._board_url = board_url
        self._builder = builder

    async def respond(self, auth: Auth, organizer: Caller, request: Request) -> Response:
        """Build the letters for the lines of the body that have a token, and send them."""
        default = f"{self._board_url}#/code/" if self._board_url else ""
        page = query_params(request, "page").get("page", default)
        if not _PAGE.fullmatch(page):
            raise HttpError(400, NO_PAGE)
        check_declared_body(request.headers, CSV_MEDIA_TYPE, *OTHER_CSV_MEDIA_TYPES)
        with untimed():
            body = await receive_body(request.receive, MAX_BODY_BYTES)
        organizer = await recheck_organizer(auth, organizer)
        try:
            count = len(read_invitations(body))
        except InvalidInvitationsError as error:
            raise HttpError(422, str(error), code="INVALID_FILE") from None
        if count > MAX_LETTERS:
            text = f"One PDF has at most {MAX_LETTERS} letters. Send the classes one by one."
            raise HttpError(413, text, code=ErrorCode.LIMIT_EXCEEDED)
        sender = await auth.repositories.users.find_soon(organizer.user_id)
        site = await self._site.load()
        letters = {
            "invitations": body.decode("utf-8-sig"),
            "language": language_of(site.locale, sender.locale if sender else None),
            "site": site.name,
            "page": page,
            "time_zone": site.time_zone,
        }
        with untimed():
            outcome = await self._builder.build_letters(json.dumps(letters).encode())
        file_name = f"letters-{auth.now():%Y-%m-%d}.pdf"
        disposition = content_disposition("", file_name)
        return FileResponse(require_file(outcome), disposition, MEDIA_TYPES["pdf"])


def letters_endpoint(
    auth: Auth, rate_limits: OperationRateLimits, letters: Letters
) -> OrganizerEndpoint:
    """Create the endpoint of `POST /users/letters`."""
    return OrganizerEndpoint(auth, rate_limits, letters.respond)
