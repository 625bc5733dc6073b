"""Prints what the board costs: `python -m bench.board`.

The sizes need no browser; the rest needs a Chromium on PATH, and takes a minute.
"""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Sequence
from statistics import median

from bench.board import opening, pages
from bench.board.site import running_site
from bench.board.sizes import size_lines
from bench.machine import load_warning, machine_summary

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SLOTS, PLACES = 500, 12
# One with a clock that is fast, one that is slow, and a core for each.
PAGES_ALONE = 2
AN_HOUR_S = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the sizes, and what a browser measures; return 2 without a browser."""
    parser = argparse.ArgumentParser(prog="python -m bench.board", description=__doc__)
    parser.add_argument("--sizes", action="store_true", help="no browser: only the sizes")
    args = parser.parse_args(arguments)
    print("\n".join(size_lines()), flush=True)
    if args.sizes:
        return 0
    chromium = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if chromium is None:
        print(f"bench: none of {', '.join(PROGRAMS)} is on PATH", file=sys.stderr)
        return 2
    print(machine_summary())
    if warning := load_warning():
        print(warning)
    asyncio.run(measure(chromium))
    return 0


async def measure(chromium: str) -> None:
    """Print each figure as soon as it is there."""
    async with running_site(chromium) as site:
        (member,) = await site.accounts(1)
        for delay_ms in (0, pages.DELAY_MS):
            found = await pages.first_paints(site, "", delay_ms)
            _print(
                f"first paint at {pages.DOWN_BITS_S / 1e6} Mbit/s and {delay_ms} ms, "
                f"1/{pages.CPU_DIVISOR} CPU",
                found,
            )
        courses = await site.campaign(opening.COURSES, PLACES, -AN_HOUR_S)
        for title, address, account in (
            ("campaigns, nobody signed in", "", None),
            ("a campaign, nobody signed in", courses.address, None),
            ("a campaign, signed in", courses.address, member),
        ):
            first, later = await pages.round_trips(site, address, account)
            print(f"round trips after the page, {title}: {first}, later {later}", flush=True)
        campaign = await site.campaign(SLOTS, PLACES, -AN_HOUR_S)
        for divisor in (1, pages.CPU_DIVISOR):
            frames = await pages.redraws(site, campaign, divisor)
            title = f"redraw of {SLOTS} slots, 1/{divisor} CPU"
            _print(f"{title}, script", [script for script, _ in frames])
            _print(f"{title}, with layout", [both for _, both in frames])
        for count, users in ((PAGES_ALONE, 0), (opening.PAGES, opening.USERS)):
            found = await opening.lateness(site, count, users)
            _print(
                f"the button after the instant of the server, {count} pages, {users} clients",
                found,
            )


def _print(title: str, values_ms: Sequence[float]) -> None:
    ordered = sorted(values_ms)
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    print(
        f"{title}: median {median(ordered):.0f} ms, p95 {p95:.0f} ms, "
        f"least {ordered[0]:.0f} ms, most {ordered[-1]:.0f} ms",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
