"""What the responses of a mail server mean: for a mail, for its address, and for all mails.

A relay that is set up wrong rejects every address. Only what is about the address marks it, and
what the operator has to correct makes the mails wait.
"""

import re
from enum import StrEnum

from slotlock.domain.notifications.outbox import Delivery, OutboxState

# Begins the notes of entries that wait for the operator, or for the end of an outage.
SERVER_REFUSES = "the mail server takes no mails: "
MAX_CHARS = 1000

# The subject and the detail of an enhanced code (RFC 3463), which begins a line. qmail writes it
# in parentheses.
_ENHANCED_CODE = re.compile(
    r"^\W{0,2}[245]\.(\d{1,3}\.\d{1,3})\b(?!\.\d)|[(\[]#?[245]\.(\d{1,3}\.\d{1,3})[)\]]",
    re.MULTILINE,
)
# There is no such mailbox or domain, the address is malformed, or its user has moved.
_ADDRESS_CODES = {"1.1", "1.2", "1.3", "1.6", "1.10"}
# The address of the sender, a server that is full, stopped or set up wrong, the quota of its
# account, and what the account or its sign-in lacks.
_SERVER_CODES = {"1.7", "1.8", "3.1", "3.2", "3.5", "4.5", "7.8", "7.9", "7.11", "7.13", "7.14"}
# The server wants a sign-in, or cannot check it (RFC 4954).
_SIGN_IN_RESPONSES = {454, 530, 534, 535, 538}
_SIZE_RESPONSE, _SIZE_CODES = 552, {"2.3", "3.4"}
_SERVER_WORDS = re.compile(
    r"\brelay|rcpthosts|authenticat|starttls|\bhelo\b|\bclient (host|was|does|is)\b|send[ -]?as\b"
    r"|SendAs|\bsender (address|verify|domain|rejected|denied)|\bsend(er|ing)? (quota|limit)"
    r"|\bnot verified",
    re.IGNORECASE,
)
# What is not about the address in a response without an enhanced code: filters, limits, space.
_OTHER_WORDS = re.compile(
    r"spam|virus|black|block|abuse|polic|prohibit|denied|deny|access|permi|authori|reputation|sender"
    r"|\b(spf|dkim|dmarc|dns|ptr|ip|tls)\b|quota|exceed|limit|insufficient|storage|temporar|content"
    r"|\b(full|later|rate|too)\b",
    re.IGNORECASE,
)
# Addresses, URLs and host names, such as <relay@example.org>: their words say nothing.
_NAMES = re.compile(
    r"<[^>]*>|\w+://\S*|[^\s@]*@[^\s@]*|\b[a-z0-9_-]+(?:\.[a-z0-9_-]+)+(?:/\S*)?", re.IGNORECASE
)


class Stage(StrEnum):
    """How far a mail had come when the server responded."""

    CONNECTION = "connection"
    SENDER = "sender"
    RECIPIENT = "recipient"
    CONTENT = "content"


def to_delivery(stage: Stage, code: int, text: str) -> Delivery:
    """Return what a response leads to that refuses a mail, or makes no sense."""
    response, words = f"{code} {text}", _NAMES.sub(" ", text[:MAX_CHARS])
    failed = Delivery(OutboxState.FAILED, response)
    later = Delivery(OutboxState.QUEUED, response)
    found = _ENHANCED_CODE.search(text[:MAX_CHARS])
    enhanced = (found[1] or found[2]) if found else None
    if stage in (Stage.CONNECTION, Stage.SENDER):
        # The server does not know the recipient yet, but maybe the size of the mail.
        is_too_large = code == _SIZE_RESPONSE or (code >= 500 and enhanced in _SIZE_CODES)
        return failed if is_too_large else server_refuses(response)
    if code >= 500 and enhanced in _ADDRESS_CODES:
        return undeliverable(response)
    # Exchange wants a sign-in for addresses that take the mails of some senders only.
    has_server_words = "RESOLVER." not in text and bool(_SERVER_WORDS.search(words))
    if code in _SIGN_IN_RESPONSES or enhanced in _SERVER_CODES or has_server_words:
        return server_refuses(response)
    if code < 500:
        return later
    if enhanced is not None:
        return later if enhanced.startswith("7.") else failed
    if stage is Stage.CONTENT or code not in (550, 553, 554):
        return failed
    is_about_address = code != 554 and not _OTHER_WORDS.search(words)
    return undeliverable(response) if is_about_address else later


def undeliverable(reason: str) -> Delivery:
    """Return that a mail failed because of its address, which gets no more."""
    return Delivery(OutboxState.FAILED, reason, is_undeliverable=True)


def server_refuses(reason: str) -> Delivery:
    """Return that a mail waits until the server takes mails again, which costs no attempt."""
    return Delivery(OutboxState.QUEUED, SERVER_REFUSES + reason, is_outage=True)
