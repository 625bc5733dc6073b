"""Only what a mail server says about an address marks it, in the words of many mail servers."""

import pytest

from slotlock.domain.notifications.outbox import OutboxState
from slotlock.infrastructure.mail.responses import Stage, to_delivery

CONNECTION, SENDER, RECIPIENT, CONTENT = Stage
# Several lines of a response, as aiosmtplib joins them.
ADDRESS = (
    "550 5.1.1 <ada@school.test>: Recipient address rejected: User unknown in virtual alias table",
    "550 5.1.1 <ada@school.test>... User unknown",
    "550 5.1.1 The email account that you tried to reach does not exist. Please try\n5.1.1 "
    "double-checking the recipient's email address. https://support.example/?p=NoSuchUser - gsmtp",
    "550 Requested action not taken\n5.1.1 no such mailbox",
    "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup",
    "550 5.1.2 <ada@nowhere.test>: Recipient address rejected: Domain not found",
    "501 5.1.3 Bad recipient address syntax",
    "553 5.1.3 <relay@school.test>... User address required for relay",
    "551 5.1.6 the user has moved",
    "550 #5.1.1 bad destination mailbox address",
    "550 sorry, no mailbox here by that name. (#5.1.1)",
    "550 5.1.1 <ada@school.test>: undeliverable address: host mx.school.test[10.0.0.1] said: 550 "
    "5.7.1 blocked",
    "550 Invalid recipient: <ada@school.test>",
    "550 Unrouteable address",
    "550 no such user",
    "550 <relay@spam-block.test>: User unknown",
    "550 User ada (ada@school.test) not listed in Domino Directory",
    "550 mail-relay.school.test: Requested action not taken: mailbox unavailable",
    "553 Requested action not taken: mailbox name not allowed",
    "550 unknown user at 5.7.1.7",
    "550 Requested action not taken: mailbox unavailable\nFor explanation visit "
    "https://www.provider.example/senderguidelines?c=r0301&ip=192.0.2.7&policy=blocked",
    "550 no such user, see https://help/?ip=192.0.2.7",
    "550 no such user, see WWW.provider.example/relay-access/denied?ip=192.0.2.7",
)
SERVER = (
    "554 5.7.1 <ada@school.test>: Relay access denied",
    "454 4.7.1 <ada@school.test>: Relay access denied",
    "550 5.7.1 <ada@school.test>... Relaying denied. IP name lookup failed [10.0.0.7]",
    "550 5.7.1 Unable to relay",
    "550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain",
    "550 5.7.64 TenantAttribution; Relay Access Denied",
    "550 relay not permitted",
    "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)",
    "553 <ada@school.test>... unauthorized relay traffic prohibited",
    "551 we do not relay",
    "530 5.7.0 Authentication Required. For more information, go to https://support.example/",
    "530 5.5.1 Invalid command: Must issue an AUTH command first",
    "530 5.7.57 Client not authenticated to send mail",
    "503 This mail server requires authentication before sending",
    "550 5.7.1 Client was not authenticated",
    "550 5.4.5 Daily user sending limit exceeded. - gsmtp",
    "550 5.4.5 Daily SMTP relay sending quota exceeded.\n5.4.5 See https://support.example/",
    "450 4.2.1 Peak SMTP relay limit exceeded for this customer.",
    "454 Throttling failure: Daily message quota exceeded.",
    "432 4.3.2 STOREDRV.ClientSubmit; sender thread limit exceeded",
    "452 4.3.1 Insufficient system storage",
    "451 4.3.5 Server configuration problem",
    "553 5.7.1 <noreply@school.test>: Sender address rejected: not owned by user office",
    "550 5.1.8 Access denied, bad outbound sender",
    "550 5.7.60 SMTP; Client does not have permissions to send as this sender",
    "504 5.5.2 <host>: Helo command rejected: need fully-qualified hostname",
    "554 5.7.1 <unknown[10.0.0.7]>: Client host rejected: Access denied",
    "554 5.7.1 Service unavailable; Client host [10.0.0.7] blocked using zen.example",
    "550 Verification failed for <noreply@school.test>\nResponse: 550 5.1.1 unknown\nSender verify "
    "failed",
    "535 5.7.8 Error: authentication failed",
)
LATER = (
    "550 5.7.1 This message violates the policy of school.test",
    "550 5.7.1 RESOLVER.RST.AuthRequired; authentication required",
    "554 5.7.1 rejected",
    "550 5.7.26 This mail is blocked, its SPF and DKIM did not pass",
    "550 Rejected because 10.0.0.7 is in a black list",
    "550 Administrative prohibition",
    "550 mailbox is full",
    "550 mail from your IP is not wanted, see https://www.provider.example/help",
    "554 Transaction failed",
    "450 4.2.0 <ada@school.test>: Recipient address rejected: Greylisted",
    "450 4.1.1 <ada@school.test>: unverified address: Address verification in progress",
    "451 5.1.1 try again",
    "452 4.2.2 The recipient's inbox is out of storage space",
    "421 4.7.0 Try again later, closing connection",
    "451 greylisted",
    "-1 Malformed SMTP response line",
    "252 cannot verify the user",
)
MAIL = (
    "552 5.2.2 <ada@school.test>: user is over quota",
    "550 5.2.2 mailbox full",
    "550 5.2.1 The email account that you tried to reach is disabled",
    "550 5.4.1 Recipient address rejected: Access denied. [AM5.prod.outlook.example]",
    "552 5.3.4 Message size exceeds fixed limit",
    "552 Message too large",
    "501 5.5.4 Syntax error in parameters",
    "550 5.5.0 Requested action not taken: mailbox unavailable",
    "550 5.1.0 Address rejected",
    "550 4.4.7 message expired",
    "501 syntax error",
)
# Responses that differ from those to a recipient, by the stage.
OF_STAGES = {
    SENDER: (
        *((SERVER, text) for text in ("550 5.1.1 no such user", "550 rejected", "451 4.7.1 later")),
        (MAIL, "552 5.3.4 Message size exceeds fixed limit"),
        (MAIL, "552 too large"),
    ),
    CONNECTION: ((SERVER, "554 5.1.1 go away"), (SERVER, "535 no"), (SERVER, "-1 garbage")),
    CONTENT: (
        (ADDRESS, "550 5.1.1 no such user"),
        (SERVER, "554 5.7.1 <DATA>: Relay access denied"),
        (SERVER, "554 Message rejected: Email address is not verified."),
        (LATER, "554 5.7.1 Spam message rejected"),
        (LATER, "451 try again"),
        (MAIL, "550 This message was classified as junk"),
        (MAIL, "554 rejected"),
        (MAIL, "550 5.6.0 malformed content"),
    ),
}
FACTS = {  # the state, whether attempts are free, and whether the address is marked
    ADDRESS: (OutboxState.FAILED, False, True),
    SERVER: (OutboxState.QUEUED, True, False),
    LATER: (OutboxState.QUEUED, False, False),
    MAIL: (OutboxState.FAILED, False, False),
}


@pytest.mark.parametrize(
    ("stage", "meaning", "response"),
    [(RECIPIENT, meaning, each) for meaning in FACTS for each in meaning]
    + [(stage, *each) for stage, cases in OF_STAGES.items() for each in cases],
)
def test_a_response_marks_the_address_only_if_it_is_about_it(
    stage: Stage, meaning: tuple[str, ...], response: str
) -> None:
    code, _, text = response.partition(" ")
    delivery = to_delivery(stage, int(code), text)
    facts = (delivery.state, delivery.is_outage, delivery.is_undeliverable)
    assert facts == FACTS[meaning]
    assert delivery.note.endswith(response)


def test_a_response_of_any_length_is_read() -> None:
    for text in ("a." * 16_000, "<" * 32_000, "x@" * 16_000, "5." * 16_000):
        assert not to_delivery(RECIPIENT, 550, text).is_outage
