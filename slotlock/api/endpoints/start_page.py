"""The page at `/` and the schema that development serves: what can be done from here."""

import html
import re
from pathlib import Path
from string import Template

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from slotlock.api.listener import base_url
from slotlock.api.middleware.response_headers import page_policy
from slotlock.api.settings.settings import Settings
from slotlock.graphql.schema.schema import schema

TEMPLATE_FILE = Path(__file__).with_name("start_page.html")
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
LOGIN = """mutation {
  login(input: {email: "%s", password: "..."}) {
    ... on Session { accessToken }
    ... on Refusal { message }
  }
}"""
CREATE_SLOT = """mutation {
  createSlot(input: {title: "Yoga", timeZone: "Europe/Berlin", capacity: 5,
    startTime: "2031-05-05T09:00:00+02:00", endTime: "2031-05-05T10:00:00+02:00"}) {
    ... on Slot { id title remaining }
    ... on Refusal { message }
  }
}"""
FIND_SLOTS = "{ slots(first: 10) { nodes { id title startTime remaining } } }"
BOOK_SLOT = """mutation {
  bookSlot(input: {slotId: "slot_..."}) {
    __typename
    ... on Booked { booking { id } }
    ... on Refusal { message }
  }
}"""
CURL = """curl -s -w '\\n' %s/graphql -H 'Content-Type: application/json' \\
  -d '{"query": "%s"}'"""
CALENDAR = '<li><a href="/calendars/published.ics">Calendar</a> of all published slots</li>\n'


def development_routes(settings: Settings) -> list[Route]:
    """Return the routes of the start page and of the schema."""
    page = _page(settings)
    policy = page_policy(STYLE.findall(page)[0])

    async def show_page(request: Request) -> Response:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    return [Route("/developers", show_page), Route("/schema.graphql", _show_schema)]


async def _show_schema(request: Request) -> Response:
    return PlainTextResponse(schema.as_str() + "\n")


def _page(settings: Settings) -> str:
    address, email = base_url(settings), settings.admin_email or ""
    texts = {
        "address": address,
        "email": email,
        "secrets": str(settings.data_dir / "secrets.json"),
        "login": LOGIN % email,
        "create_slot": CREATE_SLOT,
        "find_slots": FIND_SLOTS,
        "book_slot": BOOK_SLOT,
        "curl": CURL % (address, FIND_SLOTS),
    }
    escaped = {name: html.escape(text, quote=False) for name, text in texts.items()}
    # Without public reads, the calendar needs a token.
    calendar = CALENDAR if settings.public_reads else ""
    return Template(TEMPLATE_FILE.read_text()).substitute(escaped, calendar=calendar)
