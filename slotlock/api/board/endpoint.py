"""The board, the web client of `slotlock/board/`: static files that a cache may store for ever.

Their address has the hash of all of them. Only the page itself, which names that address, is asked
for again. The messages and the ids of documents become modules, so that the page needs no further
requests. Those that only organizers need are modules of their own, which load with their views, and
so are the messages that only the modules need which load later.
A process compresses each file when it is asked for, in a thread.
"""

import asyncio
import gzip
import html
import json
import logging
import re
from base64 import b64encode
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Generic, TypeVar, cast
from urllib.parse import unquote

import brotli
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from slotlock.api.board.colors import site_style
from slotlock.api.board.documents import BOARD_DIR, board_documents
from slotlock.api.board.modules import merged_modules, stripped
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
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_EVER = "public, max-age=31536000, immutable"
# A page that is reloaded by many at once comes from a cache.
FOR_A_MOMENT = "public, max-age=30, stale-while-revalidate=300"
# A page of another version gets this instead of each of its modules, and other files of this one.
START, RELOAD = "app.js", "reload.js"
# The views for organizers, with the texts and operations that no other view uses.
FOR_ORGANIZERS = "views/organizer"
ORGANIZERS = f"{FOR_ORGANIZERS}.js"
# The worker that shows the page without a network decides by the page's hash what it stores.
WORKER = "worker.js"
HASH_CHARS = 16
VERSION = re.compile(rf"[0-9a-f]{{{HASH_CHARS}}}")
# The address of a view that became a part of the path: a sign is before it.
ADDRESS = re.compile(r"[^\w-]+([a-z]+(?:/[\w/-]*)?)\W*(?:[?&#].*)?", re.ASCII)
NO_FILE = HttpError(404, "no such file of the board")
ENCODINGS = ("br", "gzip", "")
# The encodings in `Accept-Encoding`, without those that a client refuses.
ACCEPTED = re.compile(r"([\w-]+)(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$)|[\w-])")
# The modules that are files of their own; all others are in that of the start.
ALONE = (
    *(WORKER, RELOAD, ORGANIZERS),
    *("draws.js", "together.js", "views/account.js", "views/wishes.js"),
    # Only parents load it.
    (FAMILY := "family.js"),
    # Only a school that has periods loads it; its rows need the words of the first at once.
    (PERIODS := "periods.js"),
)
CSS_BLANKS = re.compile(r"(?:/\*.*?\*/|\s)+", re.DOTALL)
# What a browser may write to the log.
MAX_ERROR_BYTES, MAX_ERRORS_A_MINUTE = 2_000, 20

T = TypeVar("T")
log = logging.getLogger("slotlock.board")


