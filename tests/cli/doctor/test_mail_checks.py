"""`slotlock doctor` says why mails do not leave, or why receivers might reject them."""

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from dns.asyncresolver import Resolver
from dns.flags import QR
from dns.message import from_wire, make_response
from dns.rcode import NXDOMAIN
from dns.rdatatype import TXT
from dns.rrset import from_text
from pymongo import MongoClient

from slotlock.cli.doctor.finding import Finding, Level
from slotlock.cli.doctor.mail_checks import check_sender
from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.devserver.mail_catcher import MailCatcher
from slotlock.infrastructure.mail.responses import SERVER_REFUSES
from slotlock.infrastructure.mongo.client import Document
from tests.support.apps.processes import app_environment, database_url, free_port
from tests.support.cli.command_line import replace_environment

DATABASE = "doctor_mail"
REFUSED = "office@localhost"


class RefusingCatcher(MailCatcher):
    """A mail server that refuses a sender."""

    async def handle_MAIL(  # noqa: N802 - the library calls it
        self,
        server: SMTP,  # noqa: ARG002
        session: Session,  # noqa: ARG002
        envelope: Envelope,
        address: str,
        options: list[str],  # noqa: ARG002
    ) -> str:
        """Accept every other sender."""
        envelope.mail_from = address
        return "553 5.7.1 not owned by user ada" if address == REFUSED else "250 OK"


@pytest.fixture(scope="module")
def smtp_port() -> Iterator[int]:
    """Yield the port of a mail server that lets only Ada sign in."""
    controller = Controller(
        RefusingCatcher(),
        "127.0.0.1",
        free_port(),
        server_hostname="localhost",
        auth_require_tls=False,
        authenticator=lambda *given: AuthResult(
            success=given[-1].password == b"p@ss", handled=False
        ),
    )
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


