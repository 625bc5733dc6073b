"""A mail server that refuses, hangs, answers errors or dies after DATA, and records what it took.

    mails.jsonl  {recipient, id?, response?, at}

One line for each response to a recipient or a mail; `id` is the Message-ID of a mail, and a mail
without a response was taken by a server that died before it answered. A mail was taken if it has
an id, and either no response or one that begins with 250.
"""

import asyncio
import time
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import TextIO, cast

import orjson
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bench.app_process import free_port
from bench.faults.topology.links import Links

MAIL = "mail server"
# While mails leave, a kill often comes between DATA and the record of its result.
SLOW_S = 0.4
# A share of the recipients is rejected; their users get no more mails.
REJECTED_EVERY = 8


class FaultMailServer:
    """A real SMTP server; `mode` says how it misbehaves."""

    HEALTHY, SLOW, TEMPORARY, PERMANENT, DIES = "healthy", "slow", "4xx", "5xx", "dies"

    def __init__(self, links: Links, path: Path) -> None:
        self.mode = self.HEALTHY
        # How many mails have arrived in all, also those that were refused.
        self.count = 0
        self.url = ""
        self._links = links
        self._file: TextIO = path.open("w")
        self._controller = Controller(self, "127.0.0.1", free_port(), server_hostname="localhost")

    async def start(self) -> None:
        """Listen, behind the links."""
        self._controller.start()
        port = await self._links.open_port(MAIL, self._controller.port)
        self.url = f"smtp://127.0.0.1:{port}"

    def stop(self) -> None:
        """End the server and its record."""
        self._controller.stop(no_assert=True)
        self._file.close()

    async def handle_RCPT(  # noqa: N802 - the library calls it
        self,
        server: SMTP,  # noqa: ARG002
        session: Session,  # noqa: ARG002
        envelope: Envelope,
        address: str,
        options: list[str],  # noqa: ARG002
    ) -> str:
        """Accept or reject a recipient."""
        is_chosen = sum(address.encode()) % REJECTED_EVERY == 0
        if self.mode == self.PERMANENT and is_chosen:
            return self._record(address, "550 no such user")
        if self.mode == self.TEMPORARY and is_chosen:
            return self._record(address, "450 greylisted")
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: ARG002, N802 - the library calls it
        """Take a mail, refuse it, or take it and die."""
        headers = BytesHeaderParser().parsebytes(bytes(envelope.original_content or b""))
        message_id, [address] = str(headers["Message-ID"]), envelope.rcpt_tos
        self.count += 1
        if self.mode == self.SLOW:
            await asyncio.sleep(SLOW_S)
        match self.mode:
            case self.TEMPORARY:
                return self._record(address, "451 try again", message_id)
            case self.PERMANENT:
                return self._record(address, "554 rejected", message_id)
            case self.DIES:
                self._record(address, None, message_id)
                cast("asyncio.Transport", server.transport).abort()
                return "421 closing"
        return self._record(address, "250 taken", message_id)

    def _record(self, address: str, response: str | None, message_id: str | None = None) -> str:
        line = {"recipient": address, "id": message_id, "response": response}
        self._file.write(orjson.dumps({**line, "at": time.monotonic()}).decode() + "\n")
        self._file.flush()
        return response or ""
