"""Services with members, an outbox and a real mail server, on one manual clock."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from zoneinfo import ZoneInfo

from aiosmtpd.smtp import SMTP, Envelope, Session

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.devserver.mail_catcher import MailCatcher, catching_mail
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.notifications.mail_kinds import COLLECTED_FOR, mails_about
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.notifications.quiet_hours import QuietHours, parse_quiet_hours
from slotlock.domain.site.site import SiteValues
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mail.addresses import MailSender
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter
from slotlock.services.booking import book
from slotlock.services.container import Services
from slotlock.services.notifications.mailer import Mailer, MailSite, open_mailer
from slotlock.services.notifications.outbox_reader import outbox_reader
from slotlock.services.notifications.outbox_sender import OutboxSender
from slotlock.services.notifications.scheduled_mails import MailSchedule
from tests.support.domain.builders import build_slot
from tests.support.model.service_pair import ManualClock, open_services
from tests.support.polling import eventually, poll_until
from tests.support.stores.empty_database import empty_database
from tests.support.stores.slots import insert_new_slots

SENDER = MailSender("School", "noreply@school.test", ("", "office@school.test"))
# By the clocks of the site, whatever zone its settings had.
NIGHT = parse_quiet_hours("22:00-07:00", ZoneInfo("UTC"))
SCHOOL = SiteValues(name="School", time_zone="Europe/Berlin")
URL = "https://school.test/board"
SITE = MailSite(
    URL,
    NIGHT,
    lambda user_id, topic: f"https://school.test/unsubscribe/{user_id}.{topic.value}",
)


class MailTrap(MailCatcher):
    """A mail server that a test lets refuse mails: `respond` returns a response, or None."""

    def __init__(self) -> None:
        super().__init__()
        self.respond_to_recipient: Callable[[str], str | None] = lambda _: None
        self.respond_to_data: Callable[[], str | None] = lambda: None

    async def handle_RCPT(  # noqa: N802 - the library calls it
        self,
        server: SMTP,  # noqa: ARG002
        session: Session,  # noqa: ARG002
        envelope: Envelope,
        address: str,
        options: list[str],  # noqa: ARG002
    ) -> str:
        """Accept a recipient, unless the test says otherwise."""
        if response := self.respond_to_recipient(address):
            return response
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the library calls it
        """Take a mail, unless the test says otherwise."""
        return self.respond_to_data() or await super().handle_DATA(server, session, envelope)

    @property
    def messages(self) -> list[EmailMessage]:
        """The mails that arrived, parsed, the oldest first."""
        return [mail.message for mail in list(self.mails)]

    @property
    def subjects(self) -> list[str]:
        """The subjects of the mails that arrived."""
        return [str(message["Subject"]) for message in self.messages]


@dataclass
class MailScene:
    """Two workers' services, members and an organizer, and the mail server."""

    clock: ManualClock
    services: Services
    mongo_url: str
    redis_url: str
    database: Database
    trap: MailTrap
    mailer: Mailer
    smtp_url: str
    members: list[Caller] = field(default_factory=list)

    @property
    def organizer(self) -> Caller:
        """The caller who is an organizer."""
        return self.members[-1]

    async def insert_slot(self, capacity: int = 5, **facts: object) -> SlotId:
        """Insert a slot of the day after, and return its id."""
        day = timedelta(days=1)
        times = {"start": self.clock.now + day, "end": self.clock.now + day + timedelta(hours=1)}
        slot = build_slot(capacity, id=new_slot_id(), **{**times, **facts})
        await insert_new_slots(self.database, slot)
        return slot.id

    async def book(
        self, slot_id: SlotId, *members: int, by: Caller | None = None, hold: bool = False
    ) -> list[BookingId]:
        """Book a place for each of these members, and return the ids of the bookings."""
        ids = []
        for number in members:
            user_id = self.members[number].user_id
            options = book.BookingOptions(hold=hold)
            caller = by or self.members[number]
            result = await book.book_slot(self.services, caller, slot_id, user_id, options)
            assert isinstance(result.outcome, Booked), result.outcome
            ids.append(result.outcome.booking.id)
        return ids

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Let the outbox be filled."""
        async with outbox_reader(self.services, self.services.locks, Channel.MAIL, [mails_about]):
            await eventually(self.has_checkpoint, "the reader has begun")
            yield

    async def has_checkpoint(self, channel: Channel = Channel.MAIL) -> bool:
        """Return whether a reader of the outbox has begun."""
        found = await self.database["outbox_checkpoints"].find_one(
            {"_id": channel.value, "token": {"$ne": None}}
        )
        return found is not None

    async def until_entries(self, *kinds: str) -> list[OutboxEntry]:
        """Wait until the outbox has these kinds of entries, and return all, the oldest first."""
        found = await poll_until(
            self.entries,
            lambda entries: sorted(each.kind for each in entries) == sorted(kinds),
            f"the outbox has {kinds}",
        )
        return found[::-1]

    async def send(self, after: timedelta = COLLECTED_FOR) -> None:
        """Send all that is due after this time."""
        self.clock.advance(after)
        sender = OutboxSender(self.services, Channel.MAIL, self.mailer.deliver)
        while await sender.send_due():
            await sender.finish()

    async def schedule(
        self, after: timedelta = timedelta(), quiet: QuietHours | None = None
    ) -> None:
        """Insert what is due because of the time, after this time."""
        self.clock.advance(after)
        await MailSchedule(self.services, quiet).insert_due()

    async def entries(self) -> list[OutboxEntry]:
        """Return all entries, the newest first."""
        return list((await self.services.outbox.page(OutboxFilter(), 10_000)).items)


@asynccontextmanager
async def open_mail_scene(
    servers: EmbeddedServers, member_count: int = 3
) -> AsyncIterator[MailScene]:
    """Open a scene on a database of its own."""
    clock, trap = ManualClock(), MailTrap()
    async with AsyncExitStack() as stack:
        url = stack.enter_context(empty_database(servers))
        # In the other one, the apps of other tests read for the outbox.
        redis_url = f"{servers.redis_url.rpartition('/')[0]}/1"
        services = await open_services(stack, url, redis_url, clock)
        services.site.defaults = SCHOOL
        port = stack.enter_context(catching_mail(trap))
        smtp_url = f"smtp://127.0.0.1:{port}"
        mailer = await stack.enter_async_context(open_mailer(services, smtp_url, SENDER, SITE))
        database = services.slot_writer._database
        scene = MailScene(clock, services, url, redis_url, database, trap, mailer, smtp_url)
        for number in range(member_count + 1):
            role = Role.ORGANIZER if number == member_count else Role.MEMBER
            name = "Olga" if role is Role.ORGANIZER else f"Member {number}"
            address = f"{number}@school.test"
            user = await services.users.insert(name, address, role, "no password", clock.now)
            assert user is not None
            scene.members.append(Caller(user.id, role, "session", clock.now))
        yield scene
