"""What a browser measures in the pages of the board."""

from collections.abc import Sequence

from playwright.async_api import Page

from bench.accounts import Account
from bench.board.site import Campaign, Site
from slotlock.simulation.client.documents import BOOK

VISITS = 5
# A slow phone network, and the delay that Lighthouse adds to each request of one.
DOWN_BITS_S, UP_BITS_S, DELAY_MS = 1_600_000, 750_000, 150
CPU_DIVISOR = 4
UPDATES = 20
# Notes how long each frame takes: the redraw of the board, and the layout that follows.
NOTE_FRAMES = """{
  const request = requestAnimationFrame;
  globalThis.frames_ = [];
  globalThis.requestAnimationFrame = (draw) => request((at) => {
    const startedAt = performance.now();
    draw(at);
    const drawnAt = performance.now();
    document.body?.offsetHeight;
    frames_.push([drawnAt - startedAt, performance.now() - startedAt]);
  });
}"""
PAINTED = """new Promise((resolve) => new PerformanceObserver((list) => {
  resolve(list.getEntriesByName("first-contentful-paint")[0].startTime);
}).observe({ type: "paint", buffered: true }))"""
# The requests of a page by start and end. The browser reports one when its response is complete.
REQUESTS = """performance.getEntriesByType("resource")
  .filter((each) => each.transferSize > 0 && !each.name.includes("/board/worker"))
  .map((each) => [each.startTime, each.responseEnd])"""


async def slow_down(page: Page, delay_ms: int, cpu_divisor: int) -> None:
    """Let a page have a slow network and a part of a CPU."""
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")
    network = {
        "offline": False,
        "latency": delay_ms,
        "downloadThroughput": DOWN_BITS_S / 8,
        "uploadThroughput": UP_BITS_S / 8,
    }
    await session.send("Network.emulateNetworkConditions", network)
    await session.send("Emulation.setCPUThrottlingRate", {"rate": cpu_divisor})


async def first_paints(site: Site, address: str, delay_ms: int) -> list[float]:
    """Return the ms until the first paint of first visits."""
    found = []
    for _ in range(VISITS):
        context = await site.context(None)
        page = await context.new_page()
        await slow_down(page, delay_ms, CPU_DIVISOR)
        await page.goto("/board" + address)
        await page.wait_for_selector("main h1")
        found.append(await page.evaluate(PAINTED))
        await context.close()
    return found


async def redraws(site: Site, campaign: Campaign, cpu_divisor: int) -> list[list[float]]:
    """Return the ms of each redraw while others book: of the script, and with the layout."""
    (member, *others) = await site.accounts(1 + UPDATES)
    context = await site.context(member)
    page = await context.new_page()
    await page.add_init_script(NOTE_FRAMES)
    await page.goto("/board" + campaign.address)
    await page.wait_for_selector(".live:not(.stale)")
    await page.locator("li.slot").nth(len(campaign.slots) - 1).wait_for()
    await slow_down(page, 0, cpu_divisor)
    await page.evaluate("frames_.length = 0")
    for slot, other in zip(campaign.slots[::7], others, strict=False):
        await site.client.query(BOOK, other.token, input={"slotId": slot.id})
        row = page.locator(f'li.slot[data-key="{slot.id}"]')
        await row.get_by_text("11 of 12 free").wait_for()
    frames: list[list[float]] = await page.evaluate("frames_")
    await context.close()
    return frames


async def round_trips(site: Site, address: str, account: Account | None) -> tuple[int, int]:
    """Return the round trips until a view has its list: of a first visit, and of a later one.

    The page itself and what it preloads are one round trip of the first visit. The later visit has
    all files in the cache of the browser.
    """
    context = await site.context(account)
    found = []
    for _ in range(2):
        page = await context.new_page()
        await slow_down(page, DELAY_MS, 1)
        await page.goto("/board" + address)
        await page.locator("li.slot h3, ul.list li").first.wait_for()
        found.append(depth(await page.evaluate(REQUESTS)))
        await page.close()
    await context.close()
    return found[0], found[1]


def depth(requests: Sequence[tuple[float, float]]) -> int:
    """Return how many of these requests follow each other, given by their start and end."""
    depths: list[tuple[float, int]] = []
    for start, end in sorted(requests):
        depths.append((end, 1 + max((each for ended, each in depths if ended <= start), default=0)))
    return max((each for _, each in depths), default=0)
