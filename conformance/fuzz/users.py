"""Access tokens for the fuzzing: one of an admin, and those of new members."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jwt

from conformance.apps import ADMIN_EMAIL, ADMIN_PASSWORD, SECRET, ConformanceApp

EXTRA_TTL_S = 6 * 3600  # a long run takes longer than the 15 minutes of a token
SIGN_IN = """mutation ($email: EmailAddress!, $password: String!) {
  login(input: {email: $email, password: $password}) { ... on Session { accessToken } }
}"""
REGISTER = """mutation ($email: EmailAddress!, $password: String!) {
  register(input: {name: "Ada", email: $email, password: $password}) {
    ... on Session { accessToken }
  }
}"""


def admin_token(app: ConformanceApp) -> str:
    """Return a long-lived token of the admin."""
    return _token(app, SIGN_IN, ADMIN_EMAIL, ADMIN_PASSWORD)


def member_tokens(app: ConformanceApp, count: int) -> list[str]:
    """Register members and return long-lived tokens for them."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: _member_token(app), range(count)))


def _member_token(app: ConformanceApp) -> str:
    return _token(app, REGISTER, f"{secrets.token_hex(8)}@slotlock.test", secrets.token_hex(16))


def _token(app: ConformanceApp, document: str, email: str, password: str) -> str:
    body = {"query": document, "variables": {"email": email, "password": password}}
    response = httpx.post(app.url, json=body, trust_env=False, timeout=60).json()
    (field,) = response["data"].values()
    return _extend_expiry(field["accessToken"])


def _extend_expiry(token: str) -> str:
    """Return the token with a later expiry; its session stays the same."""
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    claims["exp"] += EXTRA_TTL_S
    return jwt.encode(claims, SECRET, "HS256")
