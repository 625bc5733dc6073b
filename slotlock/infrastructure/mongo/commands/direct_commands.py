"""Commands on connections of the driver, with less work for each than the driver does.

PyMongo selects the server, opens, authenticates, pools and closes the connections, and learns of
their errors. For each reply it starts two tasks, and it maintains a session: a command costs the
process half as much CPU time without these. Such a command is never sent twice.

The names that begin with an underscore are private to PyMongo. They are used in this module only,
and its tests fail if a new version changes what they do.
"""

import asyncio
from itertools import count
from struct import Struct

from bson import decode, encode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import ReadPreference
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.helpers_shared import _check_command_response

from slotlock.infrastructure.mongo.client import CODEC_OPTIONS, Database, Document

# The driver would decode times without a zone, because it ignores decoders of types in replies.
RAW_REPLY: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)

# An OP_MSG: the length, the number of the request, that of the request it responds to, the kind of
# message, flags, and the kind of the section that follows, which is one document.
OP_MSG = 2013
HEADER = Struct("<iiiiIB")
# Where the document begins in a reply, whose first four numbers the driver has removed.
REPLY_DOCUMENT_OFFSET = 5
MAX_REQUEST_NUMBER = 2**31

_request_numbers = count()


async def run_command(database: Database, command: Document) -> Document:
    """Send a command to the primary and return its reply.

    It takes the time that `pymongo.timeout` leaves, in MongoDB too. A client with listeners leaves
    the command to the driver, which notifies them.

    Raises:
        PyMongoError: MongoDB rejected the command, or is unavailable.
    """
    client = database.client
    if client.options.event_listeners:
        raw_reply = await database.command(command, codec_options=RAW_REPLY)
        return decode(raw_reply.raw, CODEC_OPTIONS)
    name = next(iter(command))
    checkout = await client._conn_for_reads(ReadPreference.PRIMARY, None, name)
    async with checkout as (connection, _):
        timeout_s = connection.apply_timeout(command)
        reply = await _exchange(connection, {**command, "$db": database.name}, timeout_s)
        if reply["ok"] != 1:
            _check_command_response(reply, connection.max_wire_version)
        return reply


async def _exchange(
    connection: AsyncConnection, command: Document, timeout_s: float | None
) -> Document:
    """Send a command and return the reply. On any failure the connection is closed."""
    number = next(_request_numbers) % MAX_REQUEST_NUMBER
    document = encode(command)
    length = HEADER.size + len(document)
    message = HEADER.pack(length, number, 0, OP_MSG, 0, 0) + document
    try:
        async with asyncio.timeout(timeout_s):
            protocol = connection.conn.get_conn
            await protocol.write(message)
            reply, _ = await protocol.read(number, connection.max_message_size)
    except BaseException as error:  # cancelled, for example: the reply must not reach another
        await connection._raise_connection_failure(error)
    return decode(memoryview(reply)[REPLY_DOCUMENT_OFFSET:], CODEC_OPTIONS)
