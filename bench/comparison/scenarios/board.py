"""The board is opened: each user reads the courses of a campaign; a cache has all files."""

import asyncio
import json
from collections.abc import Iterator

from bench.accounts import create_accounts
from bench.comparison.load import CONNECTIONS, Requests
from bench.comparison.rounds import BenchmarkSetup, Run, run_workload, tokens_file
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.targets import SLOTLOCK
from slotlock.api.board.documents import board_documents
from slotlock.domain.users.user import Role
from slotlock.simulation.client.http import GraphQLClient, open_http
from slotlock.simulation.model.plan import BookingMode, SimulationConfig
from slotlock.simulation.setup import create_campaign

WORKLOAD = "board"
USERS = 1000
COURSES, PLACES = 20, 12
FIRST_LOADS = 20_000
OPERATION = "slotsOfCampaign"


def run_boards(setup: BenchmarkSetup) -> Iterator[Run]:
    """Yield the runs of each round; only slotlock has a board."""
    (running,) = (each for each in setup.targets if each.target.name == SLOTLOCK)
    campaign_id = asyncio.run(_create_campaign(setup, running.app.url))
    body = setup.servers.folder / "board.json"
    body.write_text(request_body(campaign_id))
    for number in range(1 + setup.plan.rounds):
        tokens = tokens_file(setup, running.target, USERS)
        requests = Requests(
            running.target.kind, WORKLOAD, COURSES, setup.first_day, tokens, body=body
        )
        run = run_workload(setup, number, running, requests, CONNECTIONS)
        if number:  # the first one compiles the operation
            yield run


def request_body(campaign_id: str) -> str:
    """Return the body of the request with which the board reads the courses of a campaign."""
    id_ = next(each for each in board_documents() if f"/{OPERATION}/" in each)
    return json.dumps({"documentId": id_, "variables": {"campaign": campaign_id, "first": 100}})


async def _create_campaign(setup: BenchmarkSetup, url: str) -> str:
    settings = slotlock_target.settings(setup.servers.embedded)
    (organizer,) = await create_accounts(
        settings["SLOTLOCK_MONGO_URL"], slotlock_target.SECRET, 1, Role.ORGANIZER
    )
    config = SimulationConfig(url, 0, COURSES, PLACES, 1, BookingMode.WAIT, seed=1)
    async with open_http(COURSES) as http:
        return (await create_campaign(GraphQLClient(url, http), config, organizer.token))[0]
