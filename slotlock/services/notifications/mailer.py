"""Sends the mails of the outbox: decides who gets one and in which language, and builds it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

from slotlock.domain.notifications.mail_kinds import (
    BOOKING_KIND_NAMES,
    RESET_PASSWORD,
    TEAM_INVITATION,
)
from slotlock.domain.notifications.optional_mails import TOPICS
from slotlock.domain.notifications.outbox import (
    UNDELIVERABLE,
    Delivery,
    OutboxEntry,
    OutboxState,
)
from slotlock.domain.notifications.quiet_hours import QuietHours
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.site.site import SiteValues
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.user import MailTopic, User, UserId
from slotlock.infrastructure.mail.addresses import MailSender, parse_smtp_url
from slotlock.infrastructure.mail.mail_message import CalendarInvitation, build_message
from slotlock.infrastructure.mail.mail_server import MailServer
from slotlock.infrastructure.mail.mail_texts import MailText, language_of, render
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.rate_limits import (
    InProcessRateLimiter,
    RateLimit,
    RateLimiter,
)
from slotlock.services.container import Services
from slotlock.services.notifications.booking_mails import (
    OVER,
    invitations_of,
    load_booking_parts,
    load_slot_values,
)
from slotlock.services.notifications.other_mails import LOADERS, MailContext
from slotlock.services.notifications.recipients import (
    find_dependents,
    names_of,
    without_former,
)

MAX_RATE_PAUSE_S = 1.0


@value_object
class MailSite:
    """The addresses in mails, and when the site sends those that can wait.

    Without the address of its board, mails have no links. `unsubscribe_url` returns the address at
    which a user refuses mails about a topic.
    """

    board_url: str = ""
    quiet_hours: QuietHours | None = None
    unsubscribe_url: Callable[[UserId, MailTopic], str] | None = None


class MailRate:
    """The rate of the mails of all processes; of each process alone, while Redis is unavailable."""

    def __init__(self, pipeline: AutoPipeline, per_minute: int) -> None:
        self._charges = [("outbox", RateLimit("mail", per_minute), 1)]
        self._limiter = RateLimiter(pipeline)
        self._local_limiter = InProcessRateLimiter()

    async def wait(self, count: int) -> int:
        """Wait until a mail may be sent, and return how many of `count` may."""
        while True:
            waits_ms = await asyncio.gather(*(self._charge() for _ in range(count)))
            if allowed := waits_ms.count(0):
                return allowed
            await asyncio.sleep(min(min(waits_ms) / 1000, MAX_RATE_PAUSE_S))

    async def _charge(self) -> int:
        try:
            return await self._limiter.charge(self._charges)
        except RedisUnavailableError:
            return self._local_limiter.charge(self._charges)


@asynccontextmanager
async def open_mailer(
    services: Services, smtp_url: str, sender: MailSender, site: MailSite
) -> AsyncIterator["Mailer"]:
    """Open a mailer; its connections are closed with the context."""
    server = MailServer(parse_smtp_url(smtp_url))
    try:
        yield Mailer(services, server, sender, site)
    finally:
        await server.close()


@value_object
class _Reader:
    """Who reads a mail, in which language, and the dependents whom it may be about."""

    user: User | None
    address: str
    language: str
    dependents: Mapping[UserId, User]


class Mailer:
    """Sends entries of the channel MAIL."""

    def __init__(
        self, services: Services, server: MailServer, sender: MailSender, site: MailSite
    ) -> None:
        self._services = services
        self._server = server
        self._sender = sender
        self._site = site
        self._lock = asyncio.Lock()

    async def deliver(self, entries: Sequence[OutboxEntry]) -> Delivery:
        """Send entries as one mail. Raises: PyMongoError."""
        if entries[0].kind == TEAM_INVITATION.name:
            return await self._deliver_team_invitation(entries[0])
        dependents = await find_dependents(self._services, entries)
        if not (left := without_former(entries, dependents)):
            return Delivery(OutboxState.SUPPRESSED, "the user is no longer a guardian, or banned")
        return await self._deliver(left, dependents)

    async def _deliver_team_invitation(self, entry: OutboxEntry) -> Delivery:
        """Send an invitation to the account of the address, if it is known to be its user's.

        The entry keeps no address: it may be that of somebody without an account.
        """
        found = await self._services.users.find_with_password_hash(entry.data["to"])
        if found is None or not found[0].has_known_name:
            return Delivery(OutboxState.SUPPRESSED, "no account has verified the address")
        delivery = await self._deliver([replace(entry, user_id=found[0].id)], {})
        return replace(delivery, recipient=None)

    async def _deliver(
        self, entries: Sequence[OutboxEntry], dependents: Mapping[UserId, User]
    ) -> Delivery:
        lead, site = entries[0], await self._services.site.load()
        user = await self._services.users.find_soon(lead.user_id) if lead.user_id else None
        if lead.user_id and (user is None or user.erased):
            return Delivery(OutboxState.SUPPRESSED, "the account no longer exists")
        address = lead.recipient or (user.email if user else None)
        if address is None:
            return Delivery(OutboxState.SUPPRESSED, "the account has no email address")
        is_own = user is not None and address == user.email
        # A link that somebody asks for, or a mail sent again, shows whether the address works now.
        is_first = lead.attempts == 1 and lead.kind != RESET_PASSWORD.name
        if user and is_own and user.undeliverable_since and is_first:
            return Delivery(OutboxState.SUPPRESSED, UNDELIVERABLE, address)
        if user and (topic := TOPICS.get(lead.kind)):
            if not user.wants(topic):
                return Delivery(OutboxState.SUPPRESSED, f"the user refuses {topic.value}", address)
            if until := self._quiet_until(lead, site):
                wait = until - self._services.now()
                return Delivery(OutboxState.QUEUED, "quiet hours", retry_after=wait, is_outage=True)
        language = await self._language(lead, user, site)
        reader = _Reader(user, address, language, dependents)
        content, invitations = await self._render(entries, reader, site)
        if isinstance(content, str):
            return Delivery(OutboxState.SUPPRESSED, content)
        recipient = (_name_in_mail(user, address), address)
        delivery = await self._send(lead, recipient, content, invitations)
        if user and is_own and delivery.is_undeliverable:
            await self._services.users.set_undeliverable(user, self._services.now())
        elif user and is_own and user.undeliverable_since and delivery.state is OutboxState.SENT:
            await self._services.users.set_undeliverable(user, None)
        return delivery

    async def _language(self, lead: OutboxEntry, user: User | None, site: SiteValues) -> str:
        """Return the language of the user, of the site, or else of the user who caused the mail."""
        own, by = user.locale if user else None, lead.data.get("by")
        if own or site.locale or not by:
            return language_of(own, site.locale)
        sender = await self._services.users.find_soon(UserId(by))
        return language_of(sender.locale if sender else None)

    async def _send(
        self,
        lead: OutboxEntry,
        recipient: tuple[str, str],
        content: MailText,
        invitations: Sequence[CalendarInvitation],
    ) -> Delivery:
        now, (_, address) = self._services.now(), recipient
        try:
            async with self._writing():
                message = build_message(
                    lead.id,
                    self._sender,
                    recipient,
                    content,
                    now,
                    invitations,
                    headers=self._unsubscribe_headers(lead),
                )
        except ValueError as error:
            # A text that cannot be written says nothing about the address.
            is_malformed = normalize_email(address) is None
            return Delivery(OutboxState.FAILED, str(error), address, is_undeliverable=is_malformed)
        return await self._server.send(message, self._sender.address, address)

    def _quiet_until(self, lead: OutboxEntry, site: SiteValues) -> datetime | None:
        """Return when the quiet hours end, if the mail can wait for that."""
        if self._site.quiet_hours is None:
            return None
        quiet = self._site.quiet_hours.in_zone(site.time_zone)
        return quiet.delayed(self._services.now(), lead.expires_at)

    def _unsubscribe_url(self, lead: OutboxEntry) -> str:
        """Return the address at which the user refuses such mails, if the user may."""
        topic, to_url = TOPICS.get(lead.kind), self._site.unsubscribe_url
        return to_url(lead.user_id, topic) if topic and to_url and lead.user_id else ""

    def _unsubscribe_headers(self, lead: OutboxEntry) -> dict[str, str]:
        """Return the headers by which mail programs unsubscribe with one click (RFC 8058)."""
        if not (url := self._unsubscribe_url(lead)):
            return {}
        one_click = "List-Unsubscribe=One-Click"
        return {"List-Unsubscribe": f"<{url}>", "List-Unsubscribe-Post": one_click}

    async def _render(
        self, entries: Sequence[OutboxEntry], reader: "_Reader", site: SiteValues
    ) -> tuple[MailText | str, Sequence[CalendarInvitation]]:
        """Return a mail and its calendars, or why there is none any more."""
        lead, user, address, language = entries[0], reader.user, reader.address, reader.language
        shared = {
            "name": _name_in_mail(user, address),
            "site_name": site.name,
            "closing": site.mail_closing,
            "formal": site.is_formal,
            "board_url": self._site.board_url,
            "unsubscribe_url": self._unsubscribe_url(lead),
        }
        if lead.kind not in BOOKING_KIND_NAMES or user is None:
            loaded = [await self._load_values(entry, reader, site) for entry in entries]
            found = [(lead.kind, values) for values in loaded if not isinstance(values, str)]
            return render(language, found, **shared) if found else str(loaded[0]), ()
        parts = await load_booking_parts(
            self._services, entries, language, self._site.board_url, reader.dependents
        )
        if isinstance(parts, str):
            return parts, ()
        texts = [(part.kind, part.values) for part in parts]
        organizer = (self._sender.name or site.name, self._sender.address)
        async with self._writing():
            now, attendee = self._services.now(), (_name_in_mail(user, address), address)
            invitations = await invitations_of(parts, organizer, attendee, now)
            return render(language, texts, **shared), invitations

    async def _load_values(
        self, entry: OutboxEntry, reader: "_Reader", site: SiteValues
    ) -> Mapping[str, object] | str:
        """Return what a mail says that is about no booking, or why it says nothing any more."""
        services, board_url, language = self._services, self._site.board_url, reader.language
        children = [reader.dependents[id_] for id_ in entry.dependents if id_ in reader.dependents]
        values: dict[str, object] = {"child": names_of(children)}
        user = children[0] if entry.dependent_id else reader.user
        if user is not None and entry.kind in LOADERS:
            context = MailContext(user, language, board_url, site.time_zone)
            loaded = await LOADERS[entry.kind](services, entry, context)
            return {**values, **loaded} if loaded else OVER
        values |= {"address": reader.address, **entry.data}
        if entry.slot_id is not None and user is not None:
            slot = await load_slot_values(services, entry.slot_id, user.id, language, board_url)
            return slot if isinstance(slot, str) else {**values, **slot}
        return values

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """Let the requests of the process go first: it writes one mail, some ms, and goes on."""
        async with self._lock:
            await asyncio.sleep(0)
            yield


def _name_in_mail(user: User | None, address: str) -> str:
    """Return the name of the user, if a mail to this address may hold it."""
    if user is None or address != user.email or not user.has_known_name:
        return ""
    return user.name
