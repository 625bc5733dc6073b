"""The providers of sign-ins (OpenID Connect), with their metadata and keys."""

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from http import HTTPStatus
from math import inf
from time import monotonic
from typing import Any
from urllib.parse import quote_plus, urlsplit

from slotlock.auth.passwords import MAX_WAIT_S
from slotlock.auth.providers.provider import Provider
from slotlock.auth.providers.refreshing_cache import RefreshingCache
from slotlock.infrastructure.fair_scheduler import FairScheduler
from slotlock.infrastructure.provider_client import (
    ProviderClient,
    ProviderUnavailableError,
    is_loopback,
    is_safe_url,
    may_be_local,
    open_provider_client,
)

# A provider that changes its endpoints or withdraws a key is asked again after this time.
METADATA_TTL_S, KEYS_TTL_S = 3600.0, 60.0
# Tokens of a kind with unknown keys make the server ask for new ones at most once in this time.
MIN_REFRESH_S = 60.0
REQUIRED_METADATA = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# A sign-in takes some five round trips to MongoDB and two to the provider, at first so long.
MAX_RUNNING, EXPECTED_SIGN_IN_S = 16, 0.3
WELL_KNOWN = "/.well-known/openid-configuration"


class SignInRejectedError(Exception):
    """A sign-in is not valid; the text is for the log."""


class TokenKind(Enum):
    """What a token is for. Everybody can send one that claims to be for a sign-out."""

    ID = "id"
    LOGOUT = "logout"


class ProviderConnection:
    """Asks a provider, and remembers its metadata and keys for a while.

    Sign-ins wait for a permit of `scheduler` before they read or write anything. Each provider has
    its own, so that one that does not respond holds up no sign-in at another.
    """

    def __init__(self, provider: Provider, client: ProviderClient) -> None:
        self.provider = provider
        self.scheduler = FairScheduler[None](
            MAX_RUNNING, max_wait_s=MAX_WAIT_S, expected_job_s=EXPECTED_SIGN_IN_S
        )
        self._client = client
        name = f"the provider {provider.id}"
        self._metadata = RefreshingCache(
            self._read_metadata, METADATA_TTL_S, f"the metadata of {name}"
        )
        self._keys = RefreshingCache(self._read_keys, KEYS_TTL_S, f"the keys of {name}")
        self._refreshed_at = dict.fromkeys(TokenKind, -inf)

    async def metadata(self) -> Mapping[str, Any]:
        """Return the provider's description of itself. Raises: ProviderUnavailableError."""
        return await self._metadata.get()

    async def keys(
        self, key_id: str | None = None, kind: TokenKind = TokenKind.ID
    ) -> Sequence[Mapping[str, Any]]:
        """Return the keys of the provider, new ones if it has none of this id among those known.

        Tokens of another kind cannot use up the requests for new ones.

        Raises:
            ProviderUnavailableError: the provider is not available.
        """
        asked_at = monotonic()
        keys = await self._keys.get()
        is_known = key_id is None or any(key.get("kid") == key_id for key in keys)
        refreshed_at = self._refreshed_at[kind]
        is_early = asked_at - refreshed_at < MIN_REFRESH_S
        if is_known or is_early or self._keys.began_at >= asked_at:
            return keys
        self._refreshed_at[kind] = asked_at
        try:
            return await self._keys.read_again()
        except ProviderUnavailableError:
            self._refreshed_at[kind] = refreshed_at
            raise

    def expect_sign_in(self) -> None:
        """Read the keys, unless they are new, while a user signs in at the provider."""
        self._keys.read_soon()

    async def close(self) -> None:
        """End what is being read."""
        await self._keys.close()
        await self._metadata.close()

    async def _read_metadata(self) -> Mapping[str, Any]:
        url = self.provider.issuer.rstrip("/") + WELL_KNOWN
        response = await self._client.get(self.provider.issuer, url)
        if response.status != HTTPStatus.OK:
            raise ProviderUnavailableError(f"{url} has status {response.status}")
        check_metadata(self.provider, response.body)
        return response.body

    async def _read_keys(self) -> Sequence[Mapping[str, Any]]:
        url = (await self.metadata())["jwks_uri"]
        response = await self._client.get(self.provider.issuer, url)
        keys = response.body.get("keys")
        if response.status != HTTPStatus.OK or not isinstance(keys, list):
            raise ProviderUnavailableError(f"{url} has no keys")
        return [key for key in keys if isinstance(key, dict)]

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, Any]:
        """Exchange a code for tokens.

        Raises:
            ProviderUnavailableError: the provider is not available.
            SignInRejectedError: the provider rejects the code.
        """
        metadata, headers = await self.metadata(), dict[str, str]()
        provider = self.provider
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": provider.client_id,
        }
        # Without the list, a provider has only the first way (OpenID Connect Discovery, 3).
        ways = metadata.get("token_endpoint_auth_methods_supported")
        ways = ways if isinstance(ways, list) and ways else ["client_secret_basic"]
        if provider.client_secret is not None and "client_secret_basic" in ways:
            name, secret = quote_plus(provider.client_id), quote_plus(provider.client_secret)
            headers["authorization"] = "Basic " + b64encode(f"{name}:{secret}".encode()).decode()
        elif provider.client_secret is not None:
            form["client_secret"] = provider.client_secret
        endpoint = metadata["token_endpoint"]
        response = await self._client.post(provider.issuer, endpoint, form, headers)
        if response.status != HTTPStatus.OK:
            raise SignInRejectedError(f"the code was refused: {response.body.get('error')!r}")
        return response.body

    async def user_info(self, access_token: object) -> Mapping[str, Any]:
        """Return the claims about the user of a token; none without an endpoint for them."""
        url = (await self.metadata()).get("userinfo_endpoint")
        if not isinstance(url, str) or not isinstance(access_token, str):
            return {}
        response = await self._client.get(self.provider.issuer, url, access_token)
        if response.status != HTTPStatus.OK:
            raise ProviderUnavailableError(f"{url} has status {response.status}")
        return response.body


