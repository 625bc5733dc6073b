"""Email addresses in the form in which they are stored."""

import re

from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH, normalize_nfc, strip_blanks

# Schools use special-use domains (.local, .test) in their own networks. The documentation of
# email_validator names this way to accept them.
SPECIAL_USE_DOMAIN_NAMES.clear()

# Invisible characters that email_validator accepts: two addresses would appear the same
# (Default_Ignorable_Code_Point in Unicode, and the empty Braille pattern).
_INVISIBLE_CHARACTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)


def normalize_email(email: str) -> str | None:
    """Return the address as it is stored: stripped, in lower case and NFC; None if invalid."""
    if len(email) > MAX_NORMALIZED_LENGTH:
        return None
    try:
        valid = validate_email(
            strip_blanks(email), check_deliverability=False, globally_deliverable=False
        )
    except EmailNotValidError:
        return None
    # lower() can leave NFC: J\u030c has no composed form, but j\u030c has one.
    normalized = normalize_nfc(valid.normalized.lower())
    return None if _INVISIBLE_CHARACTERS.search(normalized) else normalized
