"""The mail server that takes mails: its connections, and how long they wait for a response."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slotlock.domain.notifications.outbox import Delivery, OutboxState
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mail.addresses import MailServerAddress, with_ascii_domain
from slotlock.infrastructure.mail.responses import (
    Stage,
    server_refuses,
    to_delivery,
    undeliverable,
)

if TYPE_CHECKING:
    from aiosmtplib import SMTP, SMTPResponse  # most commands send no mail

log = logging.getLogger("slotlock.mail")

TIMEOUT_S = 30.0
# Mail servers limit the connections of a client, some to 20.
MAX_CONNECTIONS = 10
# Some mail servers ask others about a recipient or a content, and these may hang. A mail without a
# response after some times the usual one, at least and at most these seconds, leaves its place to
# other mails: it waits on one of a few further connections for this. If these are taken, the mail
# is tried again later. A content, which the server may have taken, gets the longest of these times
# before, or more where that is usual.
USUAL_TIMES, MIN_PATIENCE_S, MAX_PATIENCE_S = 3.0, 1.5, 10.0
MAX_SLOW_CONNECTIONS = 5
# A server may close a connection after some mails, or some minutes at rest.
MAX_MAILS_PER_CONNECTION = 100
MAX_IDLE_S = 5.0
WARNING_INTERVAL_S = 60.0


@value_object
class _Mail:
    """A mail as it is sent; non-ASCII addresses need a server that knows SMTPUTF8 (RFC 6531)."""

    content: bytes
    sender: str
    recipient: str

    @property
    def encoding(self) -> str:
        """The encoding of the addresses."""
        return "ascii" if self.sender.isascii() and self.recipient.isascii() else "utf-8"


@value_object
class _Connection:
    """A connection that was signed in; `count` mails have been sent over it."""

    client: "SMTP"
    count: int = 0
    used_at: float = 0.0


class _ConnectionEndedError(Exception):
    """The server ended a connection at rest, or took no further mail over it."""


class MailServer:
    """Connections to the mail server, which are used again."""

    def __init__(self, address: MailServerAddress) -> None:
        self._address = address
        self._idle: list[_Connection] = []
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)
        stages = (Stage.RECIPIENT, Stage.CONTENT)
        self._slow_rooms = {each: asyncio.Semaphore(MAX_SLOW_CONNECTIONS) for each in stages}
        # The moving averages of the times until the server responds.
        self._usual_s = dict.fromkeys(stages, 0.0)
        self._warned_at = float("-inf")
        self._tls = ssl.create_default_context()  # to load it for each connection takes 18 ms

    async def close(self) -> None:
        """Close the connections that are at rest."""
        while self._idle:
            self._idle.pop().client.close()

    async def check(self, sender: str) -> None:
        """Connect, sign in, name a sender and quit. Raises: OSError, SMTPException, ValueError."""
        client = await self._connect()
        try:
            await client.mail(with_ascii_domain(sender))
            await client.quit()
        finally:
            client.close()

    async def send(self, message: bytes, sender: str, recipient: str) -> Delivery:
        """Send a mail, and return what the server made of it."""
        mail = _Mail(message, with_ascii_domain(sender), with_ascii_domain(recipient))
        delivery = replace(await self._send(mail), recipient=recipient)
        if delivery.is_outage:
            self._warn(delivery.note)
        return delivery

    async def _send(self, mail: _Mail) -> Delivery:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._room.acquire()
        except TimeoutError:
            return server_refuses("it is slow")
        with ExitStack() as place:
            place.callback(self._room.release)
            if idle := self._take_idle():
                with suppress(_ConnectionEndedError):
                    return await self._transact(mail, place, idle)
            return await self._transact(mail, place, None)

    async def _transact(self, mail: _Mail, place: ExitStack, idle: _Connection | None) -> Delivery:
        """Send a mail over a connection that was at rest, or over a new one.

        Raises: _ConnectionEndedError: the one at rest is of no use, and did not take the mail.
        """
        from aiosmtplib import SMTPException

        client, stage = idle.client if idle else None, Stage.CONNECTION
        try:
            if client is None:
                client = await self._connect()
            if mail.encoding != "ascii" and not client.supports_extension("smtputf8"):
                client.close()
                reason = "the mail server does not know SMTPUTF8"
                return Delivery(OutboxState.FAILED, reason)
            stage = Stage.SENDER
            size = [f"SIZE={len(mail.content)}"] if client.supports_extension("size") else []
            utf8 = ["SMTPUTF8"] if mail.encoding != "ascii" else []
            await client.mail(mail.sender, options=[*size, *utf8], encoding=mail.encoding)
            stage = Stage.RECIPIENT
            rcpt = client.rcpt(mail.recipient, encoding=mail.encoding)
            await self._wait_for_response(rcpt, stage, place)
            stage = Stage.CONTENT
            _, response = await self._wait_for_response(client.data(mail.content), stage, place)
        except (OSError, SMTPException, ValueError) as error:
            if client is not None:
                client.close()
            if idle is not None and _has_ended(stage, error):
                raise _ConnectionEndedError from error
            return _failure(stage, error)
        except BaseException:
            if client is not None:
                client.close()
            raise
        self._rest(client, idle.count + 1 if idle else 1)
        return Delivery(OutboxState.SENT, response)

    async def _wait_for_response(
        self, command: Coroutine[Any, Any, "SMTPResponse"], stage: Stage, place: ExitStack
    ) -> "SMTPResponse":
        """Return the response to a command, and leave the place if that takes long.

        Raises: OSError (TimeoutError if the mail has to give way), SMTPException or ValueError.
        """
        loop, slow_room = asyncio.get_running_loop(), self._slow_rooms[stage]
        patience_s = min(max(USUAL_TIMES * self._usual_s[stage], MIN_PATIENCE_S), MAX_PATIENCE_S)
        began_at = loop.time()
        response = asyncio.ensure_future(command)
        try:
            await asyncio.wait([response], timeout=patience_s)
            if not response.done():
                if not slow_room.locked():
                    await slow_room.acquire()
                    place.close()
                    place.callback(slow_room.release)
                else:
                    if stage is Stage.CONTENT:
                        all_s = max(USUAL_TIMES * self._usual_s[stage], MAX_PATIENCE_S)
                        await asyncio.wait([response], timeout=all_s - patience_s)
                    if not response.done():
                        spent_s = loop.time() - began_at
                        raise TimeoutError(f"no response to the {stage} within {spent_s:.1f} s")
                await asyncio.wait([response])
            if not isinstance(response.exception(), OSError):
                self._usual_s[stage] += (loop.time() - began_at - self._usual_s[stage]) / 8
            return await response
        finally:
            response.cancel()

    def _take_idle(self) -> _Connection | None:
        """Return a connection at rest, if one is open."""
        fresh_since = asyncio.get_running_loop().time() - MAX_IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.client.is_connected and connection.used_at > fresh_since:
                return connection
            connection.client.close()
        return None

    def _rest(self, client: "SMTP", count: int) -> None:
        if count < MAX_MAILS_PER_CONNECTION:
            now = asyncio.get_running_loop().time()
            self._idle.append(_Connection(client, count, now))
        else:
            client.close()

    async def _connect(self) -> "SMTP":
        """Return a new connection. Raises: OSError, SMTPException or ValueError."""
        from aiosmtplib import SMTP, SMTPHeloError

        address = self._address
        client = SMTP(
            hostname=address.host,
            port=address.port,
            username=address.username,
            password=address.password,
            use_tls=address.scheme == "smtps",
            start_tls=address.start_tls,
            tls_context=self._tls,
            # By default it is the name that DNS has, which takes 5 s where there is no DNS.
            local_hostname=socket.gethostname(),
            timeout=TIMEOUT_S,
        )
        await client.connect()
        try:
            if client.is_ehlo_or_helo_needed:
                await client.ehlo()
        except SMTPHeloError:
            pass  # an old server, which gets HELO
        except BaseException:
            client.close()
            raise
        return client

    def _warn(self, note: str) -> None:
        """Log why no mail leaves, once in a while."""
        now = asyncio.get_running_loop().time()
        if now >= self._warned_at + WARNING_INTERVAL_S:
            self._warned_at = now
            log.warning("%a", note)


def _has_ended(stage: Stage, error: Exception) -> bool:
    """Return whether a connection ended, and the server cannot have taken the mail.

    With 421, the server says that it did not, and closes the connection.
    """
    from aiosmtplib import SMTPResponseException

    if isinstance(error, SMTPResponseException):
        return error.code == 421
    return isinstance(error, ConnectionError) and stage is not Stage.CONTENT


def _failure(stage: Stage, error: Exception) -> Delivery:
    """Return what an error means."""
    from aiosmtplib import SMTPResponseException

    if isinstance(error, SMTPResponseException):
        return to_delivery(stage, error.code, error.message)
    if stage in (Stage.CONNECTION, Stage.SENDER):
        return server_refuses(describe_error(error))
    if isinstance(error, ValueError):
        return undeliverable(str(error))  # it cannot be written
    # The server may have taken the mail.
    return Delivery(OutboxState.QUEUED, describe_error(error))


def describe_error(error: Exception) -> str:
    """Return the response of the mail server, or why there is none."""
    from aiosmtplib import SMTPResponseException

    if isinstance(error, SMTPResponseException):
        return f"{error.code} {error.message}"
    return str(error) or type(error).__name__
