"""The printed addresses lead to the board, and to a page that says what developers can do."""

import html
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from slotlock.cli.main import main
from slotlock.graphql.schema.schema import schema
from tests.support.apps.dev_server import DevServer, run_dev_server
from tests.support.cli.command_line import replace_environment
from tests.support.clients.client import GraphQLTestClient, http_client

BROWSER_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture(scope="module")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """Yield a running `slotlock dev`."""
    with run_dev_server(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def page(dev_server: DevServer) -> httpx.Response:
    """Return the response to the printed address of the examples."""
    address = re.search(r"examples and links +(\S+)", dev_server.output.read_text())
    assert address is not None
    return httpx.get(address[1], trust_env=False, timeout=30)


async def test_the_banner_begins_with_the_board_which_leads_developers_to_the_examples(
    dev_server: DevServer, page: httpx.Response
) -> None:
    address = re.search(r"https?://\S+", dev_server.output.read_text())
    assert address is not None
    async with http_client() as http:
        board = await http.get(address[0])
        site = await GraphQLTestClient(http, dev_server.url).execute("{ site { developersUrl } }")
    assert 'name="board-version"' in board.text
    assert dev_server.url + site["developersUrl"] == str(page.url)


def test_mails_are_caught_and_shown_in_sandboxed_frames(
    dev_server: DevServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = re.search(r"mails +(\S+)", dev_server.output.read_text())
    assert address is not None
    replace_environment(monkeypatch, {"SLOTLOCK_DATA_DIR": str(dev_server.data)})
    assert main(["outbox", "send-test", "ada@school.test"]) == 0
    assert capsys.readouterr().out.endswith(" caught\n")
    with httpx.Client(trust_env=False, timeout=30) as browser:
        page = browser.get(address[1])
        assert "ada@school.test · Test of mail" in page.text
        assert re.findall(r"<iframe sandbox=\S+", page.text) == ['<iframe sandbox="allow-popups']
        mail = browser.get(f"{address[1]}/1")
        assert mail.headers["content-security-policy"].startswith("sandbox ")
        assert "This server can send mail." in mail.text
        assert "Message-ID" in browser.get(f"{address[1]}/1/source").text
        assert browser.get(f"{address[1]}/2").status_code == 404
    # The mail server says nothing of what it takes.
    assert "mail.log" not in dev_server.output.read_text()


def test_the_page_is_html_whose_policy_allows_its_own_style_and_nothing_else(
    page: httpx.Response,
) -> None:
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    style_hash = b64encode(sha256(style.encode()).digest()).decode()
    assert page.headers["content-security-policy"] == (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        f"style-src 'sha256-{style_hash}'"
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
    accepting = {"Accept": BROWSER_ACCEPT}
    with httpx.Client(trust_env=False, timeout=30, headers=accepting) as browser:
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
