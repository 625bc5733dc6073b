"""Webhooks over GraphQL: who manages them, and what a response shows once."""

import asyncio
import secrets
from typing import Any

import pytest

from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.fixtures import Two

MEMBER_COUNT = 1

WEBHOOK = """fragment W on Webhook { id url events disabledAt disabledReason failingSince
  previousSecretExpiresAt campaign { id } createdBy { id }
  deliveries(first: 10) { nodes { deliveryId type state attempts note body nextAttemptAt } }
}
fragment R on Refusal { code ... on InvalidInput { fields { field } } }"""
CREATE = f"""mutation($input: CreateWebhookInput!) {{ createWebhook(input: $input) {{
  ... on WebhookWithSecret {{ secret webhook {{ ...W }} }} ...R
}} }} {WEBHOOK}"""
UPDATE = f"""mutation($input: UpdateWebhookInput!) {{ updateWebhook(input: $input) {{
  ...W ...R
}} }} {WEBHOOK}"""
ROTATE = f"""mutation($id: ID!, $key: String) {{
  rotateWebhookSecret(webhookId: $id, idempotencyKey: $key) {{
  ... on WebhookWithSecret {{ secret webhook {{ ...W }} }} ...R
}} }} {WEBHOOK}"""
PING = """mutation($id: ID!) { pingWebhook(webhookId: $id) {
  ... on WebhookDelivery { deliveryId type state } ... on Refusal { code }
} }"""
REDELIVER = """mutation($id: ID!) { redeliverWebhook(deliveryId: $id) {
  ... on WebhookDelivery { deliveryId state } ... on Refusal { code }
} }"""
DELETE = """mutation($id: ID!) { deleteWebhook(webhookId: $id) {
  ... on WebhookDeleted { webhookId } ... on Refusal { code }
} }"""
LIST = f"{{ webhooks {{ ...W }} }} {WEBHOOK.partition('fragment R')[0]}"
LOG = """query($filter: AuditLogFilter!) { auditLog(first: 20, filter: $filter) {
  nodes { action webhookServer edits { field before after } }
} }"""
# No name server knows it, so that nothing leaves this machine.
URL = "https://receiver.invalid/hook"


async def create(client: GraphQLTestClient, **fields: Any) -> Json:
    """Create a webhook, and return the result."""
    fields = {"url": URL, "events": ["BOOKING_CONFIRMED"]} | fields
    created: Json = await client.execute(CREATE, input=fields)
    return created


async def test_an_organizer_manages_the_webhook_of_a_campaign(clients: Two) -> None:
    _, organizer = clients
    campaign_id = await create_campaign(organizer)
    created = await create(organizer, campaignId=campaign_id)
    assert created["secret"].startswith("whsec_")
    webhook = created["webhook"]
    assert webhook["campaign"] == {"id": campaign_id}
    assert webhook["createdBy"] == {"id": await organizer.fetch_user_id()}
    assert webhook in await organizer.execute(LIST)
    assert created["secret"] not in str(await organizer.execute(LIST))

    rotated = await organizer.execute(ROTATE, id=webhook["id"])
    assert rotated["secret"] != created["secret"]
    assert rotated["webhook"]["previousSecretExpiresAt"] is not None

    changes = {"webhookId": webhook["id"], "events": ["SLOT_FULL", "SLOT_EDITED"]}
    changed = await organizer.execute(UPDATE, input={**changes, "enabled": False})
    assert changed["events"] == ["SLOT_EDITED", "SLOT_FULL"]
    assert changed["disabledAt"] is not None
    enabled = await organizer.execute(UPDATE, input={"webhookId": webhook["id"], "enabled": True})
    assert enabled["disabledAt"] is None

    pinged = await organizer.execute(PING, id=webhook["id"])
    assert pinged["type"] == "ping"
    [listed] = [each for each in await organizer.execute(LIST) if each["id"] == webhook["id"]]
    [delivery] = listed["deliveries"]["nodes"]
    assert delivery["deliveryId"] == pinged["deliveryId"]
    assert '"type":"ping"' in delivery["body"]
    again = await organizer.execute(REDELIVER, id=pinged["deliveryId"])
    assert again["deliveryId"] == pinged["deliveryId"]

    assert await organizer.execute(DELETE, id=webhook["id"]) == {"webhookId": webhook["id"]}
    for document in (DELETE, PING, ROTATE):
        assert (await organizer.execute(document, id=webhook["id"]))["code"] == "WEBHOOK_NOT_FOUND"
    refused = await organizer.execute(REDELIVER, id=pinged["deliveryId"])
    assert refused["code"] == "WEBHOOK_NOT_FOUND"


