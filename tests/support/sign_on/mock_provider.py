"""A provider that others wrote, `oidc-provider-mock`, in a process of its own, and its users."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from tests.support.apps.processes import free_port
from tests.support.polling import wait_until


@dataclass(frozen=True)
class MockProvider:
    """A running provider, at which a user signs in with a form."""

    issuer: str

    def add_user(self, subject: str, **claims: object) -> None:
        """Add a user, or change the claims about one."""
        url = f"{self.issuer}/users/{subject}"
        httpx.put(url, json=claims, trust_env=False, timeout=30).raise_for_status()

    def sign_in(self, url: str, subject: str) -> httpx.QueryParams:
        """Sign in at the address of a sign-in. Return what the client gets."""
        response = httpx.post(url, data={"sub": subject}, trust_env=False, timeout=30)
        assert response.status_code == 302, response.text
        return httpx.URL(response.headers["location"]).params


@contextmanager
def mock_provider() -> Iterator[MockProvider]:
    """Run the provider. Its warnings about its own dependencies stay in its process."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    provider = MockProvider(f"http://127.0.0.1:{port}")

    def is_ready() -> bool:
        assert process.poll() is None
        try:
            return httpx.get(f"{provider.issuer}/jwks", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_until(is_ready, "the provider is ready")
        yield provider
    finally:
        process.kill()
        process.wait()
