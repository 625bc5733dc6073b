"""A school sets its name and its color on the board, in a real browser."""

from collections.abc import AsyncIterator
from functools import partial
from io import BytesIO

import pytest
import pytest_asyncio
from PIL import Image
from playwright.async_api import FilePayload, Page, ViewportSize, expect

from slotlock.devserver.embedded import EmbeddedServers
from tests.board.test_accessibility import violations
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.board.pages import Board, shown
from tests.support.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

WINDOW: ViewportSize = {"width": 360, "height": 800}
INK = "getComputedStyle(document.documentElement).getPropertyValue('--site-day')"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppProcess]:
    """Run an app that shows its mails, on a database of its own."""
    settings = {
        **app_environment(servers, "school"),
        "SLOTLOCK_SMTP_URL": "smtp+insecure://127.0.0.1:9",
        "SLOTLOCK_MAIL_FROM": "noreply@school.test",
    }
    with forked_app(settings, tmp_path_factory.mktemp("school")) as running:
        yield running


def picture(width: int) -> FilePayload:
    """Return a PNG that is twice as wide as high."""
    content = BytesIO()
    Image.new("RGB", (width, width // 2), "red").save(content, "PNG")
    return {"name": "logo.png", "mimeType": "image/png", "buffer": content.getvalue()}


async def has_ink(page: Page, color: str) -> bool:
    """Return whether links on a page have this color."""
    return bool(await page.evaluate(INK) == color)


async def test_an_admin_sees_the_school_before_others_do_and_then_they_do_too(board: Board) -> None:
    admin = await board.admin()
    context = await board.context(admin, viewport=WINDOW, timezone_id="Europe/Berlin")
    page = await board.open(context, "#/school")
    brand = page.locator(".brand")
    await page.get_by_label("Name of the school").fill("Park School")
    await page.get_by_label("Color").fill("#aa3300")
    await expect(brand).to_have_text("Park School")
    await eventually(partial(has_ink, page, "#aa3300"), "the page has the color")
    await expect(page.locator("article")).to_contain_text("Park School")
    await page.get_by_label("End of each email").fill("Questions?\nRoom 3")
    await page.get_by_label("Name of the school").focus()
    await expect(page.locator("article")).to_contain_text("Questions? Room 3")
    # What is not saved is not shown elsewhere, and is here again afterwards.
    await page.goto("/board#/organizer")
    await expect(brand).to_have_text("slotlock")
    await page.go_back()
    await expect(brand).to_have_text("Park School")
    await page.get_by_label("Legal notice").fill("http://park.example/imprint")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".error")).to_contain_text("https")
    await page.get_by_label("Legal notice").fill("park.example/imprint")
    await page.get_by_role("button", name="Save").click()
    await shown(page, "Saved.").first.wait_for()
    await shown(page, "→ Park School").wait_for()
    # What nobody has set is proposed, as the device has it.
    for proposed in ("→ English", "→ Europe/Berlin"):
        await shown(page, proposed).wait_for()
    assert await violations(page) == []
    # Who reads German is Sie from now on.
    await page.get_by_label("Form of address in German").select_option("FORMAL")
    await page.get_by_role("button", name="Save").click()
    await shown(page, "Du (informal) → Sie (formal)").wait_for()
    context = await board.context()
    await context.add_init_script("localStorage.setItem('slotlock.language', 'de')")
    german = await board.open(context)
    await expect(german.locator("h1")).to_have_text("Was Sie buchen können")
    # A logo gets as small as the page shows it.
    await page.get_by_label("Logo").set_input_files(picture(2000))
    await page.get_by_role("button", name="Save").click()
    logo = page.locator(".brand img")
    await expect(logo).to_have_js_property("naturalWidth", 128)
    pupil = await board.open(await board.context())
    await expect(pupil.locator(".brand")).to_have_text("Park School")
    assert await has_ink(pupil, "#aa3300")
    link = pupil.get_by_role("link", name="Legal notice")
    await expect(link).to_have_attribute("href", "https://park.example/imprint")


async def test_an_organizer_reads_what_the_school_set_and_changes_nothing(board: Board) -> None:
    keller = await board.colleague("Ms Keller")
    page = await board.open(await board.context(keller), "#/school")
    await shown(page, "Only administrators can change it.").wait_for()
    await expect(page.locator("form")).to_have_count(0)
    await expect(page.locator("dl.facts")).to_contain_text("Time zone")


async def test_forms_have_the_zone_of_the_school_as_soon_as_it_is_saved(board: Board) -> None:
    course = await board.course(timeZone="UTC")
    context = await board.context(await board.admin(), timezone_id="UTC")
    page = await board.open(context, "#/school")
    # A new booking period, a new course where another one has another zone, and its period.
    plan = f"#/plan/{course.campaign_id}"
    forms = {
        "#/organizer/new": "opensAt",
        f"{plan}/new": "startTime",
        f"{plan}/settings": "opensAt",
    }
    for zone, name in (("Asia/Tokyo", "Japan Standard"), ("Europe/Paris", "Central European")):
        await page.get_by_label("Time zone").fill(zone)
        await page.get_by_role("button", name="Save").click()
        await shown(page, f"→ {zone}").first.wait_for()
        for address, field in forms.items():
            await page.evaluate("address => { location.hash = address }", address)
            await expect(page.locator(f".field:has([name={field}])")).to_contain_text(
                f"{name} Time"
            )
        await page.evaluate("location.hash = '#/school'")
