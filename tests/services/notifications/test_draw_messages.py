"""The mails and webhooks of a draw, and the waiting lists that follow its order."""

import re
from datetime import timedelta

from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules import booking_changes
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignId, SlotAdmission
from slotlock.domain.draws.basis import DrawMethod
from slotlock.domain.draws.draw import Draw, DrawSettings
from slotlock.domain.draws.drawing import WishResult
from slotlock.domain.notifications.mail_kinds import first_mail
from slotlock.domain.notifications.webhooks import WebhookEvent
from slotlock.infrastructure.mongo.users.user_documents import new_login_name
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.campaigns import campaigns
from slotlock.services.draws import draws, wishes
from slotlock.services.workers.draw_worker import advance_draws
from tests.support.notifications.mail_scene import MailScene
from tests.support.notifications.webhook_scene import WebhookScene

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


async def open_draw(scene: MailScene) -> tuple[CampaignId, SlotId]:
    """Open a draw of one slot with one place, for which all members wish."""
    now, organizer = scene.clock.now, scene.organizer
    draft = CampaignDraft("Sports", now, now + 2 * DAY, published=True)
    saved = await campaigns.create(scene.services, draft, organizer.user_id)
    assert isinstance(saved, CampaignSaved)
    campaign_id = saved.campaign.id
    settings = DrawSettings(
        DrawMethod.ROUNDS,
        now + HOUR,
        leftovers_open_at=now + 9 * HOUR,
        joins_waitlists=True,
    )
    await draws.configure_draw(scene.services, organizer, campaign_id, settings)
    campaign = await scene.services.campaigns.find(campaign_id)
    assert campaign is not None
    slot_id = await scene.insert_slot(1, terms=campaign.terms, waitlist_capacity=9, title="Chess")
    for member in scene.members[:-1]:
        saved_wishes = await wishes.set_wishes(scene.services, member, campaign_id, [slot_id])
        assert isinstance(saved_wishes, wishes.WishesSaved)
    return campaign_id, slot_id


async def publish(scene: MailScene, campaign_id: CampaignId) -> None:
    """Let the time close the wishes, and draw and publish."""
    scene.clock.advance(HOUR)
    await advance_draws(scene.services)
    drawn = await draws.run_draw(scene.services, scene.organizer, campaign_id, None)
    assert isinstance(drawn, Draw)
    scene.clock.advance(HOUR)
    published = await draws.publish_draw(scene.services, scene.organizer, campaign_id)
    assert isinstance(published, Draw)
    await advance_draws(scene.services)
    done = await scene.services.draws.find(published.id)
    assert done is not None
    assert done.is_written


async def test_everybody_gets_the_result_once_and_losers_wait_in_the_order_of_the_draw(
    scene: MailScene,
) -> None:
    campaign_id, slot_id = await open_draw(scene)
    scene.services.sends_mail = True
    await publish(scene, campaign_id)
    await advance_draws(scene.services)
    results = {}
    for member in scene.members[:-1]:
        own = await draws.find_draw_result(scene.services, member.user_id, campaign_id)
        assert own is not None
        assert own.drawn is not None
        results[member.user_id] = own.drawn
    order = sorted(results, key=lambda user_id: results[user_id].number)
    assert results[order[0]].outcomes[0].result is WishResult.GRANTED
    slot = await scene.services.slots.find_with_roster(slot_id)
    assert slot is not None
    assert [each.user_id for each in slot.bookings] == order[:1]
    booked = first_mail(slot.bookings[0])
    assert booked is not None
    assert "by" not in booked.data  # the lot gave the place, not the organizer who drew
    assert [each.user_id for each in slot.waitlist] == order[1:]
    campaign = await scene.services.campaigns.find(campaign_id)
    assert campaign is not None
    assert campaign.terms.admission is SlotAdmission.ANY
    assert campaign.terms.opens_at == scene.clock.now + 7 * HOUR
    await scene.send(timedelta())
    texts = [str(message.get_body(("plain",))) for message in scene.trap.messages]
    assert scene.trap.subjects == ["The result of the draw: Sports"] * 3
    assert sum("- Chess" in text for text in texts) == 1
    assert sum("Your wish could not be granted." in text for text in texts) == 2


async def test_the_results_of_several_children_are_one_mail_to_their_guardian(
    scene: MailScene,
) -> None:
    campaign_id, _ = await open_draw(scene)
    *children, guardian = scene.members[:-1]
    for number, child in enumerate(children):
        names = {"name": f"Child {number}", "email": new_login_name()}
        facts = {**names, "guardians": [ObjectId(guardian.user_id)]}
        query = {"_id": ObjectId(child.user_id)}
        await scene.database["users"].update_one(query, {"$set": facts})
    scene.services.sends_mail = True
    await publish(scene, campaign_id)
    await scene.send()
    assert scene.trap.subjects == ["The result of the draw: Sports"] * 2
    texts = [str(each.get_body(("plain",))) for each in scene.trap.messages]
    own, of_children = sorted(texts, key=lambda text: "Child" in text)
    assert "Child" not in own
    for number in range(2):
        assert f"Child {number}'s lottery number was" in of_children
        result = f"(Child {number}'s wish could not be granted|Child {number} has a place in)"
        assert re.search(result, of_children)


async def test_a_result_names_no_place_that_was_given_back_since(scene: MailScene) -> None:
    campaign_id, slot_id = await open_draw(scene)
    scene.services.sends_mail = True
    await publish(scene, campaign_id)
    slot = await scene.services.slots.find_with_roster(slot_id)
    assert slot is not None
    [booking] = slot.bookings
    [winner] = [each for each in scene.members if each.user_id == booking.user_id]
    request = BookingChangeRequest(slot_id, booking.id, winner)
    await change_booking(scene.services, booking_changes.cancel, request)
    await scene.send(timedelta())
    texts = [str(message.get_body(("plain",))) for message in scene.trap.messages]
    assert len(texts) == 2
    assert all("Your wish could not be granted." in text for text in texts)


async def test_a_result_is_sent_also_after_another_draw_was_opened(scene: MailScene) -> None:
    campaign_id, _ = await open_draw(scene)
    scene.services.sends_mail = True
    await publish(scene, campaign_id)
    settings = DrawSettings(DrawMethod.ROUNDS, scene.clock.now + HOUR)
    again = await draws.configure_draw(
        scene.services, scene.organizer, campaign_id, settings, reason="Places are left."
    )
    assert isinstance(again, Draw)
    await scene.send(timedelta())
    assert scene.trap.subjects == ["The result of the draw: Sports"] * 3


async def test_the_closing_and_the_publication_are_messages(hooks: WebhookScene) -> None:
    campaign_id, _ = await open_draw(hooks.site)
    await hooks.create((WebhookEvent.DRAW_CLOSED, WebhookEvent.DRAW_PUBLISHED), campaign_id)
    async with hooks.reading():
        await publish(hooks.site, campaign_id)
        await hooks.until("draw.closed", "draw.published")
    ids = {message.content["data"]["campaignId"] for message in hooks.receiver.messages}
    assert ids == {f"campaign_{campaign_id}"}
