"""The board, the web client of `slotlock/board/`: static files that a cache may store for ever.

Their address has the hash of all of them. Only the page itself, which names that address, is asked
for again.
"""

import asyncio
import html
import json
import logging
import re
from base64 import b64encode
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from time import monotonic
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from slotlock.api.board.colors import site_style
from slotlock.api.board.documents import BOARD_DIR
from slotlock.api.board.files import (
    HASH_CHARS,
    RELOAD,
    WORKER,
    BoardFile,
    board_files,
    board_version,
    served_files,
)
from slotlock.api.endpoints.responses import to_response
from slotlock.auth.password_policy.rules import MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH
from slotlock.auth.providers.provider import Provider
from slotlock.domain.schedule.periods import Period
from slotlock.domain.site.logo import Logo
from slotlock.domain.site.site import SiteValues, validate_color
from slotlock.domain.users.user import Registration
from slotlock.graphql.context import SiteSettings
from slotlock.graphql.transport.http_messages import HttpError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{style}; connect-src 'self'; "
    "img-src 'self'; font-src 'self'; require-trusted-types-for 'script'; "
    "trusted-types slotlock slotlock-xml; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
FOR_EVER = "public, max-age=31536000, immutable"
# A page that is reloaded by many at once comes from a cache.
FOR_A_MOMENT = "public, max-age=30, stale-while-revalidate=300"
VERSION = re.compile(rf"[0-9a-f]{{{HASH_CHARS}}}")
# The address of a view that became a part of the path: a sign is before it.
ADDRESS = re.compile(r"[^\w-]+([a-z]+(?:/[\w/-]*)?)\W*(?:[?&#].*)?", re.ASCII)
NO_FILE = HttpError(404, "no such file of the board")
# What a browser may write to the log.
MAX_ERROR_BYTES, MAX_ERRORS_A_MINUTE = 2_000, 20

log = logging.getLogger("slotlock.board")


def board_routes(
    site: SiteSettings,
    load_site: Callable[[Request], Awaitable[SiteValues]],
    find_logo: Callable[[Request, str], Awaitable[Logo | None]],
    load_periods: Callable[[Request], Awaitable[tuple[Period, ...]]],
    registration: Registration,
    providers: Sequence[Provider] = (),
    *,
    sends_mail: bool,
    password_sign_in: bool,
) -> list[Route]:
    """Return the routes of the page and of its files, and of its errors if they are logged."""
    sources = board_files()
    version = board_version(sources)
    files = served_files(sources, version)
    # The values of `Site` in the API, so that no page waits for them.
    settings = {
        "registration": registration.name,
        "passwordSignIn": password_sign_in,
        "passwordRules": {"minLength": MIN_PASSWORD_LENGTH, "maxLength": MAX_PASSWORD_LENGTH},
        "signInProviders": [{"id": each.id, "name": each.name} for each in providers],
        "sendsMail": sends_mail,
        "developersUrl": site.developers_url,
        "logsErrors": site.logs_errors,
    }
    template = (BOARD_DIR / "board.html").read_text().replace("{{version}}", version)

    @lru_cache(maxsize=1)
    def page_of(values: SiteValues, periods: tuple[Period, ...]) -> tuple[BoardFile, str]:
        return _page(template, settings, values, periods)

    async def show_page(request: Request) -> Response:
        page, policy = page_of(*await asyncio.gather(load_site(request), load_periods(request)))
        # A provider sends users back with a code in the address, which no cache stores.
        is_returned = "state" in request.query_params
        response = await page.response(request, "no-store" if is_returned else FOR_A_MOMENT)
        response.headers["Content-Security-Policy"] = policy
        return response

    async def show_worker(request: Request) -> Response:
        response = await files[WORKER].response(request, FOR_A_MOMENT)
        response.headers["Service-Worker-Allowed"] = "/board"
        response.headers["Content-Security-Policy"] = "default-src 'none'; connect-src 'self'"
        return response

    async def show_logo(request: Request) -> Response:
        logo = await find_logo(request, request.path_params["digest"])
        if logo is None:
            return to_response(NO_FILE)
        headers = {"Cache-Control": FOR_EVER, "Content-Security-Policy": "default-src 'none'"}
        return Response(logo.content, headers=headers, media_type=logo.media_type)

    async def show_file(request: Request) -> Response:
        name, asked = request.path_params["name"], request.path_params["version"]
        if not VERSION.fullmatch(asked):
            return _lead_to_page(request, f"/{asked}/{name}")
        is_other = asked != version
        file = files.get(RELOAD if is_other and name.endswith(".js") else name)
        if file is None:
            return to_response(NO_FILE)
        response = await file.response(request, "no-store" if is_other else FOR_EVER)
        if is_other:
            response.headers["Vary"] = "*"  # no worker may store it as the file of that version
        return response

    return [
        Route("/board", show_page),
        # Relative, so that it works behind a path prefix, too.
        Route("/board/", lambda _: RedirectResponse("../board")),
        Route(f"/board/{WORKER}", show_worker),
        Route("/board/style/{color}.css", _show_style),
        Route("/board/logo/{digest}", show_logo),
        *([Route("/board/errors", _log_error, methods=["POST"])] if site.logs_errors else ()),
        Route("/board/{version}/{name:path}", show_file),
        Route("/board{rest:path}", lambda it: _lead_to_page(it, it.path_params["rest"])),
    ]


