"""What a site shows of itself, such as its name: settings say it, or the school on the board."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from slotlock.domain.schedule.zones import UNKNOWN_ZONE, find_zone
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.facts import Line, Link, attributes_of
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import is_blank, normalize_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.site.logo import Logo
from slotlock.domain.users.user import validate_locale

# Those of mails.
LANGUAGES = ("en", "de", "zh")
MAX_NAME_LENGTH = 100
MAX_URL_LENGTH = 500
MAX_CLOSING_LENGTH = 300
LOGO_PATH = "/board/logo/"
_COLOR = re.compile("#[0-9a-fA-F]{6}")


class FormOfAddress(DescribedEnum):
    """How texts in German address members."""

    INFORMAL = "informal", "As du."
    FORMAL = "formal", "As Sie."


@value_object
class SiteValues:
    """What a site shows of itself. An empty text is no value.

    `color` is like `#2a3bb7`, and `locale` is the language of users who have chosen none. Mails to
    members end with `mail_closing`.
    """

    name: str = ""
    color: str = ""
    logo_url: str = ""
    imprint_url: str = ""
    privacy_url: str = ""
    locale: str = ""
    time_zone: str = ""
    mail_closing: str = ""
    form_of_address: str = ""

    @property
    def is_formal(self) -> bool:
        """Whether texts in German address members as Sie."""
        return self.form_of_address == FormOfAddress.FORMAL

    def over(self, others: "SiteValues") -> "SiteValues":
        """Return these values, and the others where there is none."""
        found = {name: getattr(self, name) for name in SITE_FIELDS.values()}
        return replace(others, **{name: text for name, text in found.items() if text})


# Attribute names by the field names that clients know.
SITE_FIELDS = {each.api_name: each.name for each in attributes_of(SiteValues).values()}
NO_SETTINGS = SiteValues(name="slotlock", time_zone="UTC")


@value_object
class SiteSaved:
    """The site has these values of its own, and those of the settings."""

    own: SiteValues
    settings: SiteValues


UpdateSiteOutcome = SiteSaved | InvalidInput


def validate_site_name(name: str) -> Problem | None:
    """Return the problem with the name of a site, or None."""
    if is_blank(name):
        return ProblemCode.NAME_MISSING.problem()
    return Line(MAX_NAME_LENGTH).problem(name)


def validate_color(color: str) -> Problem | None:
    """Return the problem with a color, or None. The board makes each color readable."""
    return None if _COLOR.fullmatch(color) else ProblemCode.INVALID_COLOR.problem()


def validate_site_locale(tag: str) -> Problem | None:
    """Return the problem with the language of a site, or None: it has texts in few languages."""
    if validate_locale(tag) or tag.split("-")[0].lower() not in LANGUAGES:
        return ProblemCode.INVALID_LANGUAGE.problem()
    return None


def validate_time_zone(name: str) -> Problem | None:
    """Return the problem with the name of a time zone, or None."""
    return None if find_zone(name) else UNKNOWN_ZONE.message


# The rules of what a school sets by itself.
RULES: Mapping[str, Callable[[str], Problem | None]] = {
    "name": validate_site_name,
    "color": validate_color,
    "imprint_url": Link(MAX_URL_LENGTH).problem,
    "privacy_url": Link(MAX_URL_LENGTH).problem,
    "locale": validate_site_locale,
    "time_zone": validate_time_zone,
    "mail_closing": Line(MAX_CLOSING_LENGTH).problem,
}


def checked_changes(
    changes: Mapping[str, str], logo: Logo | Problem | None = None
) -> Mapping[str, str] | InvalidInput:
    """Return changed values by attribute as they are stored, or all problems.

    An empty text takes a value back. Another logo is an address that has its hash.
    """
    texts = {name: normalize_line(text) for name, text in changes.items()}
    problems = FieldProblem.all_of(
        {
            api_name: RULES[name](texts[name])
            for api_name, name in SITE_FIELDS.items()
            if texts.get(name) and name in RULES
        }
    )
    if isinstance(logo, Problem):
        problems = (*problems, FieldProblem("logo", logo))
    elif logo is not None:
        texts["logo_url"] = LOGO_PATH + logo.digest
    return InvalidInput(problems) if problems else texts
