"""What two independent parsers read in the source of a mail."""

import email
from dataclasses import dataclass
from email.header import decode_header, make_header
from email.policy import default
from email.utils import getaddresses

from fast_mail_parser import parse_email, parse_email_tree, walk

NAMED = ("From", "To", "Reply-To")
Mailboxes = dict[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class ReadMail:
    """The headers of a mail, its subject, its names and addresses, and its parts.

    A part is its type and, of an attachment, its file name.
    """

    headers: tuple[str, ...]
    subject: str
    mailboxes: Mailboxes
    parts: tuple[tuple[str, str], ...]


def read_in_python(source: bytes) -> ReadMail:
    """Return what Python reads.

    Its parser of names adds a blank between encoded words (until 3.13), which its older one for
    texts does not.
    """
    message = email.message_from_bytes(source, policy=default)
    parts = [(part.get_content_type(), part.get_filename() or "") for part in message.walk()]
    older = email.message_from_bytes(source)
    unfolded = {name: older[name].replace("\r\n", "") for name in NAMED if name in older}
    mailboxes = {
        name: [(str(make_header(decode_header(of))), to) for of, to in getaddresses([value])]
        for name, value in unfolded.items()
    }
    for name, value in mailboxes.items():
        assert [each.addr_spec for each in message[name].addresses] == [to for _, to in value]
    return ReadMail(tuple(message.keys()), str(message["Subject"]), mailboxes, tuple(parts))


def read_in_rust(source: bytes) -> ReadMail:
    """Return what the crate mailparse reads."""
    mail, tree = parse_email(source), parse_email_tree(source)
    headers = tuple(name for name, values in mail.headers.items() for _ in values)
    found = {
        "From": [mail.from_] if mail.from_ else [],
        "To": mail.to,
        "Reply-To": mail.reply_to,
    }
    mailboxes = {
        name: [(each.display_name or "", each.address) for each in addresses]
        for name, addresses in found.items()
        if addresses
    }
    parts = [(part.content_type, part.filename) for part in walk(tree)]
    return ReadMail(headers, mail.subject, mailboxes, tuple(parts))


READERS = (read_in_python, read_in_rust)
