"""A site that sends mail: its links set passwords and verify addresses in a real browser."""

import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Route, ViewportSize, expect

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.devserver.mail_catcher import catching_mail
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.board.pages import CREATE_USER, PASSWORD, Board, shown
from tests.support.clients.client import GraphQLTestClient
from tests.support.notifications.mail_scene import MailTrap
from tests.support.polling import eventually, poll_until
from tests.support.stores.users import new_email

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Where users reach the site; the links of mails begin with it whatever a request says.
PUBLIC_URL = "https://school.test"
NEW_PASSWORD = "another long sentence"
SCREEN: ViewportSize = {"width": 360, "height": 800}
REMINDERS = """query($id: ID!) { campaign(id: $id) { reminderMinutes openingMailHours } }"""
WANTS = "{ me { wantsReminders wantsAnnouncements } }"
ME = "{ me { email emailVerified } }"
REQUEST = """mutation($email: EmailAddress!) { requestPasswordReset(email: $email) {
  __typename ... on Refusal { code } } }"""
SEND = """mutation($input: SendAnnouncementInput!) { sendAnnouncement(input: $input) {
  ... on AnnouncementSent { recipientCount } ... on Refusal { code } } }"""
FAILED = """query($id: ID!) { outbox(filter: {slotId: $id, state: FAILED}) { totalCount } }"""


@pytest.fixture(scope="module")
def trap() -> MailTrap:
    """Return the mail server of the app."""
    return MailTrap()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(
    trap: MailTrap, servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppProcess]:
    """Run an app that sends mail."""
    directory: Path = tmp_path_factory.mktemp("mails")
    with catching_mail(trap) as port:
        settings = {
            **app_environment(servers, "mailed_links"),
            "SLOTLOCK_SMTP_URL": f"smtp://127.0.0.1:{port}",
            "SLOTLOCK_MAIL_FROM": "School <noreply@school.test>",
            "SLOTLOCK_PUBLIC_URL": PUBLIC_URL,
            "SLOTLOCK_ACCESS_LOG": "true",
            "SLOTLOCK_REQUIRE_VERIFIED_EMAIL": "true",
        }
        with forked_app(settings, directory) as running:
            yield running


async def link_to(trap: MailTrap, email: str, subject: str) -> str:
    """Wait for the mail to an address with this subject. Return the fragment of its link."""

    async def links() -> list[str]:
        bodies = [
            body.get_content()
            for message in trap.messages
            if message["Subject"] == subject
            and message["To"].addresses[0].addr_spec == email
            and (body := message.get_body(("plain",)))
        ]
        return re.findall(rf"{PUBLIC_URL}/board(#/\w+/[\w-]+)\s", "".join(bodies))

    [link] = await poll_until(links, len, f"a mail to {email}")
    return link


async def test_a_forgotten_password_is_set_by_the_link_of_a_mail(
    board: Board, trap: MailTrap
) -> None:
    email = new_email()
    student = await board.student(email=email)
    page = await board.open(await board.context(), "#/signin")
    await page.get_by_label("Email address").fill(email)
    await page.get_by_role("button", name="I forgot my password").click()
    await page.get_by_role("button", name="Send the mail").click()
    await shown(page, f"If {email} has an account, a mail is on its way.").wait_for()
    link = await link_to(trap, email, "Choose a new password")
    page = await board.open(await board.context(), link)
    assert page.url.endswith("#/reset")
    # Nothing has happened yet: programs that open links type no password.
    assert (await student.execute(ME))["email"] == email
    await page.get_by_label("New password").fill(NEW_PASSWORD)
    await page.get_by_role("button", name="Choose this password").click()
    await shown(page, "Your password is chosen.").wait_for()
    assert await student.error_code("{ mySessions { id } }") == "UNAUTHENTICATED"
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Email address").fill(email)
    await page.get_by_label("Password", exact=True).fill(NEW_PASSWORD)
    await page.locator("form .btn.big").click()
    await page.get_by_role("link", name="Account").first.wait_for()
    assert link.rpartition("/")[2] not in board.app.log


REGISTER = """mutation($input: RegisterInput!) { register(input: $input) {
  ... on Session { verificationMail { isOnItsWay dueAt retryAfterMs } } } }"""


