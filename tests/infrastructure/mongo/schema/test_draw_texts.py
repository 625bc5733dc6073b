"""The texts of draws are whole, also if two releases stored their parts."""

import math
import zlib
from hashlib import sha256

import pytest
from bson import ObjectId

from slotlock.api.exports.draw_record_endpoint import _unpacked
from slotlock.domain.draws.basis import DrawId
from slotlock.infrastructure.mongo.draws import text_repository
from tests.support.stores.slot_store import SlotStore

# As in records, most of it cannot be compressed.
TEXT = "".join(f"Ä {sha256(bytes([number])).hexdigest()}" for number in range(256))


async def test_a_text_that_two_releases_stored_in_part_each_is_whole(
    store: SlotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_repository, "PART_BYTES", 1_000)
    texts, draw_id = store.repositories.draw_texts, DrawId(str(ObjectId()))
    await texts.insert(draw_id, "root", TEXT)
    stored = store.database["draw_texts"]
    assert (await stored.delete_many({"part": {"$gte": 5}})).deleted_count > 1
    monkeypatch.setattr(text_repository, "LEVEL", 1)
    await texts.insert(draw_id, "root", TEXT)
    assert await texts.find(draw_id, "root") == TEXT
    sent = [each async for each in _unpacked(texts.read(draw_id, "root"))]
    assert (len(sent), b"".join(sent).decode()) == (math.ceil(len(TEXT.encode()) / 1_000), TEXT)
    packed = b"".join([each async for each in texts.read(draw_id, "root")])
    unpacker = zlib.decompressobj(wbits=text_repository.GZIP_WBITS)
    assert unpacker.decompress(packed).decode() == TEXT
    assert (unpacker.eof, unpacker.unused_data) == (True, b"")  # one file, as browsers read it
