"""Signs in at the certified `oidc-provider`, in the way of a browser.

slotlock has sessions of its own: it asks the provider for no refresh token, so none is checked.
"""

import os
import re
import secrets
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from bench.app_process import free_port
from conformance.apps import PRODUCTION, ConformanceApp, running
from conformance.node_scripts import NodeError
from slotlock.devserver.embedded import EmbeddedServers

CHECK_COUNT = 3
PUBLIC_URL = "https://slots.example.org"
SECRET = secrets.token_hex(32)
SETTINGS = f"""[[provider]]
id = "school"
name = "Example School"
issuer = "http://127.0.0.1:{{port}}"
client_id = "slotlock"
client_secret = "{SECRET}"
"""
START = """mutation($challenge: String!) { startSignIn(provider: "school", challenge: $challenge) {
  ... on SignInStarted { url } } }"""
FINISH = """mutation($state: String!, $code: String!, $verifier: String!, $issuer: String) {
  finishSignIn(state: $state, code: $code, verifier: $verifier, issuer: $issuer) {
    ... on Refusal { code } ... on Session { accessToken user { email emailVerified } } } }"""
READY_TIMEOUT_S = 30.0
MAX_PAGES = 20


def failed_checks(servers: EmbeddedServers, node_home: Path, folder: Path) -> list[str]:
    """Sign in, again after the provider changed its keys, and sign out there."""
    port, file = free_port(), folder / "providers.toml"
    file.write_text(SETTINGS.format(port=port))
    settings = {"SLOTLOCK_PROVIDERS": str(file), "SLOTLOCK_PUBLIC_URL": PUBLIC_URL}
    failures = []
    with running(PRODUCTION, servers, "sign_on", 3, folder, **settings) as app:
        for occasion in ("first keys", "new keys"):
            with (
                _provider(port, app, node_home, folder / "provider.log"),
                httpx.Client(trust_env=False, timeout=30) as browser,
            ):
                session = _sign_in(app, browser)
                user = {"email": "ada@slotlock.test", "emailVerified": True}
                if session.get("user") != user:
                    failures.append(f"{occasion}: {session}")
                elif occasion == "new keys":
                    _sign_out(browser, port)
                    if _is_signed_in(app, session["accessToken"]):
                        failures.append("a sign-out at the provider does not end the session")
    return failures


@contextmanager
def _provider(port: int, app: ConformanceApp, node_home: Path, log: Path) -> Iterator[None]:
    """Run the provider until the context ends; raises NodeError."""
    environment = {
        "PORT": str(port),
        "URL": app.url.removesuffix("/graphql"),
        "REDIRECT_URI": f"{PUBLIC_URL}/board",
        "SECRET": SECRET,
    }
    command = ["node", "provider.js"]
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=node_home, env={**os.environ, **environment}, stdout=output, stderr=output
        ) as process,
    ):
        try:
            deadline = time.monotonic() + READY_TIMEOUT_S
            while not _is_ready(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    lines = log.read_text().strip().splitlines()[-5:]
                    raise NodeError(f"provider.js does not start: {' | '.join(lines)}")
                time.sleep(0.05)
            yield
        finally:
            process.kill()


def _is_ready(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/jwks", trust_env=False).status_code == 200
    return False


def _execute(app: ConformanceApp, document: str, token: str = "", **variables: str | None) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = {"query": document, "variables": variables}
    return httpx.post(app.url, json=body, headers=headers, trust_env=False, timeout=30).json()


def _sign_in(app: ConformanceApp, browser: httpx.Client) -> Any:
    """Sign in from the start to the end. Return the session, or the refusal."""
    verifier = secrets.token_urlsafe(32)
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    url = _execute(app, START, challenge=challenge)["data"]["startSignIn"]["url"]
    found = _visit(browser, url)
    return _execute(
        app,
        FINISH,
        state=found["state"],
        code=found["code"],
        verifier=verifier,
        issuer=found.get("iss"),
    )["data"]["finishSignIn"]


def _visit(browser: httpx.Client, url: str) -> httpx.QueryParams:
    """Fill in each form of the provider. Return what it sends the user back with."""
    response = browser.get(url)
    for _ in range(MAX_PAGES):
        if (request := response.next_request) is None:
            response = _submit(browser, response, {"login": "ada", "password": "any"})
        elif str(request.url).startswith(PUBLIC_URL):
            return request.url.params
        else:
            response = browser.send(request)
    raise NodeError("the provider sends nobody back")


def _submit(browser: httpx.Client, page: httpx.Response, values: dict[str, str]) -> httpx.Response:
    """Submit the form of a page."""
    action = re.findall(r'<form [^>]*action="([^"]+)"', page.text)
    if not action:
        raise NodeError(f"the provider shows no form: {page.status_code} {page.text[:200]}")
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text))
    return browser.post(page.url.join(action[0]), data={**values, **fields})


def _sign_out(browser: httpx.Client, port: int) -> None:
    """Sign out at the provider, which waits for the clients that it informs."""
    page = browser.get(f"http://127.0.0.1:{port}/session/end")
    _submit(browser, page, {"logout": "yes"})


def _is_signed_in(app: ConformanceApp, token: str) -> bool:
    return bool((_execute(app, "{ me { id } }", token).get("data") or {}).get("me"))
