"""The public record of a draw, which anybody may read and verify."""

import asyncio
import json

from slotlock.domain.draws.draw import Draw
from slotlock.domain.draws.drawing import draw_places
from slotlock.domain.draws.record import DrawRecord, to_document
from slotlock.infrastructure.mongo.draws.draw_repository import NotBooked
from slotlock.infrastructure.request_deadline import allow_wait
from slotlock.services.container import Services
from slotlock.services.draws.draws import LONG_READ_S


async def draw_record(services: Services, draw: Draw, *, as_organizer: bool = False) -> str | None:
    """Return the public record of a draw; None before its closing.

    It has the seed and the result once they are published or superseded.
    """
    allow_wait(LONG_READ_S)
    if draw.root is None:
        return None
    root, is_shown = draw.root, as_organizer or draw.is_public
    # All that a record has is of one version, apart from places that are still being booked.
    key = (draw.id, draw.version, is_shown)
    return await services.latest_record.get(key, lambda: _read(services, draw, root, is_shown))


async def _read(services: Services, draw: Draw, root: str, is_shown: bool) -> str:
    basis = await services.draws.load_basis(draw)
    missing = await services.draws.find_not_booked(draw) if is_shown else []
    seed = draw.seed if is_shown else None

    def write() -> str:
        drawn = draw_places(basis, root, seed.text) if seed else ()
        return _to_text(draw, DrawRecord(basis, root, seed, drawn), missing)

    return await asyncio.to_thread(write)


def _to_text(draw: Draw, record: DrawRecord, missing: list[NotBooked]) -> str:
    document = to_document(record)
    entries = document.pop("entries", None)
    others = {
        **document,
        "notBooked": [
            {
                "leaf": each.leaf,
                "pseudonym": each.pseudonym,
                "slot": each.slot_id,
                "reason": each.reason,
            }
            for each in missing
        ],
        "acts": [
            {"at": act.at.isoformat(), "state": act.state.value, "reason": act.reason}
            for act in draw.acts
        ],
        "supersedes": draw.supersedes,
    }
    if entries is None:
        return _dump(others)
    # One by one, as Python lets nothing else run while it writes a value.
    rows = ",\n".join(map(_dump, entries))
    return f'{_dump(others)[:-1]}, "entries": [{rows}]}}'


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
