"""The color of the site: a style sheet in which every text can be read."""

import re
from base64 import b64encode
from hashlib import sha256

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from slotlock.api.board.colors import BLACK, NIGHT, WHITE, contrast, site_style
from slotlock.api.board.documents import BOARD_DIR
from slotlock.api.board.endpoint import board_routes
from slotlock.domain.schedule.periods import Period
from slotlock.domain.site.logo import Logo
from slotlock.domain.site.site import SiteValues
from slotlock.domain.users.user import Registration
from slotlock.graphql.context import DEFAULT_SITE

# As small as a color of 8 bits allows.
CONTRAST = 4.45


def _values(style: str) -> dict[str, tuple[int, ...]]:
    found = re.findall(r"--site-([\w-]+): #(\w{6});", style)
    return {name: tuple(bytes.fromhex(value)) for name, value in found}


@pytest.mark.parametrize("color", ["#000000", "#ffffff", "#ffee00", "#2a3bb7", "#808080"])
def test_texts_in_the_color_of_the_site_can_be_read_in_light_and_dark(color: str) -> None:
    values = _values(site_style(color))
    for text, ground in (
        (values["day"], WHITE),
        (values["day"], values["day-wash"]),
        (values["night"], NIGHT),
        (values["night"], values["night-wash"]),
        (values["panel"], WHITE),
    ):
        assert contrast(text, ground) >= CONTRAST


def test_a_contrast_is_that_of_wcag() -> None:
    assert contrast(BLACK, WHITE) == contrast(WHITE, BLACK) == pytest.approx(21)
    assert contrast((119, 119, 119), WHITE) == pytest.approx(4.48, abs=0.01)


async def load_periods(_request: Request) -> tuple[Period, ...]:
    return ()


async def find_logo(_request: Request, _digest: str) -> Logo | None:
    """Return no logo."""
    return None


async def test_the_page_has_the_color_of_the_site_with_the_same_files() -> None:
    values = _values(site_style("#2a3bb7"))
    assert values["day"] == values["panel"] == (42, 59, 183)
    used = re.findall(r"var\(--site-([\w-]+),", (BOARD_DIR / "static/board.css").read_text())
    assert set(used) == set(values)
    pages = []
    for color in ("", "#2a3bb7"):

        async def load_site(_: Request, color: str = color) -> SiteValues:
            return SiteValues(name="School", color=color)

        routes = board_routes(
            DEFAULT_SITE,
            load_site,
            find_logo,
            load_periods,
            Registration.OPEN,
            sends_mail=False,
            password_sign_in=True,
        )
        transport = httpx.ASGITransport(Starlette(routes=routes))
        async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
            pages.append(await client.get("/board"))
            preview = await client.get("/board/style/2a3bb7.css")
            assert (await client.get("/board/style/blue.css")).status_code == 404
    plain, colored = pages
    assert _values(plain.text) == {}
    assert _values(colored.text) == _values(preview.text) == values
    # The policy allows this style and no other one.
    [style] = re.findall(r"<style>(.*?)</style>", colored.text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policies = [each.headers["content-security-policy"] for each in pages]
    assert policies[1] == policies[0].replace(
        "style-src 'self'", f"style-src 'self' 'sha256-{digest}'"
    )
    assert colored.text.replace(f"<style>{style}</style>\n", "") == plain.text
