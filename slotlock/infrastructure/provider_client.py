"""Asks providers of sign-ins over HTTP: no redirects, no cookies, a bounded time and response."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slotlock import __version__
from slotlock.domain.shared.value_object import value_object

TIMEOUT_S = 10.0
if TYPE_CHECKING:
    from aiohttp import ClientSession  # most servers have no provider

# The keys of a large provider have 20 KB, and a token with 200 groups has 12 KB.
MAX_RESPONSE_BYTES = 512 * 1024


_URL = re.compile(r"https?://[!-~]+", re.ASCII)


class ProviderUnavailableError(Exception):
    """A provider did not respond as one; the text is for the log."""


@value_object
class ProviderResponse:
    """A response with an object in JSON, and the clock of its sender."""

    status: int
    body: Mapping[str, Any]
    date: datetime | None


def is_safe_url(url: object) -> bool:
    """Return whether a URL has TLS, or leads to this host, as in development."""
    if not isinstance(url, str) or not _URL.fullmatch(url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.username is not None or parts.fragment or not host:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def is_loopback(host: str) -> bool:
    """Return whether a host is this one."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ProviderClient:
    """Sends requests to providers."""

    def __init__(self, session: "ClientSession") -> None:
        self._session = session

    async def get(self, url: str, bearer: str | None = None) -> ProviderResponse:
        """Get an object. Raises: ProviderUnavailableError."""
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        return await self._send("GET", url, headers=headers)

    async def post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> ProviderResponse:
        """Post a form and return the object. Raises: ProviderUnavailableError."""
        return await self._send("POST", url, data=form, headers=headers)

    async def _send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        data: Mapping[str, str] | None = None,
    ) -> ProviderResponse:
        from aiohttp import ClientError

        if not is_safe_url(url):
            raise ProviderUnavailableError(f"{url!r} is not a URL with https")
        headers = {**headers, "accept": "application/json", "user-agent": f"slotlock/{__version__}"}
        try:
            async with self._session.request(
                method, url, headers=headers, data=data, allow_redirects=False
            ) as response:
                content = await response.content.read(MAX_RESPONSE_BYTES + 1)
                while not response.content.at_eof() and len(content) <= MAX_RESPONSE_BYTES:
                    content += await response.content.read(MAX_RESPONSE_BYTES + 1 - len(content))
                status, date = response.status, _parse_date(response.headers.get("date"))
        except TimeoutError:
            raise ProviderUnavailableError(f"no response within {TIMEOUT_S:.0f} s") from None
        except (ClientError, OSError, ValueError) as error:
            raise ProviderUnavailableError(str(error) or type(error).__name__) from None
        if len(content) > MAX_RESPONSE_BYTES:
            raise ProviderUnavailableError(f"a response of more than {MAX_RESPONSE_BYTES} bytes")
        if 300 <= status < 400 or status >= 500:
            raise ProviderUnavailableError(f"status {status}")
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            raise ProviderUnavailableError(f"status {status} without JSON") from None
        if not isinstance(body, dict):
            raise ProviderUnavailableError(f"status {status} without an object")
        return ProviderResponse(status, body, date)


def _parse_date(text: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(text).astimezone(UTC) if text else None
    except (ValueError, TypeError, OverflowError):
        return None


@asynccontextmanager
async def open_provider_client() -> AsyncIterator[ProviderClient]:
    """Open a client; its connections are closed with the context."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

    async with ClientSession(
        timeout=ClientTimeout(total=TIMEOUT_S),
        cookie_jar=DummyCookieJar(),
        # A small response could become a large one.
        auto_decompress=False,
        headers={"accept-encoding": "identity"},
        trust_env=False,
    ) as session:
        yield ProviderClient(session)
