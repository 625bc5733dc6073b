"""A mail as the mail server takes it: headers, text, HTML and invitations (RFC 5322, 6047).

The writer of bodies of the library would take most of the time of a mail: the parts are put
together here, in encodings of which no line begins with the boundary.
"""

import hashlib
from binascii import b2a_base64, b2a_qp
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import format_datetime
from functools import lru_cache

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mail.addresses import MailSender, with_ascii_domain
from slotlock.infrastructure.mail.mail_headers import write_address, write_text, write_value
from slotlock.infrastructure.mail.mail_texts import MailText

BASE64_LINE_BYTES = 57

# Most mails of a minute have these headers in common.
_write_shared_text = lru_cache(maxsize=256)(write_text)
_write_shared_address = lru_cache(maxsize=256)(write_address)


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
        ValueError: the address of the recipient, or a header of `headers`, cannot be written.
    """
    name, address = recipient
    domain = sender.address.rpartition("@")[2]
    lines = [
        _write_shared_address("From", sender.name, sender.address),
        *([_write_shared_address("Reply-To", *sender.reply_to)] if sender.reply_to else []),
        write_address("To", name, with_ascii_domain(address)),
        _write_shared_text("Subject", content.subject),
        write_value("Date", format_datetime(now)),
        write_value("Message-ID", f"<{_hash(entry_id)}@{domain}>"),
        # Programs that reply to everything do not reply to this (RFC 3834), nor does Exchange.
        write_value("Auto-Submitted", "auto-generated"),
        write_value("X-Auto-Response-Suppress", "All"),
        *(write_value(field, value) for field, value in (headers or {}).items()),
    ]
    parts = [_text_part("plain", content.text), _text_part("html", content.html)]
    # Mail programs process the parts in the alternative; those that do not show the attachments.
    parts += [_calendar_part(each) for each in invitations]
    body = _multipart("alternative", parts)
    if invitations:
        attachments = [_calendar_part(each, is_attachment=True) for each in invitations]
        body = _multipart("mixed", [body, *attachments])
    return "".join(lines).encode() + b"MIME-Version: 1.0\r\n" + body


def _hash(entry_id: str) -> str:
    return hashlib.sha256(entry_id.encode()).hexdigest()[:40]


def _multipart(subtype: str, parts: Sequence[bytes]) -> bytes:
    # Neither of the encodings of parts can contain it (RFC 2045, 6.7).
    boundary = f"=_{subtype}"
    start = f'Content-Type: multipart/{subtype}; boundary="{boundary}"\r\n'.encode()
    separator = f"\r\n--{boundary}".encode()
    return start + b"".join(separator + b"\r\n" + part for part in parts) + separator + b"--\r\n"


def _text_part(subtype: str, text: str) -> bytes:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    encoded = b2a_qp(lines.encode(errors="replace")).replace(b"\n", b"\r\n")
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
