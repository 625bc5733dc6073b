"""`slotlock migrate`: builds missing indexes, and fills the new fields of existing documents."""

import asyncio
import logging.config
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from pymongo.errors import DuplicateKeyError

from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.logs import logging_config
from slotlock.cli.deployment import CommandError, check_mongodb, settings_with_mongodb
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.indexes.index import IndexConflictError
from slotlock.infrastructure.mongo.indexes.index_builder import BUILD_DEADLINE_S
from slotlock.infrastructure.mongo.repositories import Repositories


def define_migrate(parser: ArgumentParser) -> None:
    """Add the arguments of `slotlock migrate`."""
    parser.add_argument(
        "--deadline",
        type=_parse_minutes,
        default=BUILD_DEADLINE_S / 60,
        metavar="MINUTES",
        help="give up after this time, default a day",
    )
    parser.set_defaults(run=_migrate)


def _parse_minutes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise ArgumentTypeError("a number of minutes from 1 to 100000")
    return int(text)


def _migrate(args: Namespace) -> None:
    settings = settings_with_mongodb()
    asyncio.run(check_mongodb(settings))
    print(asyncio.run(migrate(settings, args.deadline * 60)))


async def migrate(settings: Settings, deadline_s: float) -> str:
    """Build what is missing, and return what was built.

    Raises: CommandError if an index cannot be built, and PyMongoError, also after the deadline.
    """
    logging.config.dictConfig(logging_config(settings.log_format, settings.log_level))
    try:
        async with open_database(settings.mongo_url or "") as database:
            built = await Repositories(database).indexes.build_missing(deadline_s)
    except (IndexConflictError, DuplicateKeyError) as error:
        raise CommandError(str(error)) from error
    return "\n".join([*(f"built {index.full_name}" for index in built), "all indexes exist"])
