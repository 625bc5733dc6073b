"""Dependents: users, such as children, for whom one or two guardians act."""

import secrets
import string

MAX_GUARDIANS = 2
MAX_DEPENDENTS = 20


def new_login_name() -> str:
    """Return a login name for a user who has none: its blank keeps everybody from entering it."""
    return "child " + "".join(secrets.choice(string.ascii_lowercase) for _ in range(12))
