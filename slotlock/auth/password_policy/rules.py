"""Rules for new passwords, as NIST SP 800-63B (3.1.1.2) and OWASP recommend.

They apply where a password is set. An older password still works.
"""

import string
import unicodedata
from functools import cache
from importlib import resources
from itertools import pairwise

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH

MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 8, 128
MIN_DIFFERENT_CHARACTERS = 4
# A shorter word occurs in too many good passwords.
MIN_KNOWN_LENGTH = 4
SERVICE_NAME = "slotlock"
WRONG_LENGTH = f"The password must have {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters."
TOO_COMMON = "This password is too easy to guess. Please use another one, such as several words."
CONTAINS_KNOWN_WORD = (
    "The password must not contain the name or the e-mail address of the user, or 'slotlock'."
)


def validate_password(password: str, name: str = "", email: str = "") -> str | None:
    """Return the problem with a new password of the user with this name and address, or None."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        return WRONG_LENGTH
    folded = _fold(password)
    if _is_pattern(folded) or _is_common(folded):
        return TOO_COMMON
    known = _known_words(name, email)
    if any(len(word) >= MIN_KNOWN_LENGTH and word in folded for word in known):
        return CONTAINS_KNOWN_WORD
    return None


def _known_words(name: str, email: str) -> set[str]:
    # Another check rejects longer texts, which would take seconds here.
    name, email = name[:MAX_NORMALIZED_LENGTH], email[:MAX_NORMALIZED_LENGTH]
    texts = (SERVICE_NAME, name, *name.split(), email, email.partition("@")[0])
    return set(map(_fold, texts))


def _fold(text: str) -> str:
    """Return the text without blanks, capitals, accents and invisible characters."""
    return "".join(c for c in fold(text) if not c.isspace() and unicodedata.category(c) != "Cf")


def _is_pattern(text: str) -> bool:
    """Return whether the text has few characters, repeats itself, or counts up or down."""
    if len(set(text)) < MIN_DIFFERENT_CHARACTERS or repeats_itself(text):
        return True
    codes = [ord(character) for character in text]
    steps = {after - before for before, after in pairwise(codes)}
    return len(steps) == 1


def repeats_itself(text: str) -> bool:
    """Return whether the text is a shorter text, several times."""
    return text in (text + text)[1:-1]


def _is_common(text: str) -> bool:
    """Return whether the text is a common password, also with more punctuation at its ends."""
    return not _common_passwords().isdisjoint((text, text.strip(string.punctuation)))


@cache
def _common_passwords() -> frozenset[str]:
    text = (
        resources.files("slotlock.auth.password_policy")
        .joinpath("common_passwords.txt")
        .read_text()
    )
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))