async def test_requests_with_one_key_create_one_webhook_with_one_secret(clients: Two) -> None:
    _, organizer = clients
    campaign_id, key = await create_campaign(organizer), secrets.token_hex(8)
    fields = {"campaignId": campaign_id, "idempotencyKey": key}
    first, *others = await asyncio.gather(*(create(organizer, **fields) for _ in range(3)))
    assert others == [first, first]
    assert await create(organizer, **fields) == first
    listed = [each["campaign"] for each in await organizer.execute(LIST)]
    assert listed.count({"id": campaign_id}) == 1
    reused = await create(organizer, **fields, url="https://other.invalid/")
    assert reused == {"code": "KEY_REUSED"}
    log = await organizer.execute(LOG, filter={"campaignId": campaign_id})
    assert [each["action"] for each in log["nodes"]].count("WEBHOOK_CREATED") == 1
    await organizer.execute(DELETE, id=first["webhook"]["id"])


async def test_the_audit_log_has_each_change_of_a_webhook_with_its_server_only(
    clients: Two,
) -> None:
    _, organizer = clients
    campaign_id = await create_campaign(organizer)
    created = await create(organizer, campaignId=campaign_id)
    id_ = created["webhook"]["id"]
    for fields in ({"url": "https://other.invalid/secret"}, {"enabled": False}, {}):
        await organizer.execute(UPDATE, input={"webhookId": id_, **fields})
    await organizer.execute(ROTATE, id=id_)
    await organizer.execute(DELETE, id=id_)
    log = await organizer.execute(LOG, filter={"campaignId": campaign_id})
    entries = [
        (
            each["action"],
            each["webhookServer"],
            {edit["field"]: (edit["before"], edit["after"]) for edit in each["edits"]},
        )
        for each in log["nodes"][::-1]
        if each["webhookServer"]
    ]
    events, old, new = "BOOKING_CONFIRMED", "receiver.invalid", "other.invalid"
    created_edits = {"url": (None, old), "events": (None, events), "enabled": (None, "true")}
    deleted_edits = {"url": (new, None), "events": (events, None), "enabled": ("false", None)}
    assert entries == [
        ("WEBHOOK_CREATED", old, created_edits),
        ("WEBHOOK_EDITED", new, {"url": (old, new)}),
        ("WEBHOOK_EDITED", new, {"enabled": ("true", "false")}),
        ("WEBHOOK_ROTATED", new, {}),
        ("WEBHOOK_DELETED", new, deleted_edits),
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "http://receiver.invalid/"}, "url"),
        ({"url": "ftp://receiver.invalid/"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://user:secret@receiver.invalid/"}, "url"),
        ({"url": "https://receiver.invalid:99999/"}, "url"),
        ({"url": "https://[::1/"}, "url"),
        ({"url": "https://[::1]./"}, "url"),
        ({"url": "https://receiver.invalid/#part"}, "url"),
        ({"url": "HTTP://receiver.invalid/"}, "url"),
        ({"url": "https://@receiver.invalid/"}, "url"),
        ({"url": "https://receiver.invalid/a b"}, "url"),
        ({"url": "https://receiver.invalid\\@other.invalid/"}, "url"),
        ({"url": "https://receiver.invalid/a\\b"}, "url"),
        ({"url": "https://receiver.invalid:port/"}, "url"),
        ({"url": "https://receiver..invalid/"}, "url"),
        ({"url": "https://\u00adreceiver.invalid/"}, "url"),
        ({"url": "https://" + "ü" * 60 + ".invalid/"}, "url"),
        ({"url": "https://" + "a." * 124 + "invalid/"}, "url"),
        ({"url": "https:receiver.invalid/"}, "url"),
        ({"url": "https://receiver.invalid/\nhost: x"}, "url"),
        ({"url": "https://receiver.invalid/" + "x" * 500}, "url"),
        ({"url": ""}, "url"),
        ({"events": []}, "events"),
        ({"events": ["USER_CREATED"]}, "events"),
        ({"campaignId": None}, "campaignId"),
        ({"campaignId": "campaign_" + "0" * 24}, "campaignId"),
        ({"campaignId": "x"}, "campaignId"),
    ],
)
async def test_an_invalid_webhook_is_refused_with_its_field(
    clients: Two, fields: Json, field: str
) -> None:
    _, organizer = clients
    campaign_id = await create_campaign(organizer)
    refused = await create(organizer, **{"campaignId": campaign_id, **fields})
    assert (refused["code"], refused["fields"]) == ("INVALID_INPUT", [{"field": field}])


