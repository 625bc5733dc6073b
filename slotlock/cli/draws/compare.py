"""`slotlock simulate --mode draw`: a rush and draws by lot, compared on the same random wishes."""

import json
import secrets
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random

from slotlock.cli.deployment import CommandError
from slotlock.cli.draws.verify import describe_measures
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawId,
    DrawMember,
    DrawMethod,
    DrawSlot,
    build_entry,
    in_order,
    root_of,
)
from slotlock.domain.draws.drawing import DrawnEntry, draw_places, serve_in_order
from slotlock.domain.draws.measures import DrawMeasures, measure
from slotlock.domain.schedule.meetings import Meeting
from slotlock.simulation.command import MISSING_PACKAGES

DEFAULT_WISHES, MAX_BOOKINGS, HOURS = 12, 3, 25
# The most popular slots are wished for some times as often as most.
SKEW = 0.7
# In a rush, half of the users are there at the opening and others within this time. Each place
# takes some seconds, of which a slow phone needs several times as many as a quick one.
LATE_WITHIN_S, CLICK_S = 3600.0, 4.0
MONDAY = datetime(2030, 5, 6, 8, tzinfo=UTC)


def compare_on_wishes(args: Namespace) -> int:
    """Print the measures of each way to give places, and write them if that was asked for."""
    seed = secrets.randbits(32) if args.seed is None else args.seed
    wish_count = min(args.attempts or DEFAULT_WISHES, args.slots)
    random = Random(seed)  # noqa: S311 - a simulation
    basis = build_basis(random, args.users, args.slots, args.places, wish_count)
    print(
        f"{args.users} users, {args.slots} slots of {args.places} places, {wish_count} wishes and "
        f"{MAX_BOOKINGS} places each at most, seed {seed}"
    )
    results: dict[str, DrawMeasures] = {}
    for name in ("rush", DrawMethod.SERIAL.value, DrawMethod.ROUNDS.value):
        started = time.perf_counter()
        results[name] = measure(_give_places(basis, name, random))
        duration_s = time.perf_counter() - started
        print(f"{name:7} {describe_measures(results[name])} ({duration_s:.1f} s)")
    try:
        if args.results is not None:
            measures = {name: asdict(each) for name, each in results.items()}
            args.results.write_text(json.dumps({"seed": seed, "measures": measures}, indent=2))
        if args.plot is not None:
            _draw_plot(results, args.plot)
    except OSError as error:
        raise CommandError(f"the results cannot be written: {error}") from None
    except ModuleNotFoundError:
        raise CommandError(f"a plot needs {MISSING_PACKAGES}") from None
    return 0


def build_basis(random: Random, users: int, slots: int, places: int, wish_count: int) -> DrawBasis:
    """Return random wishes for slots of a week, of which some are wanted most."""
    ids = [SlotId(f"slot-{n}") for n in range(slots)]
    weights = list(accumulate((n + 1) ** -SKEW for n in range(slots)))
    entries = tuple(
        build_entry([DrawMember(f"user-{n}")], rank_slots(random, ids, weights, wish_count))
        for n in range(users)
    )
    return in_order(
        DrawBasis(
            DrawId("draw"),
            CampaignId("campaign"),
            DrawMethod.ROUNDS,
            MAX_BOOKINGS,
            True,
            tuple(_slot(slot_id, n, places) for n, slot_id in enumerate(ids)),
            entries,
        )
    )


def rank_slots(
    random: Random, ids: Sequence[SlotId], weights: Sequence[float], count: int
) -> list[SlotId]:
    """Return different slots, the popular ones more often and earlier."""
    ranked: dict[SlotId, None] = {}
    while len(ranked) < count:
        ranked.update(dict.fromkeys(random.choices(ids, cum_weights=weights, k=count)))
    return list(ranked)[:count]


def _slot(slot_id: SlotId, number: int, places: int) -> DrawSlot:
    start = MONDAY + timedelta(days=number % 5, hours=number % HOURS // 5)
    meeting = Meeting(start, start + timedelta(hours=1))
    return DrawSlot(slot_id, slot_id, places, 0, None, (), (meeting,))


def _give_places(basis: DrawBasis, name: str, random: Random) -> Sequence[DrawnEntry]:
    if name != "rush":
        return draw_places(basis, root_of(basis), f"{random.random()}", DrawMethod(name))
    order = []
    for entry in basis.entries:
        at = 0.0 if random.random() < 0.5 else random.uniform(0, LATE_WITHIN_S)
        pace_s = CLICK_S * random.lognormvariate(0, 0.5)
        for _ in range(MAX_BOOKINGS):
            at += pace_s * random.uniform(0.5, 1.5)
            order.append((at, entry.leaf))
        # What is left of the wishes is tried once more, so that each has an outcome.
        order += [(at + pace_s * n, entry.leaf) for n in range(1, len(entry.wishes))]
    return serve_in_order(basis, [leaf for _, leaf in sorted(order)])


def _draw_plot(results: Mapping[str, DrawMeasures], path: Path) -> None:
    """Draw a bar of each measure for each way, as .svg or .png; raises OSError."""
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    names = list(results)
    values: dict[str, list[float]] = {
        "users without a place": [each.without_place for each in results.values()],
        "average rank of a place": [each.average_rank or 0 for each in results.values()],
        "users who envy others": [each.envious for each in results.values()],
    }
    for axes, (title, bars) in zip(figure.subplots(1, len(values)), values.items(), strict=True):
        shown = axes.bar(names, bars, color=("#c0392b", "#7f8c8d", "#1f4e9c"))
        axes.bar_label(shown, [f"{bar:,.4g}" if bar < 100 else f"{bar:,}" for bar in bars])
        axes.set_title(title)
        axes.margins(y=0.15)
    figure.savefig(path)
