"""The mail server that takes mails: its address, its connections, and what its responses mean."""

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

from slotlock.domain.notifications.outbox import Delivery, OutboxState
from slotlock.infrastructure.mail.addresses import MailServerAddress, with_ascii_domain

if TYPE_CHECKING:
    from aiosmtplib import SMTP  # most commands send no mail

TIMEOUT_S = 30.0
# Mail servers limit the connections of a client, some to 20.
MAX_CONNECTIONS = 10
# A server may close a connection after some mails, or some minutes at rest.
MAX_MAILS_PER_CONNECTION = 100
MAX_IDLE_S = 5.0


class MailServer:
    """Connections to the mail server, which are used again."""

    def __init__(self, address: MailServerAddress) -> None:
        self._address = address
        # Connections at rest, each with when it was used last and for how many mails.
        self._idle: list[tuple[SMTP, float, int]] = []
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)
        self._tls = ssl.create_default_context()  # to load it for each connection takes 18 ms

    async def close(self) -> None:
        """Close the connections that are at rest."""
        while self._idle:
            self._idle.pop()[0].close()

    async def check(self) -> None:
        """Connect, sign in and quit. Raises: OSError or SMTPException."""
        client = await self._connect()
        await client.quit()

    async def send(self, message: bytes, sender: str, recipient: str) -> Delivery:
        """Send a mail, and return what the server made of it. Raises: ValueError."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._room.acquire()
        except TimeoutError:
            return Delivery(OutboxState.QUEUED, "the mail server is slow", is_outage=True)
        try:
            return await self._send(message, sender, recipient)
        finally:
            self._room.release()

    async def _send(self, message: bytes, sender: str, recipient: str) -> Delivery:
        from aiosmtplib import SMTPException

        try:
            client, count = await self._acquire()
        except (OSError, SMTPException) as error:
            return Delivery(OutboxState.QUEUED, describe_error(error), is_outage=True)
        address = with_ascii_domain(recipient)
        options = [] if address.isascii() else ["SMTPUTF8"]
        try:
            _, response = await client.sendmail(sender, address, message, mail_options=options)
        except (OSError, SMTPException) as error:
            client.close()
            return _failure(error, recipient)
        except BaseException:
            client.close()
            raise
        if count < MAX_MAILS_PER_CONNECTION:
            self._idle.append((client, asyncio.get_running_loop().time(), count))
        else:
            client.close()
        return Delivery(OutboxState.SENT, response, recipient)

    async def _acquire(self) -> "tuple[SMTP, int]":
        """Return a connection, and how many mails it will have taken with the next one."""
        fresh_since = asyncio.get_running_loop().time() - MAX_IDLE_S
        while self._idle:
            client, used_at, count = self._idle.pop()
            if client.is_connected and used_at > fresh_since:
                return client, count + 1
            client.close()
        return await self._connect(), 1

    async def _connect(self) -> "SMTP":
        from aiosmtplib import SMTP

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
        return client


def _failure(error: Exception, recipient: str) -> Delivery:
    """Return what an error means: 4xx and lost connections are retried, 5xx is final.

    A sender or a sign-in that the server rejects is a mistake of the operator, which is retried.
    """
    from aiosmtplib import (
        SMTPAuthenticationError,
        SMTPNotSupported,
        SMTPRecipientsRefused,
        SMTPResponseException,
        SMTPSenderRefused,
    )

    if isinstance(error, SMTPRecipientsRefused):
        refused = error.recipients[0]
        is_final = refused.code >= 500
        return Delivery(
            OutboxState.FAILED if is_final else OutboxState.QUEUED,
            describe_error(refused),
            recipient,
            is_undeliverable=is_final,
        )
    is_response = isinstance(error, SMTPResponseException)
    is_operators = isinstance(error, (SMTPSenderRefused, SMTPAuthenticationError))
    is_final = isinstance(error, SMTPNotSupported) or (
        isinstance(error, SMTPResponseException) and error.code >= 500 and not is_operators
    )
    state = OutboxState.FAILED if is_final else OutboxState.QUEUED
    return Delivery(state, describe_error(error), recipient if is_response else None)


def describe_error(error: Exception) -> str:
    """Return the response of the mail server, or why there is none."""
    from aiosmtplib import SMTPResponseException

    if isinstance(error, SMTPResponseException):
        return f"{error.code} {error.message}"
    return str(error) or type(error).__name__
