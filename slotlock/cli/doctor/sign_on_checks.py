"""Checks of the providers at which users sign in: what they say of themselves, keys and clocks."""

from collections.abc import AsyncIterator
from time import time

from slotlock.api.backend import board_url
from slotlock.api.settings.providers import read_providers
from slotlock.api.settings.settings import Settings, env_name
from slotlock.auth.providers.connections import WELL_KNOWN, ProviderConnection
from slotlock.auth.providers.provider import Provider
from slotlock.auth.sign_on.id_tokens import KEY_TYPES
from slotlock.cli.doctor.finding import Finding, check_clock, fail, ok
from slotlock.infrastructure.provider_client import (
    ProviderClient,
    ProviderUnavailableError,
    open_provider_client,
)


async def check_sign_on(settings: Settings) -> AsyncIterator[Finding]:
    """Yield findings for each provider."""
    if settings.providers is None:
        return
    async with open_provider_client() as client:
        for provider in read_providers(settings.providers):
            async for finding in _check_provider(settings, provider, client):
                yield finding


async def _check_provider(
    settings: Settings, provider: Provider, client: ProviderClient
) -> AsyncIterator[Finding]:
    check = f"sign-on {provider.id}"
    # Also while the provider does not respond: it may be because nobody has registered them.
    addresses = ", ".join(filter(None, (board_url(settings), *provider.redirect_uris)))
    if addresses:
        yield ok(f"{check} pages", f"the provider needs to know the addresses {addresses}")
    else:
        advice = f"set {env_name('public_url')}, or `redirect_uris` in SLOTLOCK_PROVIDERS"
        yield fail(f"{check} pages", "the provider has no address for users who return", advice)
    connection, sent_s = ProviderConnection(provider, client), time()
    try:
        response = await client.get(provider.issuer, provider.issuer.rstrip("/") + WELL_KNOWN)
        received_s = time()
        await connection.metadata()
        types = {KEY_TYPES[algorithm] for algorithm in provider.algorithms}
        usable = [key for key in await connection.keys() if key.get("kty") in types]
    except ProviderUnavailableError as error:
        advice = "nobody can sign in there: start it, or correct SLOTLOCK_PROVIDERS"
        yield fail(check, str(error), advice)
        return
    if not usable:
        names = ", ".join(provider.algorithms)
        advice = "correct `algorithms` in SLOTLOCK_PROVIDERS"
        yield fail(check, f"it has no key for {names}", advice)
        return
    yield ok(check, f"{len(usable)} keys")
    if response.date is not None:
        # The header has whole seconds.
        server_s, max_skew_s = response.date.timestamp() + 0.5, settings.max_clock_skew_s + 1
        yield check_clock(f"{check} clock", sent_s, server_s, received_s, max_skew_s)
