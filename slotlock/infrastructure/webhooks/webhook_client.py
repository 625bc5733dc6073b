"""Posts to the URLs of webhooks: no redirects, no proxy, and a bounded time and response."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING

from slotlock import __version__
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.webhooks.public_addresses import NO_PUBLIC_ADDRESS, public_socket

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from aiohttp.abc import AbstractResolver

TIMEOUT_S = 15.0
# A receiver that asks for more time gets this much.
MAX_RETRY_AFTER = timedelta(days=1)


@value_object
class WebhookResponse:
    """The response to a request. Without a status there was none, for the reason in `text`."""

    status: int | None
    text: str
    duration_ms: int
    retry_after: timedelta | None = None

    @property
    def is_success(self) -> bool:
        """Whether the receiver accepted the message."""
        return self.status is not None and 200 <= self.status < 300


class WebhookClient:
    """Posts messages to receivers, only to public addresses unless `allow_private`.

    aiohttp takes 9 MB and a tenth of a second, so that the first message imports it.
    """

    def __init__(self, *, allow_private: bool, resolver: "AbstractResolver | None") -> None:
        self._session: ClientSession | None = None
        self._allow_private = allow_private
        self._resolver = resolver

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> WebhookResponse:
        """Post a message. The body of the response is not read."""
        if not (self._allow_private or url.startswith("https://")):
            return WebhookResponse(None, "the URL does not begin with https://", 0)
        all_headers = {
            **headers,
            "content-type": "application/json",
            "user-agent": f"slotlock/{__version__}",
        }
        if self._session is None:  # on a thread, so that other requests go on
            await asyncio.to_thread(import_module, "aiohttp")
        from aiohttp import ClientConnectorDNSError, ClientError

        session = self._session = self._session or self._open_session()
        start, status, retry_after = perf_counter(), None, None
        try:
            async with session.post(
                url, data=body, headers=all_headers, allow_redirects=False
            ) as response:
                status, text = response.status, f"{response.status} {response.reason or ''}".strip()
                retry_after = parse_retry_after(response.headers.get("retry-after"))
        except TimeoutError:
            text = f"no response within {TIMEOUT_S:.0f} seconds"
        except (ClientError, OSError, ValueError) as error:
            text = str(error) or type(error).__name__
            if isinstance(error, ClientConnectorDNSError) or NO_PUBLIC_ADDRESS in text:
                text = NO_PUBLIC_ADDRESS
        return WebhookResponse(status, text, round((perf_counter() - start) * 1000), retry_after)

    def _open_session(self) -> "ClientSession":
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

        from slotlock.infrastructure.webhooks.name_resolver import NameResolver

        self._resolver = self._resolver or NameResolver()
        return ClientSession(
            connector=TCPConnector(
                limit=0,  # the sender limits the requests, by receiver
                resolver=self._resolver,
                socket_factory=None if self._allow_private else public_socket,
            ),
            timeout=ClientTimeout(total=TIMEOUT_S),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
        if self._resolver is not None:
            await self._resolver.close()


@asynccontextmanager
async def open_webhook_client(
    *, allow_private: bool, resolver: "AbstractResolver | None" = None
) -> AsyncIterator[WebhookClient]:
    """Open a client; its connections are closed with the context."""
    client = WebhookClient(allow_private=allow_private, resolver=resolver)
    try:
        yield client
    finally:
        await client.close()


def parse_retry_after(text: str | None) -> timedelta | None:
    """Return how long a response asks to wait, at most a day; None if it does not say it."""
    if text is None:
        return None
    try:
        if text.isascii() and text.isdigit():
            wait = timedelta(seconds=min(int(text), MAX_RETRY_AFTER.total_seconds()))
        else:
            at = parsedate_to_datetime(text)
            wait = at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(wait, timedelta()), MAX_RETRY_AFTER)
