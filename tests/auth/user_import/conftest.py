"""Fixtures of the tests of user imports."""

import secrets

import pytest


@pytest.fixture
def email_domain() -> str:
    """Return a domain for e-mail addresses that no other test uses."""
    return f"{secrets.token_hex(8)}.test"
