"""Rules for new passwords, as NIST SP 800-63B (3.1.1.2) and OWASP recommend.

They apply where a password is set. An older password still works. No password is longer than
MAX_PASSWORD_LENGTH, so that a check takes at most a few milliseconds.
"""

import gzip
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import pairwise

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH

MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 8, 128
# Of what is left without digits and signs at the ends.
MIN_DIFFERENT_CHARACTERS = 4
# A shorter word of a name occurs in too many good passwords, and one that is shorter than
# MIN_HIDDEN_LENGTH inside their words: Rose in `rosebud`.
MIN_KNOWN_LENGTH, MIN_HIDDEN_LENGTH = 4, 6
SERVICE_NAME = "slotlock"
WRONG_LENGTH = ProblemCode.PASSWORD_LENGTH.problem(
    minimum=MIN_PASSWORD_LENGTH, maximum=MAX_PASSWORD_LENGTH
)
TOO_COMMON = ProblemCode.PASSWORD_TOO_COMMON.problem()
CONTAINS_KNOWN_WORD = ProblemCode.PASSWORD_CONTAINS_NAME.problem()
RULES_TEXT = (
    f"{MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters. Several words are good. "
    "One common word or name, a row of keys, or digits alone are refused, and so is your own name."
)
# Signs and digits that stand for a letter; 1 stands for two.
_LETTERS = {"4": "a", "@": "a", "8": "b", "3": "e", "!": "i", "0": "o", "5": "s", "$": "s"} | {
    "7": "t",
    "+": "t",
}
_SPELLINGS = tuple(str.maketrans({**_LETTERS, "1": letter}) for letter in "il")
# English, German, French and Russian ones.
_KEY_ROWS = [
    fold(row)
    for row in (
        *("qwertyuiop", "asdfghjkl", "zxcvbnm"),
        *("qwertzuiop\u00fc", "asdfghjkl\u00f6\u00e4", "yxcvbnm"),
        *("azertyuiop", "qsdfghjklm", "wxcvbn"),
        *("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю"),
    )
]
KEY_ROWS = (*_KEY_ROWS, *(row[::-1] for row in _KEY_ROWS))


def validate_password(password: str, name: str = "", login_name: str = "") -> Problem | None:
    """Return the problem with a new password of the user with these names, or None."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        return WRONG_LENGTH
    if _contains_known_word(password, name, login_name):
        return CONTAINS_KNOWN_WORD
    return TOO_COMMON if _is_common(_fold(password)) else None


def repeats_itself(text: str) -> bool:
    """Return whether the text is a shorter text, several times."""
    return text in (text + text)[1:-1]


def _fold(text: str) -> str:
    """Return the text without blanks, capitals, accents and invisible characters."""
    return "".join(c for c in fold(text) if not c.isspace() and unicodedata.category(c) != "Cf")


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


def _is_common(text: str) -> bool:
    """Return whether a folded password is a pattern, or a listed word with more at its ends."""
    if _is_pattern(text):
        return True
    listed = _common_passwords()
    return any(
        _is_pattern(core) or f"\n{core}\n" in listed or any(core in row for row in KEY_ROWS)
        for core in _cores(text)
    )


def _cores(text: str) -> Iterator[str]:
    """Yield the text without digits and signs at its ends, in each of its spellings."""
    letters = [index for index, character in enumerate(text) if _is_letter(character)]
    if not letters:
        yield ""
        return
    start, end = letters[0], letters[-1] + 1
    yield text[start:end]
    for spelling in _SPELLINGS:
        # The first letter may be a sign, too.
        for beginning in {start, 0}:
            yield text[beginning:end].translate(spelling)


def _is_pattern(text: str) -> bool:
    """Return whether the text has few characters, repeats itself, or counts up or down."""
    if len(set(text)) < MIN_DIFFERENT_CHARACTERS or repeats_itself(text):
        return True
    codes = [ord(character) for character in text]
    steps = {after - before for before, after in pairwise(codes)}
    return len(steps) == 1


def _contains_known_word(password: str, name: str, login_name: str) -> bool:
    """Return whether a word of the password is known, or a longer one is hidden in it."""
    # Another check rejects longer texts, which would take seconds here.
    name, login_name = name[:MAX_NORMALIZED_LENGTH], login_name[:MAX_NORMALIZED_LENGTH]
    texts = (SERVICE_NAME, name, *name.split(), login_name, login_name.partition("@")[0])
    known = {"".join(filter(str.isalnum, _fold(text))) for text in texts}
    words = set("".join(c if _is_letter(c) else " " for c in fold(password)).split())
    whole = "".join(filter(str.isalnum, _fold(password)))
    return any(
        word in words or (len(word) >= MIN_HIDDEN_LENGTH and word in whole)
        for word in known
        if len(word) >= MIN_KNOWN_LENGTH
    )


@cache
def _common_passwords() -> str:
    """Return the list, whose words stand between line breaks. A set would take 2 MB."""
    package = resources.files("slotlock.auth.password_policy")
    packed = package.joinpath("common_passwords.txt.gz").read_bytes()
    return "\n" + gzip.decompress(packed).decode()
