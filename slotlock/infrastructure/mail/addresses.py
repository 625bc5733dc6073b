"""What the addresses of mail in the settings mean: the mail server, and the sender."""

from email.message import EmailMessage
from email.policy import SMTP
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mail.mail_headers import is_address

SCHEMES = {"smtp": 587, "smtps": 465, "smtp+insecure": 25}
URL_HINT = (
    "is not like smtp://user:password@mail.example.org:587, smtps://mail.example.org or "
    "smtp+insecure://10.0.0.7"
)


@value_object
class MailServerAddress:
    """Where the mail server is. Without `insecure`, a connection that leaves the host has TLS."""

    host: str
    port: int
    username: str | None
    password: str | None
    scheme: str

    @property
    def start_tls(self) -> bool | None:
        """Whether the connection has to begin TLS; None if only when the server offers it."""
        if self.scheme == "smtps":
            return False
        return None if self.scheme == "smtp+insecure" or _is_loopback(self.host) else True


def parse_smtp_url(url: str) -> MailServerAddress:
    """Return the address of a mail server. Raises: ValueError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(URL_HINT) from None
    if parts.scheme not in SCHEMES or not host or parts.path not in ("", "/") or parts.query:
        raise ValueError(URL_HINT)
    username = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    host = host if host.isascii() else _to_ascii(host)
    return MailServerAddress(host, port or SCHEMES[parts.scheme], username, password, parts.scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@value_object
class MailSender:
    """In whose name mails are sent, and the name and address that get the replies."""

    name: str
    address: str
    reply_to: tuple[str, str] | None = None


def parse_sender(text: str, reply_to: str | None = None) -> MailSender:
    """Return the sender of `Name <address>` or of an address. Raises: ValueError."""
    return MailSender(*_parse_mailbox(text), _parse_mailbox(reply_to) if reply_to else None)


def _parse_mailbox(text: str) -> tuple[str, str]:
    message = EmailMessage(SMTP)
    message["From"] = text
    found = message["From"].addresses
    # Not every mail server takes other characters before the @, and each mail has the sender.
    if len(found) == 1 and found[0].username.isascii() and not message["From"].defects:
        address = with_ascii_domain(found[0].addr_spec)
        if is_address(address):
            return found[0].display_name, address
    raise ValueError("is not like noreply@example.org or School <noreply@example.org>")


def with_ascii_domain(address: str) -> str:
    """Return an address whose domain every mail server understands (IDNA 2008, RFC 5891).

    IDNA 2003, which Python has, makes another domain of one with a sharp s. Raises: ValueError.
    """
    local_part, _, domain = address.rpartition("@")
    return address if domain.isascii() else f"{local_part}@{_to_ascii(domain)}"


def _to_ascii(domain: str) -> str:
    import idna  # most processes see no other letters in domains

    try:
        return idna.encode(domain, uts46=True).decode()
    except idna.IDNAError as error:
        raise ValueError(f"{domain!r} is not a domain") from error
