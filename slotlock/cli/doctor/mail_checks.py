"""Checks of mail: the server that takes it, what others check of the sender, and what waits."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from aiosmtplib import SMTPException
from dns.asyncresolver import Resolver
from dns.exception import DNSException
from dns.rdatatype import RdataType
from dns.resolver import NXDOMAIN, NoAnswer
from pymongo.errors import PyMongoError

from slotlock.api.settings.settings import Settings
from slotlock.cli.doctor.finding import Finding, fail, ok, warning
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.shared.text import format_in_zone
from slotlock.infrastructure.mail.addresses import (
    MailServerAddress,
    parse_sender,
    parse_smtp_url,
    with_ascii_domain,
)
from slotlock.infrastructure.mail.mail_server import MailServer, describe_error
from slotlock.infrastructure.mail.responses import SERVER_REFUSES
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.repositories import Repositories

DNS_TIMEOUT_S = 5.0
# As in deploy/monitoring/prometheus-rules.yml.
MAX_AGE = timedelta(hours=1)


async def check_mail(settings: Settings) -> AsyncIterator[Finding]:
    """Yield a finding for each check."""
    url = settings.smtp_url.get_secret_value() if settings.smtp_url else ""
    sender = with_ascii_domain(parse_sender(settings.mail_from or "").address)
    yield await _check_server(parse_smtp_url(url), sender)
    async for finding in check_sender(sender.rpartition("@")[2]):
        yield finding
    if settings.public_url is None:
        advice = "set SLOTLOCK_PUBLIC_URL"
        yield warning("mail links", "mails have no links to the board", advice)
    if settings.mongo_url:
        yield await _check_outbox(settings.mongo_url)


async def _check_server(address: MailServerAddress, sender: str) -> Finding:
    where = f"{address.host}:{address.port}"
    try:
        await MailServer(address).check(sender)
    except (OSError, SMTPException, ValueError) as error:
        advice = (
            "start it, or correct SLOTLOCK_SMTP_URL or SLOTLOCK_MAIL_FROM; mails wait meanwhile"
        )
        return fail("mail server", f"{where}: {describe_error(error)}", advice)
    signed_in = " and the sign-in" if address.username else ""
    return ok("mail server", f"{where} accepts the connection{signed_in} and the sender")


async def check_sender(domain: str, resolver: Resolver | None = None) -> AsyncIterator[Finding]:
    """Yield what receivers find in the DNS records of the sender's domain."""
    hosts = {"SPF": [domain], "DMARC": [f"_dmarc.{each}" for each in _with_parents(domain)]}
    try:
        resolver = resolver or Resolver()
        for name, names in hosts.items():
            yield await _check_record(resolver, name, names)
    except (DNSException, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        advice = f"look for SPF (TXT of {domain}) and DMARC (TXT of _dmarc.{domain})"
        yield warning("mail sender", f"DNS does not answer: {reason}", advice)
    # The selector belongs to the mail server, and stands in the header of each mail that it signs.
    key = f"<selector>._domainkey.{domain}"
    yield ok("mail DKIM", f"not checked; the mail server has to sign, with the key at TXT of {key}")


def _with_parents(domain: str) -> list[str]:
    """Return a domain and those above it, without the top level; their DMARC counts for it."""
    labels = domain.split(".")
    return [".".join(labels[start:]) for start in range(max(len(labels) - 1, 1))]


async def _check_record(resolver: Resolver, name: str, hosts: list[str]) -> Finding:
    """Look for a record that begins with `v=`. Raises: DNSException or OSError."""
    check = f"mail {name}"
    for host in hosts:
        for text in await _read_texts(resolver, host):
            if text.lower().startswith(f"v={name.lower()}1"):
                return ok(check, f"{host} has {text}")
    version = "v=DMARC1" if name == "DMARC" else "v=spf1"
    advice = f"add a TXT record that begins with {version}, as your mail provider says"
    return warning(check, f"{hosts[0]} has no record: many receivers reject the mails", advice)


async def _read_texts(resolver: Resolver, host: str) -> list[str]:
    try:
        answer = await resolver.resolve(host, RdataType.TXT, lifetime=DNS_TIMEOUT_S)
    except (NXDOMAIN, NoAnswer):
        return []
    return [b"".join(record.strings).decode(errors="replace") for record in answer]


async def _check_outbox(mongo_url: str) -> Finding:
    check = "mail outbox"
    try:
        async with open_database(mongo_url) as database:
            outbox, users = Repositories(database).outbox, Repositories(database).users
            oldest, counts = await outbox.find_oldest(), await outbox.count_unsent()
            refused = await outbox.find_note(SERVER_REFUSES)
            marked = await users.count_undeliverable()
    except PyMongoError:
        return warning(check, "unknown without MongoDB", "see MongoDB above")
    age = datetime.now(UTC) - oldest if oldest else timedelta()
    waits = f"{counts[OutboxState.QUEUED]} wait, the oldest for {int(age.total_seconds())} s"
    found = f"{waits if oldest else 'nothing waits'}; {counts[OutboxState.FAILED]} failed"
    if marked.count and marked.first_at:
        since = format_in_zone(marked.first_at)
        found += f"; {marked.count} addresses are undeliverable, the first since {since}"
    if refused:
        advice = "correct the account, the sender or the relay: the mails wait meanwhile"
        return warning(check, f"{found}; {refused}", advice)
    if age > MAX_AGE:
        advice = "`slotlock outbox list` prints the reasons; does `slotlock worker` run?"
        return warning(check, found, advice)
    return ok(check, found)
