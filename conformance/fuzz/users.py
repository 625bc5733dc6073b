"""Who fuzzes: an admin, and people who may be signed out on the way."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jwt

from conformance.apps import ADMIN_EMAIL, ADMIN_PASSWORD, SECRET, ConformanceApp

EXTRA_TTL_S = 6 * 3600  # a long campaign outlives the quarter of an hour that a token is good for
SIGN_IN = """mutation ($email: EmailAddress!, $password: String!) {
  login(input: {email: $email, password: $password}) { ... on Session { accessToken } }
}"""
REGISTER = """mutation ($email: EmailAddress!, $password: String!) {
  register(input: {name: "Ada", email: $email, password: $password}) {
    ... on Session { accessToken }
  }
}"""


def admin_token(app: ConformanceApp) -> str:
    """A long token of the admin."""
    return _token(app, SIGN_IN, ADMIN_EMAIL, ADMIN_PASSWORD)


def member_tokens(app: ConformanceApp, count: int) -> list[str]:
    """Long tokens of so many new people."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: _member_token(app), range(count)))


def _member_token(app: ConformanceApp) -> str:
    return _token(app, REGISTER, f"{secrets.token_hex(8)}@slotlock.test", secrets.token_hex(16))


def _token(app: ConformanceApp, document: str, email: str, password: str) -> str:
    sent = {"query": document, "variables": {"email": email, "password": password}}
    answer = httpx.post(app.url, json=sent, trust_env=False, timeout=60).json()
    (field,) = answer["data"].values()
    return _extend_expiry(field["accessToken"])


def _extend_expiry(token: str) -> str:
    """The same token for longer: its session is what it is."""
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    claims["exp"] += EXTRA_TTL_S
    return jwt.encode(claims, SECRET, "HS256")