class Computed(Generic[T]):
    """What a thread computes once for all who ask: again only if that failed."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._task: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """Return the result, or raise why there is none."""
        task = self._task
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._task = asyncio.create_task(asyncio.to_thread(self._compute))
        return await asyncio.shield(task)


class BoardFile:
    """A file as it is sent: plain, by gzip or by Brotli."""

    def __init__(self, name: str, content: bytes) -> None:
        self.media_type = MEDIA_TYPES[Path(name).suffix]
        self.content = content
        # A thread needs half a second for the largest file, once.
        self._encoded = {each: Computed(partial(self.encoded, each)) for each in ENCODINGS}

    def encoded(self, encoding: str) -> bytes:
        """Return the file in an encoding of HTTP: `br`, `gzip`, or none if it is empty.

        Browsers accept Brotli over HTTPS: a seventh smaller than by gzip.
        """
        if encoding == "br":
            return cast("bytes", brotli.compress(self.content, mode=brotli.MODE_TEXT))
        return gzip.compress(self.content, mtime=0) if encoding else self.content

    async def response(self, request: Request, cache_control: str) -> Response:
        """Return the response to a request, compressed as the client accepts it."""
        headers = {"Cache-Control": cache_control, "Vary": "Accept-Encoding"}
        accepted = ACCEPTED.findall(request.headers.get("accept-encoding", ""))
        encoding = next((each for each in ENCODINGS if each in accepted), "")
        if encoding:
            headers["Content-Encoding"] = encoding
        content = await self._encoded[encoding].result()
        return Response(content, headers=headers, media_type=self.media_type)


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


def board_version(sources: Mapping[str, bytes]) -> str:
    """Return the hash of all sources and of how they are sent, which is part of their addresses."""
    paths = (BOARD_DIR / "board.html", *sorted(Path(__file__).parent.glob("*.py")))
    digest = sha256(b"".join(path.read_bytes() for path in paths))
    for name, content in sorted(sources.items()):
        digest.update(b"%s\0%d\0" % (name.encode(), len(content)) + content)
    return digest.hexdigest()[:HASH_CHARS]


def served_files(sources: Mapping[str, bytes], version: str) -> dict[str, BoardFile]:
    """Return the files as they are sent, by name."""
    texts = {name: content.decode() for name, content in sources.items() if is_module(name)}
    files = {name: content.decode() for name, content in sources.items() if name not in texts}
    files["board.css"] = CSS_BLANKS.sub(" ", files["board.css"])
    merged = merged_modules(texts, START, alone=ALONE)
    files |= {name: stripped(text) for name, text in merged.items()}
    # The worker gets the version, and the names of the files that members of each school need.
    others = (WORKER, PERIODS, FAMILY)
    names = [name for name in files if name not in others and not name.startswith(FOR_ORGANIZERS)]
    worker = files[WORKER].replace("{{version}}", version)
    files[WORKER] = worker.replace("{{files}}", json.dumps(names))
    return {name: BoardFile(name, text.encode()) for name, text in files.items()}


def is_module(name: str) -> bool:
    """Whether a file is a module, and no texts of a language."""
    return name.endswith(".js") and "messages/" not in name


def board_files() -> dict[str, bytes]:
    """Return the sources of the board by name, with the modules of messages and document ids."""
    static = BOARD_DIR / "static"
    names = sorted(path for path in static.rglob("*") if path.suffix in MEDIA_TYPES)
    files = {path.relative_to(static).as_posix(): path.read_bytes() for path in names}
    ids = (each.split("/") for each in board_documents())
    values: dict[str, dict[str, object]] = {"documents.js": {name: hash_ for _, name, hash_ in ids}}
    for path in sorted((BOARD_DIR / "messages").glob("*.json")):
        values[f"messages/{path.stem}.js"] = json.loads(path.read_text())
    formal = json.loads((BOARD_DIR / "formal/de.json").read_text())
    files["messages/de-formal.js"] = _module("messages", formal)
    shared = [name for name in files if is_module(name) and not name.startswith(FOR_ORGANIZERS)]
    in_any = _used_in(files[each] for each in shared)
    in_first = _used_in(files[each] for each in shared if each not in ALONE or each == PERIODS)
    for name, all_values in values.items():
        exported, _, file = name.removesuffix(".js").partition("/")
        of_members = {key: value for key, value in all_values.items() if in_any(key)}
        others = {key: value for key, value in all_values.items() if key not in of_members}
        files[f"{FOR_ORGANIZERS}/{name}"] = _module(exported, others)
        if file:
            later = {key: value for key, value in of_members.items() if not in_first(key)}
            of_members = {key: value for key, value in of_members.items() if key not in later}
            files[f"{exported}/later/{file}.js"] = _module(exported, later)
        files[name] = _module(exported, of_members)
    return files


def _used_in(modules: Iterable[bytes]) -> Callable[[str], bool]:
    """Return whether modules use the name of an operation or a text.

    Of texts whose name a module puts together, such as `refusal.${code}`, they have the beginning.
    """
    text = "".join(content.decode() for content in modules)
    names = set(re.findall(r'"([\w.]+)"', text))
    beginnings = tuple(set(re.findall(r"`((?:\w+\.)+)\$\{", text)))
    return lambda key: key in names or key.startswith(beginnings)


def _module(exported: str, value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False)
    return f"export const {exported} = /** @type {{Record<string, any>}} */ ({text});\n".encode()