class SignOn:
    """The providers of this server, and the addresses to which they may send their users."""

    def __init__(
        self, connections: Sequence[ProviderConnection], board_url: str | None = None
    ) -> None:
        self.board_url = board_url
        self._connections = {each.provider.id: each for each in connections}

    @property
    def providers(self) -> list[Provider]:
        """The providers in the order of the settings."""
        return [each.provider for each in self._connections.values()]

    def find(self, provider_id: str) -> ProviderConnection | None:
        """Return the connection to a provider."""
        return self._connections.get(provider_id)

    def find_for_state(self, state: str) -> ProviderConnection | None:
        """Return the connection that the state of a sign-in begins with."""
        return self.find(state.partition(".")[0])

    def redirect_uris(self, provider: Provider) -> tuple[str, ...]:
        """Return where a provider may send users; the first one is the default."""
        own = () if self.board_url is None else (self.board_url,)
        return own + provider.redirect_uris


@asynccontextmanager
async def open_sign_on(
    providers: Sequence[Provider], board_url: str | None
) -> AsyncIterator[SignOn]:
    """Open the connections to providers until the context ends."""
    async with open_provider_client() as client:
        connections = [ProviderConnection(each, client) for each in providers]
        try:
            yield SignOn(connections, board_url)
        finally:
            for connection in connections:
                await connection.close()


def check_metadata(provider: Provider, metadata: Mapping[str, Any]) -> None:
    """Check the metadata. Raises: ProviderUnavailableError."""
    # Another issuer could be one that signs what it likes (OpenID Connect Discovery, 4.3).
    if metadata.get("issuer") != provider.issuer:
        raise ProviderUnavailableError(
            f"its issuer is {metadata.get('issuer')!r}, not {provider.issuer!r}"
        )
    for name in (*REQUIRED_METADATA, *({"userinfo_endpoint"} & metadata.keys())):
        url = metadata.get(name)
        if not is_safe_url(url):
            raise ProviderUnavailableError(f"{name} is no URL with https: {url!r}")
        host = urlsplit(str(url)).hostname or ""
        if is_loopback(host) and not may_be_local(str(url), provider.issuer):
            raise ProviderUnavailableError(f"{name} is a URL of this host: {url!r}")
