"""Access tokens for the fuzzing: one of a new admin, and those of new members."""

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
PROMOTE = """mutation ($user: ID!) {
  setUserRole(userId: $user, role: ADMIN) { ... on User { role } }
}"""


def admin_token(app: ConformanceApp) -> str:
    """Register another admin and return a long-lived token of this user."""
    token = _member_token(app)
    first_admin = _token(app, SIGN_IN, ADMIN_EMAIL, ADMIN_PASSWORD)
    user_id = _execute(app, "{ me { id } }", token)["id"]
    _execute(app, PROMOTE, first_admin, user=user_id)
    return token


def member_tokens(app: ConformanceApp, count: int) -> list[str]:
    """Register members and return long-lived tokens for them."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: _member_token(app), range(count)))


def _member_token(app: ConformanceApp) -> str:
    return _token(app, REGISTER, f"{secrets.token_hex(8)}@slotlock.test", secrets.token_hex(16))


def _token(app: ConformanceApp, document: str, email: str, password: str) -> str:
    return _extend_expiry(_execute(app, document, email=email, password=password)["accessToken"])


def _execute(
    app: ConformanceApp, document: str, token: str | None = None, **variables: str
) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = {"query": document, "variables": variables}
    response = httpx.post(app.url, json=body, headers=headers, trust_env=False, timeout=60).json()
    field: dict[str, Any]
    (field,) = response["data"].values()
    return field


def _extend_expiry(token: str) -> str:
    """Return the token with a later expiry; its session stays the same."""
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    claims["exp"] += EXTRA_TTL_S
    return jwt.encode(claims, SECRET, "HS256")
