"""Commands on connections of the driver, with less work for each than the driver does.

PyMongo selects the server, opens, authenticates and closes the connections, and learns of their
errors. For each command it takes a connection from its pool and returns it, starts two tasks that
wait for the reply, and maintains a session: without these, a command costs the process a third of
the CPU time. Such a command is never sent twice.
"""

from bson import decode, encode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.helpers_shared import _check_command_response

from slotlock.infrastructure.mongo.client import CODEC_OPTIONS, Database, Document, LeasingClient

# The driver would decode times without a zone, because it ignores decoders of types in replies.
RAW_REPLY: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)


async def run_command(database: Database, command: Document) -> Document:
    """Send a command to the primary and return its reply.

    It takes the time that `pymongo.timeout` leaves, in MongoDB too. A client with listeners leaves
    the command to the driver, which notifies them; so does one without leases.

    Raises:
        PyMongoError: MongoDB rejected the command, or is unavailable.
    """
    client = database.client
    if not isinstance(client, LeasingClient) or client.options.event_listeners:
        raw_reply = await database.command(command, codec_options=RAW_REPLY)
        return decode(raw_reply.raw, CODEC_OPTIONS)
    lease = await client.leases.acquire(next(iter(command)))
    try:
        timeout_s = lease.apply_timeout(command)
        document = encode({**command, "$db": database.name})
        reply = decode(await lease.exchange(document, timeout_s), CODEC_OPTIONS)
        if reply["ok"] != 1:
            _check_command_response(reply, lease.max_wire_version)
    except BaseException as error:
        await lease.end(error)
        raise
    await client.leases.release(lease)
    return reply
