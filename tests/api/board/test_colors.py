"""The color of the site: a style sheet in which every text can be read."""

import re

import httpx
import pytest
from starlette.applications import Starlette

from slotlock.api.board.colors import BLACK, NIGHT, WHITE, contrast, site_style
from slotlock.api.board.documents import BOARD_DIR
from slotlock.api.board.endpoint import board_routes
from slotlock.domain.users.user import Registration
from slotlock.graphql.context import SiteSettings

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


async def test_the_style_sheet_of_the_page_has_the_color_of_the_site() -> None:
    values = _values(site_style("#2a3bb7"))
    assert values["day"] == values["panel"] == (42, 59, 183)
    used = re.findall(r"var\(--site-([\w-]+),", (BOARD_DIR / "static/board.css").read_text())
    assert set(used) == set(values)
    sheets = []
    for color in (None, "#2a3bb7"):
        routes = board_routes(
            SiteSettings(color=color), Registration.OPEN, sends_mail=False, password_sign_in=True
        )
        transport = httpx.ASGITransport(Starlette(routes=routes))
        async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
            page = (await client.get("/board")).text
            sheets.append(await client.get(re.findall(r'"(/board/\w+/board\.css)"', page)[0]))
    plain, colored = sheets
    assert plain.url != colored.url
    assert _values(plain.text) == {}
    assert _values(colored.text) == values
