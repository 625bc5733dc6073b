"""The command that imports the courses in a file, which works without a running app."""

import asyncio
import json
from argparse import Namespace

from slotlock.api.backend import open_backend
from slotlock.api.settings.settings import Settings, read_settings
from slotlock.api.slot_files.import_endpoint import slot_import_report
from slotlock.cli.deployment import CommandError, with_deployment
from slotlock.cli.user_files import DRY_RUN, invalid_file_text, read_file
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.schedule.zones import UNKNOWN_ZONE, find_zone
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.slot_files.plan import ImportOptions, SlotsImported
from slotlock.domain.users.email_addresses import normalize_login_name
from slotlock.domain.users.user import User
from slotlock.graphql.core.ids import parse_campaign_id
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.users.account_repositories import AccountRepositories
from slotlock.services.campaigns.slot_files import import_slots


def import_file(args: Namespace) -> str:
    """Create and change the courses of a campaign, or only return what would change."""
    settings = with_deployment(read_settings(), "mongo_url", "redis_url")
    return asyncio.run(_import_file(settings, args))


async def _import_file(settings: Settings, args: Namespace) -> str:
    campaign_id = parse_campaign_id(args.campaign)
    if campaign_id is None:
        raise CommandError(f"{args.campaign} is not the id of a campaign")
    body = read_file(args.file)
    async with open_backend(settings) as backend:
        services = backend.services
        organizer = await _find_organizer(backend.database, args.by)
        time_zone = args.time_zone or (await services.site.load()).time_zone
        if find_zone(time_zone) is None:
            raise CommandError(UNKNOWN_ZONE.message)
        options = ImportOptions(time_zone, args.create_resources)
        outcome = await import_slots(
            services, body, campaign_id, options, organizer.id, dry_run=not args.apply
        )
    match outcome:
        case SlotsImported():
            return _report(outcome, args)
        case InvalidFile():
            raise CommandError(invalid_file_text(outcome))
        case CampaignNotFound():
            raise CommandError(f"there is no campaign {args.campaign}")
        case _:
            raise CommandError("others change this campaign; nothing was imported, try again")


async def _find_organizer(database: Database, login_name: str) -> User:
    users = AccountRepositories(database).users
    found = await users.find_with_password_hash(normalize_login_name(login_name) or "")
    if found is None or not found[0].role.is_organizer:
        raise CommandError(f"no organizer has the address or user name {login_name}")
    return found[0]


def _report(result: SlotsImported, args: Namespace) -> str:
    if args.json:
        return json.dumps(slot_import_report(result), indent=2, ensure_ascii=False)
    plan, ignored = result.plan, result.file.ignored_columns
    lines = [
        f"{len(plan.created)} created, {len(plan.patches)} updated, {plan.unchanged} unchanged, "
        f"{plan.not_in_file} not in the file"
    ]
    if plan.new_resources:
        lines.append(f"new resources: {', '.join(each.name for each in plan.new_resources)}")
    if ignored:
        lines.append(f"columns that were ignored: {', '.join(ignored)}")
    return "\n".join(lines if args.apply else [*lines, DRY_RUN])