async def _show_style(request: Request) -> Response:
    """Return the style of a color, which the page that changes it previews."""
    color = f"#{request.path_params['color']}"
    if validate_color(color):
        return to_response(NO_FILE)
    return Response(site_style(color), media_type="text/css")


def _page(
    template: str,
    settings: Mapping[str, object],
    site: SiteValues,
    periods: Sequence[Period],
) -> tuple[BoardFile, str]:
    """Return the page with the values of the site, and its policy, which allows its style.

    A school without periods has none on its page, and loads nothing for them.
    """
    shown = {
        "name": site.name,
        "logoUrl": site.logo_url or None,
        "imprintUrl": site.imprint_url or None,
        "privacyUrl": site.privacy_url or None,
        "timeZone": site.time_zone,
        "formOfAddress": "FORMAL" if site.is_formal else "INFORMAL",
        **({"periods": [*map(_show_period, periods)]} if periods else {}),
        **settings,
    }
    style = site_style(site.color) if site.color else ""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    text = template.replace("{{site}}", html.escape(json.dumps(shown)))
    text = text.replace("{{name}}", html.escape(site.name))
    text = text.replace("{{style}}", f"<style>{style}</style>\n" if style else "")
    policy = POLICY.format(style=f" 'sha256-{digest}'" if style else "")
    return BoardFile("board.html", text.encode()), policy


def _show_period(period: Period) -> dict[str, object]:
    """Return a period as the API shows it, but for its weekdays, which count from Sunday."""
    return {
        "name": period.name,
        "startTime": f"{period.start:%H:%M}",
        "endTime": f"{period.end:%H:%M}",
        "weekdays": [(each.value + 1) % 7 for each in period.weekdays],
    }


def _lead_to_page(request: Request, rest: str) -> Response:
    """Lead a link to the page whose fragment a program took for a part of the path.

    Programs that read mails write `/board%23/invitation/...`, or `%2523`, or leave out the `#`.
    """
    if (address := ADDRESS.fullmatch(unquote(unquote(rest)))) is None:
        return to_response(NO_FILE)
    # Relative, so that it works behind a path prefix, too.
    _, _, after = request.scope["raw_path"].decode("latin-1").partition("/board")
    return RedirectResponse("../" * after.count("/") + f"board#/{address[1]}")


_logged_at = deque[float](maxlen=MAX_ERRORS_A_MINUTE)


async def _log_error(request: Request) -> Response:
    """Log an error of the page, on one line, unless this process has logged many."""
    now = monotonic()
    is_full = len(_logged_at) == MAX_ERRORS_A_MINUTE and now - _logged_at[0] < 60
    if is_full or int(request.headers.get("content-length", MAX_ERROR_BYTES + 1)) > MAX_ERROR_BYTES:
        return Response(status_code=204)
    _logged_at.append(now)
    text = (await request.body()).decode(errors="replace")
    log.warning("an error of the board: %s", " ".join(text.split()))
    return Response(status_code=204)
