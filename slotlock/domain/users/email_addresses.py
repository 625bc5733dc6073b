"""Login names, which are email addresses and user names, in the form in which they are stored."""

import re
import unicodedata
from typing import Annotated

from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import (
    MAX_NORMALIZED_LENGTH,
    normalize_line,
    normalize_nfc,
    strip_blanks,
)

# An address in the form in which it is stored.
EmailAddress = Annotated[str, "e-mail address"]

# Invisible characters that email_validator accepts: two addresses would appear the same
# (Default_Ignorable_Code_Point in Unicode, and the empty Braille pattern).
_INVISIBLE_CHARACTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)

# Most addresses: letters, digits and `_+-` between single dots, and no label of an IDN.
# email_validator accepts each of them, and takes 30 ms to import.
_PLAIN_ADDRESS = re.compile(
    r"(?=.{3,254}\Z)(?=[^@]{1,64}@)[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*"
    r"@(?:(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
)

MAX_USERNAME_LENGTH = 100
INVALID_EMAIL = ProblemCode.INVALID_EMAIL.problem()
INVALID_USERNAME = ProblemCode.INVALID_USERNAME.problem(maximum=MAX_USERNAME_LENGTH)
INVALID_LOGIN_NAME = ProblemCode.INVALID_LOGIN_NAME.problem()


def normalize_login_name(login_name: str) -> str | None:
    """Return an email address or a user name as it is stored; None if it is invalid."""
    return normalize_email(login_name) if "@" in login_name else normalize_username(login_name)


def normalize_username(username: str) -> str | None:
    """Return the user name as it is stored: stripped, in lower case and NFC; None if invalid."""
    normalized = normalize_nfc(normalize_line(username).lower())
    if not 0 < len(normalized) <= MAX_USERNAME_LENGTH or _INVISIBLE_CHARACTERS.search(normalized):
        return None
    # A sign in full width looks like that of an address.
    has_at_sign = "@" in unicodedata.normalize("NFKC", normalized)
    has_blank = any(unicodedata.category(each)[0] in "CZ" for each in normalized)
    return None if has_at_sign or has_blank else normalized


def normalize_email(email: str) -> str | None:
    """Return the address as it is stored: stripped, in lower case and NFC; None if invalid."""
    if len(email) > MAX_NORMALIZED_LENGTH:
        return None
    email = strip_blanks(email)
    if _PLAIN_ADDRESS.fullmatch(email):
        return email.lower()
    from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

    # Schools use special-use domains (.local, .test) in their own networks. The documentation of
    # email_validator names this way to accept them.
    SPECIAL_USE_DOMAIN_NAMES.clear()
    try:
        valid = validate_email(email, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return None
    # lower() can leave NFC: J\u030c has no composed form, but j\u030c has one.
    normalized = normalize_nfc(valid.normalized.lower())
    return None if _INVISIBLE_CHARACTERS.search(normalized) else normalized