def examine(
    monkeypatch: pytest.MonkeyPatch,
    servers: EmbeddedServers,
    capsys: pytest.CaptureFixture[str],
    url: str,
    **settings: str,
) -> dict[str, str]:
    """Return the findings about mail, by check, with this mail server."""
    environment = app_environment(servers, DATABASE)
    sender = {"SLOTLOCK_MAIL_FROM": "noreply@localhost", "SLOTLOCK_SMTP_URL": url}
    replace_environment(monkeypatch, {**environment, **sender, **settings})
    main(["doctor"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["LEVEL", "CHECK", "FOUND,"]
    return {line[9:31].strip(): f"{line[:9].strip()} {line[32:]}" for line in lines}


def test_a_refused_sender_and_a_relay_that_is_set_up_wrong_are_found(
    monkeypatch: pytest.MonkeyPatch,
    servers: EmbeddedServers,
    capsys: pytest.CaptureFixture[str],
    smtp_port: int,
) -> None:
    now, url = datetime.now(UTC), f"smtp://127.0.0.1:{smtp_port}"
    relay = "554 5.7.1 Relay access denied"
    with MongoClient[Document](database_url(servers, DATABASE)) as client:
        waiting = {"state": "queued", "at": now, "dueAt": now, "note": SERVER_REFUSES + relay}
        database = client.get_default_database()
        database["outbox"].insert_one(waiting)
        marks = [{"email": f"{n}@school.test", "at": now} for n in range(3)]
        users = [{"email": each["email"], "undeliverable": each} for each in marks]
        database["users"].insert_many([*users[:2], {**users[2], "email": "new@x.test"}])
        found = examine(monkeypatch, servers, capsys, url, SLOTLOCK_MAIL_FROM=REFUSED)
    assert found["mail server"].startswith(f"FAIL 127.0.0.1:{smtp_port}: 553 5.7.1"), found
    assert found["mail outbox"].startswith("warning 1 wait"), found
    assert "2 addresses are undeliverable, the first since" in found["mail outbox"]
    assert relay in found["mail outbox"]


def test_a_mail_server_is_reached_and_signed_in_at(
    monkeypatch: pytest.MonkeyPatch,
    servers: EmbeddedServers,
    capsys: pytest.CaptureFixture[str],
    smtp_port: int,
) -> None:
    for user, expected in (
        ("ada:p%40ss@", "ok 127.0.0.1:{} accepts the connection and the sign-in"),
        ("ada:wrong@", "FAIL 127.0.0.1:{}: 535 5.7.8 Authentication credentials invalid"),
    ):
        found = examine(monkeypatch, servers, capsys, f"smtp://{user}127.0.0.1:{smtp_port}")
        assert found["mail server"].startswith(expected.format(smtp_port)), found
        assert "wrong" not in str(found)
        assert found["mail links"].startswith("warning")
    port, url = free_port(), "https://example.org"
    found = examine(
        monkeypatch, servers, capsys, f"smtp://127.0.0.1:{port}", SLOTLOCK_PUBLIC_URL=url
    )
    assert found["mail server"].startswith(f"FAIL 127.0.0.1:{port}: ")
    assert "mail links" not in found


def test_mails_that_wait_for_more_than_an_hour_are_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    servers: EmbeddedServers,
    capsys: pytest.CaptureFixture[str],
    smtp_port: int,
) -> None:
    with MongoClient[Document](database_url(servers, DATABASE)) as client:
        outbox = client.get_default_database()["outbox"]
        for minutes, level in ((0, "ok nothing waits; 1 failed"), (1, "ok"), (61, "warning")):
            outbox.delete_many({})
            at = datetime.now(UTC) - timedelta(minutes=minutes)
            waiting = {"state": "queued", "at": at, "dueAt": at} if minutes else {"state": "sent"}
            outbox.insert_many([waiting, {"state": "failed", "at": at}])
            found = examine(monkeypatch, servers, capsys, f"smtp://127.0.0.1:{smtp_port}")
            assert found["mail outbox"].startswith(level), found
        assert re.search("1 wait, the oldest for 3[67][0-9]{2}", found["mail outbox"])


@contextmanager
def serving_texts(texts: dict[str, str]) -> Iterator[Resolver]:
    """Yield a resolver that asks a DNS server with these TXT records."""
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def respond() -> None:
            while True:
                query, client = server.recvfrom(4096)
                if not query:
                    return
                response = make_response(from_wire(query))
                name = str(response.question[0].name).rstrip(".")
                response.flags |= QR
                if name in texts:
                    response.answer = [from_text(f"{name}.", 60, "IN", TXT, f'"{texts[name]}"')]
                else:
                    response.set_rcode(NXDOMAIN)
                server.sendto(response.to_wire(), client)

        thread = Thread(target=respond)
        thread.start()
        resolver = Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], server.getsockname()[1]
        try:
            yield resolver
        finally:
            server.sendto(b"", server.getsockname())
            thread.join()


def find_records(resolver: Resolver, domain: str) -> dict[str, Finding]:
    """Return the findings about a sender's domain, by check."""

    async def check() -> list[Finding]:
        return [finding async for finding in check_sender(domain, resolver)]

    return {finding.check: finding for finding in asyncio.run(check())}


def test_the_records_that_receivers_read_are_found_or_missed() -> None:
    texts = {
        "mail.school.test": "v=spf1 mx -all",
        "_dmarc.school.test": "v=DMARC1; p=reject",
        "other.test": "some-verification=1",
    }
    with serving_texts(texts) as resolver:
        found = find_records(resolver, "mail.school.test")
        assert str(found["mail SPF"]).endswith("mail.school.test has v=spf1 mx -all")
        assert "_dmarc.school.test has v=DMARC1; p=reject" in str(found["mail DMARC"])
        assert "<selector>._domainkey.mail.school.test" in str(found["mail DKIM"])
        missed = find_records(resolver, "other.test")
    assert {missed[f"mail {name}"].level for name in ("SPF", "DMARC")} == {Level.WARNING}


def test_without_dns_the_names_of_the_records_are_shown() -> None:
    resolver = Resolver(configure=False)
    [sender, _] = find_records(resolver, "school.test").values()
    assert sender.level is Level.WARNING
    assert "TXT of _dmarc.school.test" in str(sender)
