"""The links of mails that users may refuse: only POST changes something, and only with a proof."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from slotlock.auth.tokens import (
    PROOF_DIGITS,
    TokenSigner,
    parse_unsubscribe_token,
    unsubscribe_token,
)
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.devserver.mail_catcher import catching_mail
from slotlock.domain.users.user import MailTopic, UserId
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import SECRET, AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.notifications.mail_scene import MailTrap
from tests.support.polling import poll_until

PUBLIC_URL = "https://school.test/slots"
SEND = """mutation($input: SendAnnouncementInput!) { sendAnnouncement(input: $input) {
  ... on AnnouncementSent { recipientCount } ... on Refusal { code } } }"""
COUNT = "query($slotId: ID) { announcementRecipientCount(slotId: $slotId) }"
WANTS = "{ me { wantsReminders wantsAnnouncements } }"
UPDATE_LOCALE = 'mutation { updateMe(locale: "de-CH") { __typename } }'


@pytest.fixture
def trap() -> MailTrap:
    return MailTrap()


@pytest_asyncio.fixture
async def mailing_app(
    trap: MailTrap, servers: EmbeddedServers, tmp_path: Path
) -> AsyncIterator[AppProcess]:
    """Run an app that sends mail."""
    with catching_mail(trap) as port:
        settings = {
            **app_environment(servers, "unsubscribe"),
            "SLOTLOCK_SMTP_URL": f"smtp://127.0.0.1:{port}",
            "SLOTLOCK_MAIL_FROM": "School <noreply@school.test>",
            "SLOTLOCK_PUBLIC_URL": PUBLIC_URL,
            "SLOTLOCK_LOCALE": "zh",
        }
        with forked_app(settings, tmp_path) as running:
            yield running


async def test_one_click_in_a_mail_refuses_its_topic_without_signing_in(
    trap: MailTrap, mailing_app: AppProcess, http: httpx.AsyncClient
) -> None:
    (member,), organizer = create_booking_clients(http, 1, mailing_app)
    slot_id = await organizer.add_slot()
    await member.book_slot(slot_id)
    message = {"subject": "Pool", "text": "Towels", "idempotencyKey": "1", "slotId": slot_id}
    assert await organizer.execute(COUNT, slotId=slot_id) == 1
    assert await organizer.execute(SEND, input=message) == {"recipientCount": 1}

    async def announced() -> list[str]:
        return [str(m["List-Unsubscribe"]) for m in trap.messages if m["Subject"] == "Pool"]

    [header] = await poll_until(announced, len, "the mail")
    [mail] = [each for each in trap.messages if each["Subject"] == "Pool"]
    assert '<html lang="zh">' in str(mail.get_body(["html"])).replace("=3D", "=")
    assert header.startswith(f"<{PUBLIC_URL}/unsubscribe/")
    url = mailing_app.url + header[1:-1].removeprefix(PUBLIC_URL)
    for method in ("GET", "HEAD"):
        page = await http.request(method, url)
        assert page.status_code == 200
        assert "form-action 'self'" in page.headers["content-security-policy"]
    assert (await http.get(url)).text.count('<form method="post">') == 1
    assert "退订通知邮件" in (await http.get(url)).text
    await member.execute(UPDATE_LOCALE)
    assert (await member.execute(WANTS))["wantsAnnouncements"] is True
    for _ in range(2):
        done = await http.post(url, data={"List-Unsubscribe": "One-Click"})
        assert (done.status_code, "Es kommen keine Rundmails mehr." in done.text) == (200, True)
    wants = {"wantsReminders": True, "wantsAnnouncements": False}
    assert await member.execute(WANTS) == wants
    assert await organizer.execute(COUNT, slotId=slot_id) == 0
    for forged in (url[:-1] + "0", url[:-1] + "1", url.replace("announcements", "reminders")):
        if forged != url:
            assert (await http.post(forged)).status_code == 404
    assert await member.execute(WANTS) == wants
    refused = await http.put(url)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, POST")


async def test_a_site_without_mail_sends_no_announcement(organizer: BookingClient) -> None:
    message = {"subject": "Pool", "text": "Towels", "idempotencyKey": "1", "slotId": "slot_1"}
    with pytest.raises(AssertionError, match="This site sends no mail"):
        await organizer.execute(SEND, input=message)


@pytest.mark.parametrize("ids", [{}, {"slotId": "slot_1", "campaignId": "campaign_1"}])
async def test_an_audience_is_a_slot_or_a_campaign(
    organizer: BookingClient, ids: dict[str, str]
) -> None:
    query = (
        "query($slotId: ID, $campaignId: ID) "
        "{ announcementRecipientCount(slotId: $slotId, campaignId: $campaignId) }"
    )
    with pytest.raises(AssertionError, match="Use either"):
        await organizer.execute(query, **ids)
    assert await organizer.execute(query, slotId="slot_1") == 0
    assert await organizer.execute(query, campaignId="nothing") == 0


def test_a_token_is_valid_for_its_user_and_topic_with_any_configured_key() -> None:
    old, new = "an old secret that has more than 32 bytes", SECRET
    user_id = UserId("a" * 24)
    token = unsubscribe_token(TokenSigner([old]), user_id, MailTopic.REMINDERS)
    assert parse_unsubscribe_token(TokenSigner([new, old]), token) == (user_id, MailTopic.REMINDERS)
    assert parse_unsubscribe_token(TokenSigner([new]), token) is None
    for invalid in ("", "..", token[:-PROOF_DIGITS], token[:-2], f"{token}00", "\u00e9" + token):
        assert parse_unsubscribe_token(TokenSigner([old]), invalid) is None
