"""A provider whose keys, claims and lies the tests control, on a real HTTP server."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from slotlock.auth.providers.provider import Provider
from slotlock.auth.sign_on.sign_in import challenge_of

Json = dict[str, Any]
CLIENT_ID = "slotlock"


@cache
def rsa_key(name: str) -> RSAPrivateKey:
    """Return the key of this name; each takes 0.1 s."""
    return generate_private_key(65537, 2048)


def public_pem(name: str) -> bytes:
    """Return the public key of this name as text."""
    return rsa_key(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


class LyingProvider:
    """A provider that is honest until a test changes it.

    `published` are the names of its keys, of which the first one signs. `replays` accepts a code
    again, and `ignores_verifier` one of another client. `sign` makes the ID tokens. Requests for a
    path that is `held` wait for its event. `requests` are their paths and forms, each form with the
    header `authorization` of its request.
    """

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.published = ["first"]
        self.metadata: Json = {}
        self.claims: Json = {}
        self.user_info: Json = {}
        self.replays = self.ignores_verifier = False
        self.sign: Callable[[Json], str] = self.honest_token
        self.requests: list[tuple[str, Json]] = []
        self.held: dict[str, Event] = {}
        self._codes: dict[str, Json] = {}

    def settings(self, **fields: Any) -> Provider:
        """Return the provider as the settings of a server describe it."""
        values = {"id": "school", "name": "School", "client_secret": "secret", **fields}
        return Provider(issuer=self.issuer, client_id=CLIENT_ID, **values)

    def code_for(self, url: str) -> tuple[str, str]:
        """Sign in at the address of a sign-in. Return the state and the code."""
        query = dict(parse_qsl(urlsplit(url).query))
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        return query["state"], code

    def honest_claims(self, **claims: Any) -> Json:
        """Return the claims that each token has."""
        now = int(time.time())
        return {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, **claims}

    def honest_token(self, claims: Json) -> str:
        """Return a token with a right signature."""
        name = self.published[0]
        return jwt.encode(claims, rsa_key(name), "RS256", headers={"kid": name})

    def count(self, path: str) -> int:
        """Return how many requests there were for a path."""
        return sum(each == path for each, _ in self.requests)

    def respond(self, path: str, form: Json) -> tuple[int, Json]:
        """Return the response to a request."""
        self.requests.append((path, form))
        if path in self.held:
            assert self.held[path].wait(60)
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._metadata() | self.metadata
            case "/keys":
                return 200, {"keys": [self._jwk(name) for name in self.published]}
            case "/token":
                return self._redeem(form)
            case "/userinfo":
                return 200, self.user_info
        return 404, {}

    def _metadata(self) -> Json:
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token"}
        paths |= {"jwks_uri": "/keys", "userinfo_endpoint": "/userinfo"}
        return {"issuer": self.issuer, **{k: self.issuer + path for k, path in paths.items()}}

    def _jwk(self, name: str) -> Json:
        key: Json = json.loads(RSAAlgorithm.to_jwk(rsa_key(name).public_key()))
        return {**key, "kid": name, "use": "sig", "alg": "RS256"}

    def _redeem(self, form: Json) -> tuple[int, Json]:
        query = self._codes.pop(form["code"], None)
        if self.replays and query:
            self._codes[form["code"]] = query
        if query is None or query["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        is_right = challenge_of(form["code_verifier"]) == query["code_challenge"]
        if not (is_right or self.ignores_verifier):
            return 400, {"error": "invalid_grant"}
        claims = self.honest_claims(nonce=query["nonce"], name="Ada Lovelace", email=None)
        claims = {k: v for k, v in (claims | self.claims).items() if v is not None}
        return 200, {"id_token": self.sign(claims), "access_token": "access"}


@contextmanager
def lying_provider() -> Iterator[LyingProvider]:
    """Run a provider in a thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond({})

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(text).items()}
            self._respond({**form, "authorization": self.headers["authorization"]})

        def _respond(self, form: Json) -> None:
            status, body = provider.respond(self.path, form)
            content = json.dumps(body).encode()
            with suppress(ConnectionError):  # of a client that did not wait
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = LyingProvider(f"http://127.0.0.1:{server.server_address[1]}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
