"""Commands for draws: recompute a public record, without a server."""

import json
from argparse import Namespace

from slotlock.cli.deployment import CommandError
from slotlock.domain.draws.drawing import draw_places
from slotlock.domain.draws.measures import DrawMeasures, measure
from slotlock.domain.draws.record import DrawRecord, RecordError, from_document, verify

MAX_SHOWN_PROBLEMS = 20


def verify_record(args: Namespace) -> int:
    """Recompute all that a public record claims; the exit code is 1 if it is wrong."""
    try:
        text = args.record.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_refuse_constant)
        problems = verify(document)
        record = from_document(document)
    except OSError as error:
        raise CommandError(f"cannot read {args.record}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, RecordError) else "the file is no JSON in UTF-8"
        raise CommandError(reason) from None
    print(f"Root: {record.root}")
    if record.seed is not None:
        made = "made by the server itself" if record.seed.by_server else record.seed.source
        print(f"Seed: {record.seed.text} ({made})")
    for problem in problems[:MAX_SHOWN_PROBLEMS]:
        print(problem)
    if len(problems) > MAX_SHOWN_PROBLEMS:
        print(f"... and {len(problems) - MAX_SHOWN_PROBLEMS} more")
    print(f"The record is {'wrong' if problems else 'right'}.")
    if record.seed is None:
        print("It has no results yet.")
    elif not problems:
        _print_measures(record, record.seed.text)
    return 1 if problems else 0


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python reads although JSON has none."""
    raise ValueError(name)


def _print_measures(record: DrawRecord, seed: str) -> None:
    """Print the measures of each method on the same wishes and lots."""
    for method in type(record.basis.method):
        drawn = draw_places(record.basis, record.root, seed, method)
        print(f"{method}: {describe_measures(measure(drawn))}")


def describe_measures(measures: DrawMeasures) -> str:
    """Return the measures of a result in one line."""
    rank = "-" if measures.average_rank is None else f"{measures.average_rank:.2f}"
    return (
        f"{measures.places} places, {measures.without_place} of {measures.users} users without "
        f"one, average rank {rank}, {measures.envious} envy others by more than one place"
    )
