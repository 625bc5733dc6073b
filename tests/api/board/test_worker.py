"""The board without a network, and after an update: its worker, and the reload of an old page."""

import json
import re

import httpx

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient


async def test_the_worker_stores_the_files_that_members_need_of_the_current_version(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    worker = await http.get(f"{app.url}/board/worker.js")
    assert worker.headers["service-worker-allowed"] == "/board"
    page = await http.get(f"{app.url}/board")
    (version,) = re.findall(r'name="board-version" content="(\w+)"', page.text)
    assert f'="{version}"' in worker.text
    names = json.loads(re.findall(r"JSON\.parse\('(.*)'\)", worker.text)[0])
    assert {"app.js", "board.css", "messages/en.js"} < set(names)
    assert not [name for name in names if "organizer/" in name or name == "worker.js"]
    statuses = {(await http.get(f"{app.url}/board/{version}/{name}")).status_code for name in names}
    assert statuses == {200}


async def test_a_page_of_another_version_gets_a_module_that_reloads_it(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    response = await http.get(f"{app.url}/board/0123456789abcdef/app.js")
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert "location.reload()" in response.text


async def test_production_names_no_page_for_developers(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    site = await GraphQLTestClient(http, app.url).execute("{ site { name developersUrl } }")
    assert site == {"name": "slotlock", "developersUrl": None}
