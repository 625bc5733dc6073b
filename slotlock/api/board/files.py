"""The files of the board as they are sent, each compressed in a thread when it is asked for.

The messages and the ids of documents become modules (`messages/en.js`, `documents.js`), so that the
page needs no further requests. Those that only organizers need are modules of their own, which load
with their views, and so are the messages that only the modules need which load later.
"""

import asyncio
import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar, cast

import brotli
from starlette.requests import Request
from starlette.responses import Response

from slotlock.api.board.documents import BOARD_DIR, board_documents
from slotlock.api.board.modules import merged_modules, stripped

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# A page of another version gets this instead of each of its modules, and other files of this one.
START, RELOAD = "app.js", "reload.js"
# The views for organizers, with the texts and operations that no other view uses.
FOR_ORGANIZERS = "views/organizer"
ORGANIZERS = f"{FOR_ORGANIZERS}.js"
# The worker that shows the page without a network decides by the page's hash what it stores.
WORKER = "worker.js"
HASH_CHARS = 16
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

T = TypeVar("T")


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