async def test_who_registers_reads_whether_the_mail_is_on_its_way_and_sends_it_again(
    board: Board, trap: MailTrap
) -> None:
    email = new_email()
    given = {"name": "Ada", "password": PASSWORD, "email": new_email()}
    registered = await board.organizer.execute(REGISTER, input=given)
    mail = registered["verificationMail"]
    assert (mail["isOnItsWay"], mail["retryAfterMs"]) == (True, None)

    def recipients() -> list[str]:
        return [message["To"].addresses[0].addr_spec for message in trap.messages]

    async def refuse_mail(route: Route) -> None:
        if "board/register/" not in (route.request.post_data or ""):
            await route.fallback()
            return
        response = await route.fetch()
        body = await response.json()
        refused = {"isOnItsWay": False, "dueAt": None}
        body["data"]["register"]["verificationMail"] = refused
        await route.fulfill(response=response, json=body)

    page = await board.open(await board.context(), "#/signin")
    await page.route("**/graphql", refuse_mail)
    await page.get_by_role("button", name="New here?").click()
    for label, text in (("Name", "Ben"), ("Email address", email), ("Password", PASSWORD)):
        await page.get_by_label(label, exact=True).fill(text)
    await page.get_by_role("button", name="Create an account").click()
    await shown(page, "The mail that confirms your email address could not be sent yet.").wait_for()
    await page.get_by_role("button", name="Send again").click()
    await shown(page, f"A mail is on its way to {email}.").wait_for()
    await eventually(lambda: recipients().count(email) == 2, "both mails have come")
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_role("link", name="Account").first.wait_for()


async def test_an_address_is_verified_and_changed_in_the_account(
    board: Board, trap: MailTrap
) -> None:
    email, new = new_email(), new_email()
    student = await board.student(email=email)
    context = await board.context(student)
    link = await link_to(trap, email, "Confirm your email address")
    assert await student.execute(ME) == {"email": email, "emailVerified": False}
    # The site gives no place before, not even in a slot without a campaign.
    slot_id = await board.organizer.add_slot()
    assert (await student.book_slot(slot_id))["__typename"] == "EmailNotVerified"
    page = await board.open(context, link)
    assert page.url.endswith("#/account")
    await page.get_by_role("button", name="Confirm the email address").click()
    await page.get_by_text(f"{email} is confirmed.").first.wait_for()
    assert (await student.book_slot(slot_id))["__typename"] == "Booked"
    await page.get_by_label("New email address").fill(new)
    await page.locator("#emailPassword").fill(PASSWORD)
    await page.get_by_role("button", name="Change the email address").click()
    link = await link_to(trap, new, "Confirm your email address")
    await page.goto(f"/board{link}")
    await page.get_by_role("button", name="Confirm the email address").click()
    await page.get_by_text(f"{new} is confirmed.").first.wait_for()
    assert await student.execute(ME) == {"email": new, "emailVerified": True}


async def test_no_header_of_a_request_changes_the_link_of_a_mail(
    board: Board, trap: MailTrap
) -> None:
    email = new_email()
    await board.student(email=email)
    for headers in (
        {"Host": "evil.test"},
        {"X-Forwarded-Host": "evil.test", "X-Forwarded-Proto": "http"},
        {"Forwarded": "host=evil.test", "Origin": "https://evil.test"},
    ):
        await board.http.post(
            f"{board.app.url}/graphql",
            json={"query": REQUEST, "variables": {"email": email}},
            headers=headers,
        )
    subject = "Choose a new password"

    async def bodies() -> list[str]:
        return [
            mail.content.decode()
            for mail in list(trap.mails)
            if mail.recipients == (email,) and mail.message["Subject"] == subject
        ]

    for body in await poll_until(bodies, len, "a mail arrives"):
        assert "evil.test" not in body
        assert f"{PUBLIC_URL}/board" in body


async def test_a_recipient_gets_few_mails_an_hour_whether_or_not_there_is_an_account(
    board: Board,
) -> None:
    email = new_email()
    await board.student(email=email)
    client = GraphQLTestClient(board.http, board.app.url)
    for address in (email, new_email()):
        outcomes = [(await client.execute(REQUEST, email=address)) for _ in range(7)]
        names = [outcome["__typename"] for outcome in outcomes]
        assert names == ["PasswordResetRequested"] * 5 + ["TooManyAttempts"] * 2


