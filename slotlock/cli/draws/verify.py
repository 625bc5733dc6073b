"""Commands for draws: recompute a public record, without a server."""

from argparse import Namespace

from slotlock.cli.deployment import CommandError
from slotlock.domain.draws.basis import FormerDraw
from slotlock.domain.draws.drawing import draw_places
from slotlock.domain.draws.measures import DrawMeasures, measure
from slotlock.infrastructure.draw_records import (
    DrawRecord,
    RecordError,
    from_document,
    read_json,
    verify,
)

MAX_SHOWN_PROBLEMS = 20


def verify_record(args: Namespace) -> int:
    """Recompute all that a public record claims; the exit code is 1 if it is wrong."""
    try:
        document = read_json(args.record.read_bytes())
        problems = verify(document)
        record = from_document(document)
    except OSError as error:
        raise CommandError(f"cannot read {args.record}: {error.strerror}") from None
    except RecordError as error:
        raise CommandError(str(error)) from None
    _print_claims(record)
    for problem in problems[:MAX_SHOWN_PROBLEMS]:
        print(problem)
    if len(problems) > MAX_SHOWN_PROBLEMS:
        print(f"... and {len(problems) - MAX_SHOWN_PROBLEMS} more")
    print(f"The record is {'wrong' if problems else 'right'}.")
    if record.seed is None:
        print("It has no results.")
    elif not problems:
        _print_measures(record, record.seed)
    return 1 if problems else 0


def _print_claims(record: DrawRecord) -> None:
    """Print what readers have to compare with what they know."""
    announced = record.basis.announced
    print(f"Root: {record.root}")
    if announced.source is None:
        print(f"Announced: a seed of the server with the hash {announced.commitment}")
    else:
        print(f"Announced: {announced.source}, {announced.at}")
    if record.seed is not None:
        print(f"Seed: {record.seed}")
    for act in record.acts or record.basis.acts:
        set_to = [act.reason, act.wishes_until, act.seed_source, act.seed_at]
        print(" ".join(str(each) for each in (act.at, act.state, *set_to) if each))
    for each in record.not_booked:
        print(f"Not booked: {each.slot_id} for {each.pseudonym}, {each.reason}")
    for former in record.basis.former:
        known = ", replaced after the seed was known" if _is_replaced(former) else ""
        record_hash = former.record_hash or "no record"
        print(f"Earlier draw: {former.draw_id}, {former.state}, {record_hash}{known}")
    states = [act.state for act in record.acts or ()]
    if "drawn" in states and states[-1] in ("superseded", "cancelled"):
        print("Replaced after the seed was known.")


def _is_replaced(former: FormerDraw) -> bool:
    return former.seed_known and former.state in ("superseded", "cancelled")


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
