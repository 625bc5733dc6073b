"""Rules for new passwords, as NIST SP 800-63B (3.1.1.2) and OWASP recommend.

They apply where a password is set. An older password still works.
"""

import string
import unicodedata
from functools import cache
from importlib import resources
from itertools import pairwise

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH

MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 8, 128
MIN_DIFFERENT_CHARACTERS = 4
# A shorter word occurs in too many good passwords.
MIN_KNOWN_LENGTH = 4
SERVICE_NAME = "slotlock"
WRONG_LENGTH = ProblemCode.PASSWORD_LENGTH.problem(
    minimum=MIN_PASSWORD_LENGTH, maximum=MAX_PASSWORD_LENGTH
)
TOO_COMMON = ProblemCode.PASSWORD_TOO_COMMON.problem()
CONTAINS_KNOWN_WORD = ProblemCode.PASSWORD_CONTAINS_NAME.problem()


def validate_password(password: str, name: str = "", login_name: str = "") -> Problem | None:
    """Return the problem with a new password of the user with these names, or None."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        return WRONG_LENGTH
    folded = _fold(password)
    if _is_pattern(folded) or _is_common(folded):
        return TOO_COMMON
    known = _known_words(name, login_name)
    if any(len(word) >= MIN_KNOWN_LENGTH and word in folded for word in known):
        return CONTAINS_KNOWN_WORD
    return None


def _known_words(name: str, login_name: str) -> set[str]:
    # Another check rejects longer texts, which would take seconds here.
    name, login_name = name[:MAX_NORMALIZED_LENGTH], login_name[:MAX_NORMALIZED_LENGTH]
    texts = (SERVICE_NAME, name, *name.split(), login_name, login_name.partition("@")[0])
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