async def test_an_organizer_mails_invitations(board: Board, trap: MailTrap) -> None:
    (ada, ben), group = (new_email(), new_email()), new_email()
    for name, email in (("Ada", ada), ("Ben", ben)):
        given = {"name": name, "email": email, "groups": [group], "sendMail": name == "Ben"}
        created = await board.organizer.execute(CREATE_USER, input=given)
    link = await link_to(trap, ben, "Your account at slotlock")
    assert link.endswith(created["invitationToken"])
    response = await board.http.post(
        f"{board.app.url}/users/invitations?mail=true&group={group}",
        headers={"Authorization": f"Bearer {board.organizer.token}"},
    )
    [line] = response.text.splitlines()[1:]  # Ben got a mail already
    assert line.startswith(f"{ada},Ada,,")
    link = await link_to(trap, ada, "Your account at slotlock")
    page = await board.open(await board.context(), "#/code")
    await page.get_by_label("Code").fill(link.rpartition("/")[2].lower())
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_label("New password").fill(NEW_PASSWORD)
    await page.get_by_role("button", name="Choose this password").click()
    await page.get_by_role("link", name="Account").first.wait_for()


async def test_organizers_see_whom_invitations_did_not_reach(board: Board, trap: MailTrap) -> None:
    (ada, ben), group = (new_email(), new_email()), new_email()
    for name, email in (("Ada", ada), ("Ben", ben)):
        given = {"name": name, "email": email, "groups": [group]}
        await board.organizer.execute(CREATE_USER, input=given)
    trap.respond_to_recipient = lambda address: "550 unknown" if address == ben else None
    page = await board.open(await board.context(await board.admin()), "#/organizer")
    for name in ("People", "Invitations"):
        await page.get_by_role("link", name=name, exact=True).click()
    await page.get_by_text("What the mail says").click()
    await shown(page, "Your account at slotlock").wait_for()
    for expected in ("2 mails are on their way.", "Nobody is left to invite"):
        await page.get_by_label("Only these groups").fill(group)
        await page.get_by_role("button", name="Send the invitations").click()
        await shown(page, expected).wait_for()
    await page.locator("[data-key=progress]").get_by_text(f"{ben} · 550 unknown").wait_for()
    await page.get_by_role("link", name="Ben", exact=True).click()
    await shown(page, "The mail server rejected the email address").wait_for()
    await page.locator("[data-key=mails]").get_by_text("550 unknown").wait_for()
    trap.respond_to_recipient = lambda _: None
    refusal = "This person got an invitation by mail within the last day."
    for expected in (f"A mail with a link is on its way to {ben}.", refusal):
        await page.get_by_role("button", name="Invite by mail").click()
        await shown(page, expected).wait_for()
    await page.get_by_role("link", name="Mails to this person").click()
    await page.locator(".list .tag", has_text="Failed").wait_for()
    # Its link was deleted.
    assert await page.get_by_role("button", name="Send again").count() == 0
    await page.get_by_role("link", name="Texts of the mails").click()
    await page.get_by_label("Language").select_option("de")
    await page.get_by_label("Occasion").select_option("moved")
    await page.get_by_role("heading", name="Umgebucht: Schach").wait_for()


async def test_a_campaign_has_its_reminder_in_days_and_a_mail_before_it_opens(board: Board) -> None:
    course = await board.course()
    page = await board.open(
        await board.context(await board.admin()), f"#/plan/{course.campaign_id}"
    )
    for count, unit, minutes in (("2", "days", 2880), ("90", "minutes", 90), ("", "hours", None)):
        await page.get_by_role("link", name="Settings").click()
        # What is set already is open.
        if minutes == 2880:
            await page.locator("summary", has_text="More settings").click()
        await page.fill("[name=reminderMinutes]", count)
        await page.get_by_label("Unit: Reminder by mail").select_option(label=unit)
        await page.fill("[name=openingMailHours]", "24" if count else "")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator("[name=reminderMinutes]")).to_have_count(0)
        expected = {"reminderMinutes": minutes, "openingMailHours": 24 if count else None}
        assert await board.organizer.execute(REMINDERS, id=course.campaign_id) == expected


