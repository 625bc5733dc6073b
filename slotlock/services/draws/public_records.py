"""The public record of a draw, which anybody may verify.

It has two texts, each stored once: one with the root, and one when the draw is over.
"""

import asyncio
from hashlib import sha256

from slotlock.domain.draws.basis import DrawBasis, DrawRecordReaders
from slotlock.domain.draws.draw import Draw, with_record
from slotlock.domain.draws.drawing import DrawnEntry, draw_places
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.draw_records import DrawRecord, to_text
from slotlock.infrastructure.request_deadline import allow_wait
from slotlock.services.booking.permissions import with_dependents
from slotlock.services.container import Services

# Reading takes long for 20,000 users.
LONG_READ_S = 30.0
USER_BATCH_SIZE = 2_000


async def draw_record(services: Services, draw: Draw, viewer: Caller | None) -> str | None:
    """Return the public record of a draw; None before its closing."""
    allow_wait(LONG_READ_S)
    name = await find_name(services, draw, viewer)
    return await services.draw_texts.find(draw.id, name) if name else None


async def find_name(services: Services, draw: Draw, viewer: Caller | None) -> str | None:
    """Return the name of the text of a record; None before the closing of its draw.

    It has the result when the draw is over, for those whom its settings name.
    """
    if draw.record_hash is None:
        return draw.root
    is_free = draw.settings.record_for is DrawRecordReaders.EVERYBODY
    if viewer is not None and not is_free:
        is_free = viewer.is_organizer or await takes_part(services, draw, viewer)
    return draw.record_hash if is_free else draw.root


async def takes_part(services: Services, draw: Draw, viewer: Caller) -> bool:
    """Return whether the viewer or a dependent has an entry in a draw."""
    if await services.draws.find_result(draw, viewer.user_id):
        return True
    for user_id in (await with_dependents(services, viewer)).acts_for:
        if await services.draws.find_result(draw, user_id):
            return True
    return False


async def store_result(
    services: Services, draw: Draw, basis: DrawBasis, drawn: tuple[DrawnEntry, ...]
) -> str:
    """Store the last text of a draw that is over, and return its hash."""
    lost, seed = await services.draws.find_not_booked(draw), draw.seed and draw.seed.text
    record = DrawRecord(basis, draw.root or "", seed or None, drawn, tuple(lost), draw.public_acts)
    text = await asyncio.to_thread(to_text, record)
    name = sha256(text.encode()).hexdigest()
    await services.draw_texts.insert(draw.id, name, text)
    await _forget_erased(services, draw)
    return name


async def _forget_erased(services: Services, draw: Draw) -> None:
    """Remove the users from the entries of a draw whose accounts were erased before its end."""
    entries = await services.draws.find_entries(draw)
    user_ids = [user_id for entry in entries.values() for user_id in entry.user_ids]
    for batch in chunked(user_ids, USER_BATCH_SIZE):
        users = await services.users.find_many(batch)
        erased = [each for each in batch if each not in users or users[each].erased]
        if erased:
            await services.draws.remove_users(erased, draw)


async def finish_record(services: Services, draw: Draw) -> Draw:
    """Store the last text of a draw that was replaced or called off, and its hash."""
    basis, drawn = await services.draws.load_basis(draw), tuple[DrawnEntry, ...]()
    if draw.root and draw.seed:
        drawn = await asyncio.to_thread(draw_places, basis, draw.root, draw.seed.text)
    after = with_record(draw, await store_result(services, draw, basis, drawn))
    if await services.draws.update(draw, after):
        return after
    return await services.draws.find(draw.id) or draw
