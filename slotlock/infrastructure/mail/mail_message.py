"""A mail as the mail server takes it: headers, text, HTML and invitations (RFC 5322, 6047).

The library writes the headers. Its writer of bodies would take most of the time of a mail: the
parts are put together here, in encodings of which no line begins with the boundary.
"""

import hashlib
from binascii import b2a_base64, b2a_qp
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.errors import MessageError, NonASCIILocalPartDefect
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.policy import SMTP, SMTPUTF8, EmailPolicy, Policy
from email.utils import format_datetime
from functools import lru_cache
from typing import Any

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mail.addresses import MailSender, with_ascii_domain
from slotlock.infrastructure.mail.mail_texts import MailText

BASE64_LINE_BYTES = 57


class _AddressHeader(UnstructuredHeader, BaseHeader):
    """A header that is never folded.

    Python would encode a long address, and mail programs read only one that is not (RFC 2369, 2).
    """

    def fold(self, *, policy: Policy) -> str:
        """Return the header as one line."""
        return f"{self.name}: {self}{policy.linesep}"


_HEADERS = HeaderRegistry()
_HEADERS.map_to_type("List-Unsubscribe", _AddressHeader)
_ASCII = SMTP.clone(header_factory=_HEADERS)
# A local part with other characters needs a mail server that knows SMTPUTF8 (RFC 6531).
_UTF8 = SMTPUTF8.clone(header_factory=_HEADERS)


@value_object
class CalendarInvitation:
    """A calendar with one event, which a mail program adds (REQUEST) or removes (CANCEL).

    RFC 5546 (3.2.2, 3.2.5) allows one UID in each.
    """

    method: str
    calendar: bytes


def build_message(
    entry_id: str,
    sender: MailSender,
    recipient: tuple[str, str],
    content: MailText,
    now: datetime,
    invitations: Sequence[CalendarInvitation] = (),
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Return the mail of an entry to a name and address; the same entry has the same Message-ID.

    Raises:
        ValueError: an address or a header cannot be written, such as one with a line break.
    """
    name, address = recipient
    to, domain = _to_address(name, address), sender.address.rpartition("@")[2]
    policy = _ASCII if to.addr_spec.isascii() else _UTF8
    fields = {
        "From": str(Address(sender.name, addr_spec=sender.address)),
        "Subject": content.subject,
        "Date": format_datetime(now),
        # Programs that reply to everything do not reply to this (RFC 3834).
        "Auto-Submitted": "auto-generated",
        **({"Reply-To": sender.reply_to} if sender.reply_to else {}),
    }
    own_fields = {
        "To": to,
        "Message-ID": f"<{hashlib.sha256(entry_id.encode()).hexdigest()[:40]}@{domain}>",
        **(headers or {}),
    }
    lines = [_fold_shared(policy, field, value) for field, value in fields.items()]
    lines += [_fold(policy, field, value) for field, value in own_fields.items()]
    parts = [_text_part("plain", content.text), _text_part("html", content.html)]
    # Mail programs process the parts in the alternative; those that do not show the attachments.
    parts += [_calendar_part(each) for each in invitations]
    body = _multipart("alternative", parts)
    if invitations:
        attachments = [_calendar_part(each, is_attachment=True) for each in invitations]
        body = _multipart("mixed", [body, *attachments])
    return "".join(lines).encode() + b"MIME-Version: 1.0\r\n" + body


def _fold(policy: "EmailPolicy[Any]", field: str, value: object) -> str:
    """Return the lines of a header. Raises: ValueError."""
    return str(policy.header_store_parse(field, value)[1].fold(policy=policy))


# Most mails of a minute have these headers in common.
_fold_shared = lru_cache(maxsize=256)(_fold)


def _multipart(subtype: str, parts: Sequence[bytes]) -> bytes:
    # Neither of the encodings of parts can contain it (RFC 2045, 6.7).
    boundary = f"=_{subtype}"
    start = f'Content-Type: multipart/{subtype}; boundary="{boundary}"\r\n'.encode()
    separator = f"\r\n--{boundary}".encode()
    return start + b"".join(separator + b"\r\n" + part for part in parts) + separator + b"--\r\n"


def _text_part(subtype: str, text: str) -> bytes:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    encoded = b2a_qp(lines.encode()).replace(b"\n", b"\r\n")
    return (
        f'Content-Type: text/{subtype}; charset="utf-8"\r\n'
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
    ).encode() + encoded


def _calendar_part(invitation: CalendarInvitation, *, is_attachment: bool = False) -> bytes:
    name = "invite.ics" if invitation.method == "REQUEST" else "cancel.ics"
    disposition = f'Content-Disposition: attachment; filename="{name}"\r\n'
    calendar, size = invitation.calendar, BASE64_LINE_BYTES
    lines = [b2a_base64(calendar[n : n + size]) for n in range(0, len(calendar), size)]
    return (
        f'Content-Type: text/calendar; charset="utf-8"; method="{invitation.method}"\r\n'
        f"Content-Transfer-Encoding: base64\r\n{disposition if is_attachment else ''}\r\n"
    ).encode() + b"".join(lines).replace(b"\n", b"\r\n")


def _to_address(name: str, address: str) -> Address:
    address = with_ascii_domain(address)
    try:
        return Address(name, addr_spec=address)
    except NonASCIILocalPartDefect:
        local_part, _, domain = address.rpartition("@")
        return Address(name, local_part, domain)
    except (MessageError, IndexError) as error:  # the parser expects a complete address
        raise ValueError(f"{address!r} is not an email address") from error
