"""Webhooks as admins and organizers see and change them."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.notifications import webhooks
from slotlock.domain.shared.pagination import Position
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.graphql.campaigns.campaign_queries import Campaign, load_campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    KEY_DESCRIPTION,
    IdempotencyKeyArgument,
    require_valid_key,
)
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_OUTBOX_ENTRY, ListCursors
from slotlock.graphql.core.enums import OutboxState, WebhookEvent
from slotlock.graphql.core.node import Node, attribute_field, property_field
from slotlock.graphql.core.outcomes import Result, ResultView, register_type, register_value
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.services.notifications import webhook_admin


@strawberry.type(description="A message to a webhook, and what became of it.")
class WebhookDelivery:
    def __init__(self, delivery: webhooks.WebhookDelivery) -> None:
        self._delivery = delivery

    @property_field(description="An opaque id, for `redeliverWebhook`.")
    def delivery_id(self) -> strawberry.ID:
        return ids.webhook_delivery_global_id(self._delivery.entry.id)

    type = attribute_field(
        "_delivery.entry.kind", str, "What happened, such as `booking.confirmed`, or `ping`."
    )
    at = attribute_field("_delivery.entry.at", datetime, "When it happened.")
    state = attribute_field(
        "_delivery.entry.state", OutboxState, "Whether the receiver has accepted the message."
    )
    attempts = attribute_field(
        "_delivery.entry.attempts", int, "The number of attempts since the message was queued."
    )
    attempted_at = attribute_field(
        "_delivery.attempted_at",
        datetime | None,
        "When the latest attempt ended, if there was one.",
    )
    response_status = attribute_field(
        "_delivery.response_status",
        int | None,
        "The status of the latest response; null without a response.",
    )
    duration_ms = attribute_field(
        "_delivery.duration_ms", int | None, "How long the latest attempt took, in milliseconds."
    )
    note = attribute_field(
        "_delivery.entry.note",
        str | None,
        "The response to the latest attempt, or why there was none.",
    )

    @property_field(description="When the next attempt is due; null if there is none.")
    def next_attempt_at(self) -> datetime | None:
        entry = self._delivery.entry
        return entry.due_at if entry.state is OutboxState.QUEUED else None

    @property_field(description="The body of the message, which is JSON.")
    def body(self) -> str:
        return self._delivery.entry.data.get("body", "")


DELIVERIES = ListCursors(
    "webhook.deliveries", BY_OUTBOX_ENTRY, lambda found: Position(found.entry.at, found.entry.id)
)
WebhookDeliveryConnection = Connection[WebhookDelivery]


@strawberry.type(description="A URL that gets a signed request when something happens.")
class Webhook(Node):
    def __init__(self, webhook: webhooks.Webhook) -> None:
        self.id = ids.webhook_global_id(webhook.id)
        self._webhook = webhook

    url = attribute_field("_webhook.url", str, "Where the requests go.")
    events = attribute_field("_webhook.events", list[WebhookEvent], "The events that it gets.")
    created_at = attribute_field("_webhook.created_at", datetime, "When it was created.")
    disabled_at = attribute_field(
        "_webhook.disabled_at",
        datetime | None,
        "Since when it gets no events; null while it is enabled.",
    )
    disabled_reason = attribute_field(
        "_webhook.disabled_reason",
        str | None,
        "Why the server disabled it; null if a user did, and while it is enabled.",
    )
    failing_since = attribute_field(
        "_webhook.failing_since",
        datetime | None,
        "Since when all attempts have failed; null if the latest one worked.",
    )

    @property_field(
        description="Until when requests are signed with the previous secret, too; null without a "
        "recent rotation."
    )
    def previous_secret_expires_at(self) -> datetime | None:
        _, *others = self._webhook.secrets
        return others[0].expires_at if others else None

    @field(description="The campaign whose events it gets; null for those of the whole site.")
    async def campaign(self, info: Info) -> Campaign | None:
        campaign_id = self._webhook.campaign_id
        return await load_campaign(info, campaign_id) if campaign_id else None

    @field(description="The user who created it.")
    async def created_by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self._webhook.created_by)

    @field(description="Its messages of the last 30 days, the newest first.")
    async def deliveries(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> WebhookDeliveryConnection:
        page = await webhook_admin.list_deliveries(
            info.context.services, self._webhook.id, *page_start(DELIVERIES, first, after)
        )
        return WebhookDeliveryConnection(
            page, [WebhookDelivery(each) for each in page.items], DELIVERIES, after
        )


@strawberry.type(description="A webhook and its new secret.")
class WebhookWithSecret:
    webhook: Webhook = field(description="The webhook as it is now.")
    secret: str = field(
        description="The secret of its signatures, such as `whsec_…`. Only this response shows it."
    )


register_value(
    webhooks.ShownWebhookId, strawberry.ID, lambda id_, _outcome, _view: ids.webhook_global_id(id_)
)
register_type(webhooks.WebhookSaved, Webhook, lambda saved, _view: Webhook(saved.webhook))
register_type(
    webhooks.WebhookCreated,
    WebhookWithSecret,
    lambda created, _view: WebhookWithSecret(
        webhook=Webhook(created.webhook), secret=created.secret
    ),
)
register_type(
    webhooks.WebhookQueued, WebhookDelivery, lambda queued, _view: WebhookDelivery(queued.delivery)
)
CREATE = Result[webhooks.CreateWebhookOutcome](
    "CreateWebhookResult", "The new webhook and its secret, or a refusal."
)
UPDATE = Result[webhooks.UpdateWebhookOutcome](
    "UpdateWebhookResult", "The changed webhook, or a refusal."
)
ROTATE = Result[webhooks.RotateWebhookSecretOutcome](
    "RotateWebhookSecretResult", "The webhook and its new secret, or a refusal."
)
DELETE = Result[webhooks.DeleteWebhookOutcome](
    "DeleteWebhookResult", "What was deleted, or a refusal."
)
PING = Result[webhooks.SendWebhookOutcome](
    "PingWebhookResult", "The message that is sent, or a refusal."
)
REDELIVER = Result[webhooks.SendWebhookOutcome](
    "RedeliverWebhookResult", "The message that is sent again, or a refusal."
)
WebhookIdArgument = Annotated[strawberry.ID, argument(description="The webhook.")]


@strawberry.input(description="The webhook to create.")
class CreateWebhookInput:
    url: str = field(
        description="Where the requests go: a URL with `https:`, of at most 500 characters."
    )
    events: list[WebhookEvent] = field(description="The events that it gets.")
    campaign_id: strawberry.ID | None = field(
        default=None,
        description="Send events of this campaign and its slots only. Only admins leave it out.",
    )
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


@strawberry.input(description="The changes to a webhook.")
class UpdateWebhookInput:
    webhook_id: strawberry.ID = field(description="The webhook to change.")
    url: str | None = field(default=None, description="The new URL; null for the present one.")
    events: list[WebhookEvent] | None = field(
        default=None, description="All events from now on; null for the present ones."
    )
    enabled: bool | None = field(
        default=None,
        description="Whether it gets events. One that is enabled again gets what happens from then "
        "on. Null leaves it as it is.",
    )


@strawberry.type
class WebhookQueries:
    @field(
        description="All webhooks, at most 50, the oldest first. Organizers see those of "
        "campaigns, admins all of them. Organizers only."
    )
    async def webhooks(self, info: Info) -> list[Webhook]:
        viewer = info.context.require_organizer()
        found = await webhook_admin.list_all(info.context.services, viewer)
        return [Webhook(each) for each in found]


@strawberry.type
class WebhookMutations:
    @CREATE.mutation(
        "Create a webhook: a URL that gets a request, signed as Standard Webhooks describes, when "
        "something happens. A repeated request with the same key returns the webhook and its "
        "newest secret. Organizers only, without a campaign admins only."
    )
    async def create_webhook(
        self,
        info: Info,
        input: Annotated[CreateWebhookInput, argument(description="The webhook to create.")],
    ) -> object:
        viewer, context = info.context.require_organizer(), info.context
        key = require_valid_key(input.idempotency_key)
        campaign_id = None
        if input.campaign_id is not None:
            campaign_id = ids.parse_campaign_id(input.campaign_id)
            if campaign_id is None:
                problem = ProblemCode.UNKNOWN_CAMPAIGN.problem()
                invalid = InvalidInput((FieldProblem("campaignId", problem),))
                return CREATE.present(invalid, ResultView(viewer))
        outcome = await webhook_admin.create(
            context.services,
            input.url,
            input.events,
            campaign_id,
            viewer,
            allow_http=context.site.webhook_private_addresses,
            key_text=key,
        )
        return CREATE.present(outcome, ResultView(viewer))

    @UPDATE.mutation("Change a webhook, disable it or enable it again. Organizers only.")
    async def update_webhook(
        self,
        info: Info,
        input: Annotated[UpdateWebhookInput, argument(description="The changes.")],
    ) -> object:
        viewer, context = info.context.require_organizer(), info.context
        outcome = await webhook_admin.update(
            context.services,
            ids.parse_webhook_id(input.webhook_id),
            input.url,
            input.events,
            input.enabled,
            viewer,
            allow_http=context.site.webhook_private_addresses,
        )
        return UPDATE.present(outcome, ResultView(viewer))

    @ROTATE.mutation(
        "Give a webhook a new secret. For a day after its replacement, each other one signs its "
        "requests, too. A repeated request with the same key returns the same secret. Organizers "
        "only."
    )
    async def rotate_webhook_secret(
        self,
        info: Info,
        webhook_id: WebhookIdArgument,
        idempotency_key: IdempotencyKeyArgument = None,
    ) -> object:
        viewer = info.context.require_organizer()
        id_, key = ids.parse_webhook_id(webhook_id), require_valid_key(idempotency_key)
        outcome = await webhook_admin.rotate_secret(info.context.services, id_, viewer, key)
        return ROTATE.present(outcome, ResultView(viewer))

    @DELETE.mutation("Delete a webhook. What waits for it is not sent. Organizers only.")
    async def delete_webhook(self, info: Info, webhook_id: WebhookIdArgument) -> object:
        viewer = info.context.require_organizer()
        id_ = ids.parse_webhook_id(webhook_id)
        outcome = await webhook_admin.delete(info.context.services, id_, viewer)
        return DELETE.present(outcome, ResultView(viewer))

    @PING.mutation(
        "Send a message about nothing to a webhook, also to one that is disabled. Organizers only."
    )
    async def ping_webhook(self, info: Info, webhook_id: WebhookIdArgument) -> object:
        viewer = info.context.require_organizer()
        id_ = ids.parse_webhook_id(webhook_id)
        outcome = await webhook_admin.ping(info.context.services, id_, viewer)
        return PING.present(outcome, ResultView(viewer))

    @REDELIVER.mutation(
        "Send a message again now, whatever became of it, with the same `webhook-id`. "
        "Organizers only."
    )
    async def redeliver_webhook(
        self,
        info: Info,
        delivery_id: Annotated[strawberry.ID, argument(description="The delivery.")],
    ) -> object:
        viewer = info.context.require_organizer()
        entry_id = ids.parse_webhook_delivery_id(delivery_id)
        outcome = await webhook_admin.redeliver(info.context.services, entry_id, viewer)
        return REDELIVER.present(outcome, ResultView(viewer))


async def load_webhook(info: Info, webhook_id: webhooks.WebhookId) -> Webhook | None:
    """Load a webhook for a caller who manages it."""
    found = await webhook_admin.find(info.context.services, webhook_id, info.context.caller)
    return Webhook(found) if found else None
