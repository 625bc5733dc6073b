"""The settings of mail; `settings.Settings` inherits them."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from slotlock.api.settings.fields import SecretStr, setting
from slotlock.domain.notifications.quiet_hours import parse_quiet_hours
from slotlock.domain.site.site import validate_site_locale, validate_time_zone

# Of settings that only hold until the school sets them itself.
BOARD_FIRST = "What the page “Your school” of the board says comes first."


def _check_time_zone(name: str) -> str:
    if validate_time_zone(name):
        raise ValueError("is not an IANA time zone, such as Europe/Berlin")
    return name


def _check_locale(tag: str) -> str:
    from slotlock.infrastructure.mail.mail_texts import LANGUAGES

    if validate_site_locale(tag):
        raise ValueError(f"is not a language of the mails, which are {', '.join(LANGUAGES)}")
    return tag


def _check_quiet_hours(text: str) -> str:
    parse_quiet_hours(text, ZoneInfo("UTC"))
    return text


# Most commands need no mail, so they import its modules only if it is set.
def _check_sender(text: str) -> str:
    from slotlock.infrastructure.mail.addresses import parse_sender

    parse_sender(text)
    return text


def _check_smtp_url(url: SecretStr) -> SecretStr:
    from slotlock.infrastructure.mail.addresses import parse_smtp_url

    parse_smtp_url(url.get_secret_value())
    return url


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MailSettings:
    """The mail server, the sender and the rate of mails."""

    mail_from: str | None = setting(
        default=None,
        check=_check_sender,
        description="The sender of all mails: `noreply@example.org`, or "
        "`School <noreply@example.org>`. "
        "`SLOTLOCK_SMTP_URL` needs it.",
    )
    mail_reply_to: str | None = setting(
        default=None,
        check=_check_sender,
        description="The address that gets the replies to mails.",
    )
    smtp_url: SecretStr | None = setting(
        default=None,
        check=_check_smtp_url,
        description="The mail server that takes the mails of slotlock: "
        "`smtp://user:password@mail.example.org:587` with STARTTLS, or `smtps://` with TLS. "
        "`smtp+insecure://10.0.0.7` also works without TLS, for a mail server in the same network. "
        "Without it, slotlock sends no mail; `dev` shows its mails at `/mail` instead.",
    )
    mail_quiet_hours: str | None = setting(
        default=None,
        check=_check_quiet_hours,
        description="The hours in which nobody gets reminders and announcements, as `22:00-07:00`, "
        "by the clocks of `SLOTLOCK_TIME_ZONE`. "
        "They wait for the end, or go out before if what they are about begins first. "
        "Mails about a user's own booking never wait.",
    )
    locale: str | None = setting(
        default=None,
        check=_check_locale,
        description="The language of the site, `en`, `de` or `zh`: that of mails and letters, such "
        "as invitations, and of calendars to users who have not chosen a language yet. "
        "A first visit to the board chooses one. "
        "Without it, a mail that somebody else causes is in the language of that user, and others "
        "are in English. " + BOARD_FIRST,
    )
    time_zone: str = setting(
        default="UTC",
        check=_check_time_zone,
        description="The time zone of the site, as `Europe/Berlin`: that of the quiet hours, and "
        "of the times in mails and on the board that are about no slot. Slots have their own. "
        + BOARD_FIRST,
    )
    mail_rate: int = setting(
        default=3000,
        ge=1,
        le=100_000,
        description="The number of mails that all processes together send in a minute. "
        "Further mails wait.",
    )