@pytest.mark.parametrize("view", ["course", "plan"])
async def test_everybody_with_a_place_gets_an_announcement_and_unsubscribes_with_one_click(
    board: Board, trap: MailTrap, view: str
) -> None:
    course, email = await board.course(), new_email()
    student = await board.student(email=email)
    slot_id, subject = course.slot_id, f"Bring {email}"
    await board.organizer.book_slot(slot_id, userId=await student.fetch_user_id())
    id_ = course.slot_id if view == "course" else course.campaign_id
    page = await board.open(await board.context(await board.admin()), f"#/{view}/{id_}")
    await page.get_by_role("button", name="Write to all with a place").click()
    await shown(page, "1 person gets this mail.").wait_for()
    await page.get_by_role("button", name="Send…").click()
    await expect(page.locator("form .error")).to_have_count(2)
    await page.fill("[name=subject]", subject)
    await page.fill("[name=text]", "Shoes\nfor the hall")
    await page.get_by_role("button", name="Send…").click()
    await shown(page, "Send this mail to 1 person?").wait_for()
    # A change asks again.
    await page.fill("[name=text]", "Shoes for the hall")
    await page.get_by_role("button", name="Send…").click()
    await page.get_by_role("button", name="Yes, send it").click()
    await shown(page, "The mail goes to 1 person.").wait_for()

    async def links() -> list[str]:
        return [str(m["List-Unsubscribe"]) for m in trap.messages if m["Subject"] == subject]

    [link] = await poll_until(links, len, "the announcement")
    reader = await (await board.context(viewport=SCREEN)).new_page()
    await reader.goto(link.strip("<>").removeprefix(PUBLIC_URL))
    await reader.get_by_role("heading", name="No more announcements by mail?").wait_for()
    assert (await student.execute(WANTS))["wantsAnnouncements"] is True
    await reader.get_by_role("button", name="Unsubscribe").click()
    await reader.get_by_role("heading", name="You get no more announcements by mail.").wait_for()
    assert (await student.execute(WANTS)) == {"wantsReminders": True, "wantsAnnouncements": False}
    assert trap.subjects.count(subject) == 1


async def test_users_choose_their_mails_in_the_account(board: Board) -> None:
    student = await board.student()
    page = await board.open(await board.context(student), "#/account")
    await page.get_by_label("Remind me before a course begins").uncheck()
    await page.locator("[data-key=mails] .notice.yours").wait_for()
    assert await student.execute(WANTS) == {"wantsReminders": False, "wantsAnnouncements": True}
    await page.reload()
    await expect(page.get_by_label("Remind me before a course begins")).not_to_be_checked()
    await page.get_by_label("Messages from").uncheck()
    await page.get_by_label("Remind me before a course begins").check()
    expected = {"wantsReminders": True, "wantsAnnouncements": False}
    await poll_until(lambda: student.execute(WANTS), expected.__eq__, "both are stored")


async def test_an_admin_sends_all_failed_mails_again(board: Board, trap: MailTrap) -> None:
    course, subject = await board.course(), new_email()
    for _ in range(2):
        user_id = await (await board.student()).fetch_user_id()
        await board.organizer.book_slot(course.slot_id, userId=user_id)
    trap.respond_to_data = lambda: "554 no"
    message = {"subject": subject, "text": "x", "idempotencyKey": "1", "slotId": course.slot_id}
    await board.organizer.execute(SEND, input=message)
    failed = partial(board.organizer.execute, FAILED, id=course.slot_id)
    await poll_until(failed, {"totalCount": 2}.__eq__, "both mails have failed")
    page = await board.open(await board.context(await board.admin()), f"#/mail/{course.slot_id}")
    await page.get_by_label("State").select_option("FAILED")
    await expect(page.get_by_role("button", name="Send again")).to_have_count(2)
    trap.respond_to_data = lambda: None
    await page.get_by_role("button", name="Send all again").click()
    await shown(page, "2 mails are sent again.").wait_for()
    await eventually(lambda: trap.subjects.count(subject) == 2, "both mails have come")
