"""One opening for pages of the board, whose devices have wrong clocks, and simulated clients."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from playwright.async_api import Page

from bench.board.site import Site
from slotlock.simulation.client.http import GraphQLClient, open_http
from slotlock.simulation.model.attempts import AttemptLog, Clock, SimulatedSlot, SimulatedUser
from slotlock.simulation.model.plan import BookingMode, SimulationConfig
from slotlock.simulation.report.progress import StepPrinter
from slotlock.simulation.rush import Rush, plan_attempts

ATTEMPTS = 2
TEN_MINUTES_MS = 600_000
# A device whose clock is wrong. `trueNow` is the time of the machine.
WRONG_CLOCK = """{
  const Right = Date;
  globalThis.trueNow = () => Right.now();
  globalThis.Date = class extends Right {
    constructor(...given) {
      if (given.length) super(...given);
      else super(Right.now() + AHEAD_MS);
    }
    static now() {
      return Right.now() + AHEAD_MS;
    }
  };
}"""
# Notes when the first button to book appears.
NOTE_OPENING = """new MutationObserver((_, observer) => {
  if (!document.querySelector(":is([data-state=open], [data-state=almost]) .act button")) return;
  observer.disconnect();
  globalThis.openedAt = trueNow();
}).observe(document, { childList: true, subtree: true });"""
PAGES, USERS, COURSES, PLACES = 30, 300, 5, 12
PAGES_AT_ONCE = 4
OPENS_IN_S = 30


def wrong_clock(number: int) -> str:
    """Return the script of a page whose device is ten minutes ahead, or behind if it is odd."""
    return WRONG_CLOCK.replace("AHEAD_MS", str(TEN_MINUTES_MS * (-1) ** number)) + NOTE_OPENING


async def rush(
    url: str, tokens: Sequence[str], slots: Sequence[SimulatedSlot], opens_at: datetime
) -> AttemptLog:
    """Let a user of each token book two slots at the opening, and return the log of the answers."""
    config = SimulationConfig(url, len(tokens), 0, 0, ATTEMPTS, BookingMode.WAIT, seed=1)
    users = [
        SimulatedUser(f"User {number}", "", token=token) for number, token in enumerate(tokens)
    ]
    log, clock = AttemptLog(plan_attempts(config, users, slots)), Clock()
    clock.open_at(opens_at)
    async with open_http(ATTEMPTS * len(tokens)) as http:
        printer = StepPrinter(enabled=False, name_slots=False)
        await Rush(config, GraphQLClient(url, http), log, clock, printer, None).run()
    return log


async def lateness(site: Site, count: int, users: int) -> list[float]:
    """Return the ms from the instant of the server until each of so many pages has the button."""
    members = await site.accounts(count)
    tokens = [each.token for each in await site.accounts(users)]
    limit = asyncio.Semaphore(PAGES_AT_ONCE)

    async def show(number: int) -> Page:
        async with limit:
            page = await (await site.context(members[number])).new_page()
            await page.add_init_script(wrong_clock(number))
            await page.goto("/board")
            await page.wait_for_selector("main h1")
            return page

    pages = await asyncio.gather(*map(show, range(count)))
    campaign = await site.campaign(COURSES, PLACES, OPENS_IN_S)
    running = asyncio.create_task(rush(site.app.url, tokens, campaign.slots, campaign.opens_at))
    for page in pages:
        await page.evaluate("address => { location.hash = address }", campaign.address)
    await running
    opens_at_ms = campaign.opens_at.timestamp() * 1000
    found = []
    for page in pages:
        await page.locator("[data-state=soon]").first.wait_for(state="detached")
        found.append(await page.evaluate("openedAt") - opens_at_ms)
        await page.context.close()
    return found
