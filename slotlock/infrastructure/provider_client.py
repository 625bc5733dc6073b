"""Asks providers of sign-ins over HTTP: no redirects, no cookies, a bounded time and response.

A provider describes its own endpoints, so that it could name services of this host, which only it
itself may be.
"""

import errno
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slotlock import __version__
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.request_deadline import step_timeout_s

TIMEOUT_S = 10.0
# What a request of a client needs after the response: to read and write the account.
TIME_AFTER_RESPONSE_S = 1.5
MIN_TIMEOUT_S = 0.05
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
    """Return whether the name of a host says that it is this one."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def may_be_local(url: str, issuer: str) -> bool:
    """Return whether a URL of an issuer may lead to this host: if the issuer is there itself."""
    host, own_host = urlsplit(url).hostname, urlsplit(issuer).hostname or ""
    return host == own_host or is_loopback(own_host)


def distant_socket(address_info: Sequence[Any]) -> socket.socket:
    """Create a socket for one of the results of `getaddrinfo`.

    Names and unusual notations of an address are resolved here. Raises: OSError.
    """
    family, kind, protocol, _, address = address_info
    ip: Any = ip_address(address[0].partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    # Link-local addresses are those of the machine, such as the metadata service of a cloud.
    if ip.is_loopback or ip.is_unspecified or ip.is_link_local:
        raise OSError(errno.EACCES, "the host is this one")
    return socket.socket(family, kind, protocol)


def response_timeout_s() -> float:
    """Return how long a response may take, so that the request of the client is still in time."""
    left_s = step_timeout_s()
    if left_s is None:
        return TIMEOUT_S
    return max(min(TIMEOUT_S, left_s - TIME_AFTER_RESPONSE_S), MIN_TIMEOUT_S)


class ProviderClient:
    """Sends requests to providers. `distant` is the session for URLs that are not of this host."""

    def __init__(self, session: "ClientSession", distant: "ClientSession") -> None:
        self._session = session
        self._distant = distant

    async def get(self, issuer: str, url: str, bearer: str | None = None) -> ProviderResponse:
        """Get an object. Raises: ProviderUnavailableError."""
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        return await self._send("GET", issuer, url, headers=headers)

    async def post(
        self, issuer: str, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> ProviderResponse:
        """Post a form and return the object. Raises: ProviderUnavailableError."""
        return await self._send("POST", issuer, url, data=form, headers=headers)

    async def _send(
        self,
        method: str,
        issuer: str,
        url: str,
        *,
        headers: Mapping[str, str],
        data: Mapping[str, str] | None = None,
    ) -> ProviderResponse:
        from aiohttp import ClientError, ClientTimeout

        if not is_safe_url(url):
            raise ProviderUnavailableError(f"{url!r} is not a URL with https")
        headers = {**headers, "accept": "application/json", "user-agent": f"slotlock/{__version__}"}
        session = self._session if may_be_local(url, issuer) else self._distant
        timeout_s = response_timeout_s()
        try:
            async with session.request(
                method,
                url,
                headers=headers,
                data=data,
                allow_redirects=False,
                timeout=ClientTimeout(total=timeout_s),
            ) as response:
                content = await response.content.read(MAX_RESPONSE_BYTES + 1)
                while not response.content.at_eof() and len(content) <= MAX_RESPONSE_BYTES:
                    content += await response.content.read(MAX_RESPONSE_BYTES + 1 - len(content))
                status, date = response.status, _parse_date(response.headers.get("date"))
        except TimeoutError:
            raise ProviderUnavailableError(f"no response within {timeout_s:.1f} s") from None
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
    from aiohttp import ClientSession, DummyCookieJar, TCPConnector

    def open_session(connector: TCPConnector) -> ClientSession:
        return ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            # A small response could become a large one.
            auto_decompress=False,
            headers={"accept-encoding": "identity"},
            trust_env=False,
        )

    async with (
        open_session(TCPConnector()) as session,
        open_session(TCPConnector(socket_factory=distant_socket)) as distant,
    ):
        yield ProviderClient(session, distant)
