"""The board: a page that a cache may store for a moment, and files for ever."""

import gzip
import html
import json
import re

import brotli
import httpx
import pytest

from slotlock.api.board.files import WORKER, Computed, board_files, served_files
from tests.support.apps.processes import AppProcess
from tests.support.board.sources import path_of
from tests.support.clients.client import GraphQLTestClient

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "font-src 'self'; require-trusted-types-for 'script'; trusted-types slotlock slotlock-xml; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    name: file.content for name, file in served_files(board_files(), "").items() if name != WORKER
}


@pytest.fixture
async def page(app: AppProcess, http: httpx.AsyncClient) -> httpx.Response:
    """Return the response with the page."""
    return await http.get(app.url + "/board")


async def test_the_page_has_the_exact_policy_and_a_cache_stores_it_for_a_moment(
    page: httpx.Response,
) -> None:
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["cache-control"] == "public, max-age=30, stale-while-revalidate=300"
    assert "set-cookie" not in page.headers


def test_the_policy_names_the_policies_of_trusted_types_that_the_pages_create() -> None:
    created = {
        name for each in FILES.values() for name in re.findall(rb'createPolicy\("(.+?)"', each)
    }
    assert sorted(created) == [each.encode() for each in ("slotlock", "slotlock-xml")]
    assert "trusted-types slotlock slotlock-xml;" in POLICY


async def test_the_address_with_a_slash_leads_to_the_page(
    app: AppProcess, http: httpx.AsyncClient, page: httpx.Response
) -> None:
    response = await http.get(f"{app.url}/board/", follow_redirects=True)
    assert (response.url, response.text) == (page.url, page.text)


async def test_every_file_of_the_page_is_compressed_and_cached_for_ever(
    app: AppProcess, http: httpx.AsyncClient, page: httpx.Response
) -> None:
    version = re.findall(r'name="board-version" content="(\w+)"', page.text)[0]
    for name, content in FILES.items():
        url = f"{app.url}/board/{version}/{name}"
        for accepted, encoding in (("gzip, deflate, br", "br"), ("br;q=0, gzip", "gzip")):
            # The body as it is sent.
            async with http.stream("GET", url, headers={"Accept-Encoding": accepted}) as response:
                body = b"".join([each async for each in response.aiter_raw()])
            assert response.status_code == 200, name
            assert (brotli.decompress if encoding == "br" else gzip.decompress)(body) == content
            assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert response.headers["content-encoding"] == encoding
            assert response.headers["vary"] == "Accept-Encoding"
    plain = await http.get(f"{app.url}/board/{version}/app.js", headers={"Accept-Encoding": ""})
    assert "content-encoding" not in plain.headers
    assert plain.content == FILES["app.js"]


async def test_the_page_names_only_files_that_exist_and_every_shared_module(
    app: AppProcess, http: httpx.AsyncClient, page: httpx.Response
) -> None:
    named = re.findall(r'(?:href|src)="(/board/[^"]+)"', page.text)
    assert {(await http.get(app.url + path)).status_code for path in named} == {200}
    modules = {path.split("/", 3)[3] for path in named if path.endswith(".js")}
    imports = re.compile(r'^import \{[^}]*\} from "([^"]+)";$', re.MULTILINE)
    for name in modules:
        imported = {path_of(name, each) for each in imports.findall(FILES[name].decode())}
        assert imported or name == "app.js"
        assert imported - modules == set(), name


async def test_the_page_says_what_the_api_says_of_the_site(
    app: AppProcess, http: httpx.AsyncClient, page: httpx.Response
) -> None:
    content = re.findall(r'name="board-site" content="([^"]+)"', page.text)[0]
    shown = json.loads(html.unescape(content))
    client = GraphQLTestClient(http, app.url)
    fields = " ".join(shown).replace("signInProviders", "signInProviders { id name }")
    fields = fields.replace("passwordRules", "passwordRules { minLength maxLength }")
    assert await client.execute(f"{{ site {{ {fields} }} }}") == shown


@pytest.mark.parametrize("name", ["app.js", "reload.js", "messages/en.js", "views/organizer.js"])
async def test_a_page_of_another_version_gets_what_loads_it_anew(
    app: AppProcess, http: httpx.AsyncClient, name: str
) -> None:
    response = await http.get(f"{app.url}/board/0123456789abcdef/{name}")
    assert (response.content, response.status_code) == (FILES["reload.js"], 200)
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["vary"] == "*"


async def test_a_page_of_another_version_has_the_style_of_this_one(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    response = await http.get(f"{app.url}/board/0123456789abcdef/board.css")
    assert (response.content, response.status_code) == (FILES["board.css"], 200)
    assert (response.headers["cache-control"], response.headers["vary"]) == ("no-store", "*")


@pytest.mark.parametrize(
    "path", ["0123456789abcdef/nothing.css", "{}/nothing.js", "{}/../board.html"]
)
async def test_a_file_of_another_folder_is_not_found(
    app: AppProcess, http: httpx.AsyncClient, page: httpx.Response, path: str
) -> None:
    version = re.findall(r'name="board-version" content="(\w+)"', page.text)[0]
    url = f"{app.url}/board/{path.format(version)}".replace("../", "%2e%2e/")
    response = await http.get(url)
    assert response.status_code == 404
    assert "immutable" not in response.headers.get("cache-control", "")


@pytest.mark.parametrize(
    "link",
    [
        "%23/invitation/T",
        "/%23/invitation/T",
        "/invitation/T",
        "%23%2Finvitation%2FT",
        "%2523/invitation/T",
        "%2523/invitation/T%253Futm=1",
    ],
)
async def test_a_link_whose_fragment_became_a_part_of_the_path_leads_to_the_page(
    app: AppProcess, http: httpx.AsyncClient, page: httpx.Response, link: str
) -> None:
    response = await http.get(f"{app.url}/board{link}", follow_redirects=True)
    assert (str(response.url), response.text) == (f"{page.url}#/invitation/T", page.text)


@pytest.mark.parametrize("path", ["/boards", "/board-game", "/board_x/y"])
async def test_another_address_that_begins_like_the_page_is_not_found(
    app: AppProcess, http: httpx.AsyncClient, path: str
) -> None:
    assert (await http.get(app.url + path)).status_code == 404


async def test_what_could_not_be_computed_is_computed_again_and_what_could_is_not() -> None:
    given = [1, 0]
    computed = Computed(lambda: 7 // (1 - given.pop(0)))
    with pytest.raises(ZeroDivisionError):
        await computed.result()
    assert [await computed.result() for _ in range(2)] == [7, 7]
