"""The printed address leads to a page that says what can be done from there."""

import html
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from slotlock.graphql.schema.schema import schema
from tests.support.apps.dev_server import DevServer, run_dev_server
from tests.support.clients.client import GraphQLTestClient, http_client

BROWSER_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture(scope="module")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """Yield a running `slotlock dev`."""
    with run_dev_server(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def page(dev_server: DevServer) -> httpx.Response:
    """Return the response to the printed address."""
    address = re.search(r"is running: (\S+)", dev_server.output.read_text())
    assert address is not None
    return httpx.get(address[1], trust_env=False)


def test_the_page_is_html_whose_policy_allows_its_own_style_and_nothing_else(
    page: httpx.Response,
) -> None:
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    style_hash = b64encode(sha256(style.encode()).digest()).decode()
    assert page.headers["content-security-policy"] == (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert not re.search(r"<script|<img|style=|src=|\$\w", page.text)


def test_the_page_has_a_language_a_title_and_one_heading_of_the_first_level(
    page: httpx.Response,
) -> None:
    assert '<html lang="en">' in page.text
    assert "<title>slotlock is running</title>" in page.text
    assert re.findall(r"<h(\d)>", page.text) == ["1", "2", "2", "2", "2"]
    assert 'name="viewport"' in page.text


def test_every_link_of_the_page_responds_with_200(
    dev_server: DevServer, page: httpx.Response
) -> None:
    paths = re.findall(r'href="([^"]*)"', page.text)
    assert {"/graphql", "/schema.graphql", "/calendars/published.ics"} < set(paths)
    assert {"/healthz", "/readyz", "/metrics"} < set(paths)
    with httpx.Client(trust_env=False, headers={"Accept": BROWSER_ACCEPT}) as browser:
        statuses = {path: browser.get(dev_server.url + path).status_code for path in paths}
        assert set(statuses.values()) == {200}, statuses
        assert browser.get(dev_server.url + "/schema.graphql").text == schema.as_str() + "\n"


async def test_the_examples_of_the_page_work(dev_server: DevServer, page: httpx.Response) -> None:
    examples = [
        html.unescape(each) for each in re.findall(r"<pre[^>]*>(.*?)</pre>", page.text, re.DOTALL)
    ]
    login, create_slot, find_slots, book_slot, curl, _ = examples
    assert find_slots in curl
    _, password = dev_server.sign_in()
    async with http_client() as http:
        session = await GraphQLTestClient(http, dev_server.url).execute(
            login.replace('..."', f'{password}"', 1)
        )
        admin = GraphQLTestClient(http, dev_server.url, session["accessToken"])
        slot = await admin.execute(create_slot)
        assert slot["id"] in [each["id"] for each in (await admin.execute(find_slots))["nodes"]]
        booked = await admin.execute(book_slot.replace("slot_...", slot["id"]))
    assert booked["__typename"] == "Booked"


def test_the_page_shows_no_password(dev_server: DevServer, page: httpx.Response) -> None:
    email, password = dev_server.sign_in()
    assert email in page.text
    assert password not in page.text
    assert str(Path(dev_server.data, "secrets.json")) in page.text