URLS = {
    "HTTPS://Receiver.Invalid:443/Hook": "https://receiver.invalid:443/Hook",
    " \u200bhttps://receiver.invalid/\n": "https://receiver.invalid/",
    "https://receiver.invalid./hook?a=B#": "https://receiver.invalid/hook?a=B",
    "https://receiver.invalid:/": "https://receiver.invalid/",
    "https://BÜCHER.my_host.invalid/": "https://xn--bcher-kva.my_host.invalid/",
    "https://straße.invalid/": "https://xn--strae-oqa.invalid/",
    "https://[2606:4700::ABCD]:8443": "https://[2606:4700::abcd]:8443",
}


@pytest.mark.parametrize("url", URLS)
async def test_a_url_is_stored_as_it_is_called(clients: Two, url: str) -> None:
    _, organizer = clients
    campaign_id = await create_campaign(organizer)
    created = await create(organizer, campaignId=campaign_id, url=url)
    webhook = created["webhook"]
    assert webhook["url"] == URLS[url]
    for sent in (URL, url):
        changed = await organizer.execute(UPDATE, input={"webhookId": webhook["id"], "url": sent})
    assert changed["url"] == URLS[url]
    await organizer.execute(DELETE, id=webhook["id"])


async def test_all_that_is_wrong_with_a_webhook_is_reported_at_once(clients: Two) -> None:
    refused = await create(clients[1], url="ftp://a", events=[])
    assert refused["fields"] == [{"field": "url"}, {"field": "events"}]


async def test_a_repeated_rotation_with_one_key_returns_its_secret(clients: Two) -> None:
    _, organizer = clients
    campaign_id, key = await create_campaign(organizer), secrets.token_hex(8)
    first, other = [await create(organizer, campaignId=campaign_id) for _ in range(2)]
    id_ = first["webhook"]["id"]
    rotated, *repeated = await asyncio.gather(
        *(organizer.execute(ROTATE, id=id_, key=key) for _ in range(3))
    )
    assert [each["secret"] for each in repeated] == [rotated["secret"]] * 2
    later = await organizer.execute(ROTATE, id=id_)
    assert later["secret"] != rotated["secret"]
    assert (await organizer.execute(ROTATE, id=id_, key=key))["secret"] == rotated["secret"]
    refused = await organizer.execute(ROTATE, id=other["webhook"]["id"], key=key)
    assert refused == {"code": "KEY_REUSED"}
    log = await organizer.execute(LOG, filter={"campaignId": campaign_id})
    assert [each["action"] for each in log["nodes"]].count("WEBHOOK_ROTATED") == 2
    for each in (first, other):
        await organizer.execute(DELETE, id=each["webhook"]["id"])


@pytest.mark.parametrize("document", [DELETE, PING, ROTATE, REDELIVER])
async def test_an_id_that_names_nothing_is_refused(clients: Two, document: str) -> None:
    for id_ in ("x", "webhook_" + "0" * 24, "webhookDelivery_x"):
        assert (await clients[1].execute(document, id=id_))["code"] == "WEBHOOK_NOT_FOUND"
