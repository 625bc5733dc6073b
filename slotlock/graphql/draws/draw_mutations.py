"""Mutations with which users enter wishes, and organizers conduct the draw of a campaign."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import strawberry
from strawberry import UNSET, argument, field

from slotlock.domain.booking.booking_refusals import NotTeammate
from slotlock.domain.draws import draw
from slotlock.domain.draws.draw import MAX_WISHES, DrawNotFound, DrawSettings
from slotlock.domain.draws.wish_closing import SeenWishes
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.dependents import MAX_DEPENDENTS
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.enums import DrawMethod, DrawRecordReaders
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id, register_type
from slotlock.graphql.draws.draw_queries import CampaignIdArgument
from slotlock.graphql.draws.draw_types import Draw, Wishes, WishesSaved
from slotlock.services.campaigns import campaigns
from slotlock.services.draws import draws, wishes

register_type(draw.Draw, Draw, lambda found, _view: Draw(found))
register_type(
    wishes.WishesSaved,
    WishesSaved,
    lambda saved, _view: WishesSaved(
        wishes=Wishes.of(saved.wishes, salt=saved.wishes.salt) if saved.wishes else None
    ),
)

CHANGE_DRAW = Result[draw.Draw | draw.DrawRefusal](
    "ChangeDrawResult", "The draw with its new state, or a refusal."
)
SET_WISHES = Result[wishes.SetWishesOutcome]("SetWishesResult", "The wishes, or a refusal.")


@strawberry.input(description="How places are drawn, and until when users enter wishes.")
class ConfigureDrawInput:
    campaign_id: strawberry.ID = field(description="The campaign.")
    wishes_until: datetime = field(
        description="Users enter wishes until this time, at which the server closes them."
    )
    method: DrawMethod = field(default=DrawMethod.ROUNDS, description="How places are given.")
    shows_demand: bool = field(
        default=False, description="Whether members see how often each slot is wished for."
    )
    leftovers_open_at: datetime | None = field(
        default=None,
        description="From when on everybody books what is left: the publication makes it the "
        "`opensAt` of the campaign. Null for as soon as the places are booked.",
    )
    joins_waitlists: bool = field(
        default=False,
        description="Whether users without a place in a full slot join its waiting list, in the "
        "order of the draw. Teams do not.",
    )
    seed_source: str | None = field(
        default=None,
        description="The public randomness from which the places will be drawn, and how it is "
        "written, 1 to 500 characters. Null if the server makes the seed when the draw opens, and "
        "reveals it when it is drawn; its hash is public from the opening on.",
    )
    seed_at: datetime | None = field(
        default=None,
        description="When the randomness of `seedSource` becomes public, at least 10 minutes after "
        "`wishesUntil`. Needed with it.",
    )
    record_for: DrawRecordReaders = field(
        default=DrawRecordReaders.PARTICIPANTS, description="Who reads the result in the record."
    )
    reason: str | None = field(
        default=None,
        description="Why another draw opens, for everybody, 1 to 500 characters. Needed if an "
        "earlier draw of the campaign was closed. It means nothing for a draw that is open.",
    )
    copy_wishes_of: strawberry.ID | None = field(
        default=None,
        description="The `recordId` of an earlier draw of the campaign, with whose counted wishes "
        "a new draw starts. Null for no wishes. It means nothing for a draw that is open.",
    )

    def to_settings(self) -> DrawSettings:
        """Return the settings of the domain."""
        return DrawSettings(
            self.method,
            self.wishes_until,
            self.shows_demand,
            self.leftovers_open_at,
            self.joins_waitlists,
            self.seed_source or "",
            self.seed_at,
            self.record_for,
        )


ConfigureDrawArgument = Annotated[
    ConfigureDrawInput, argument(description="The campaign and the settings.")
]


async def _change(info: Info, sent_id: str, change: Callable[..., Any], *more: object) -> object:
    """Let an organizer change the draw of a campaign. Errors: FORBIDDEN."""
    organizer, campaign_id = info.context.require_organizer(), ids.parse_campaign_id(sent_id)
    if campaign_id is None:
        return refuse_id(DrawNotFound, sent_id)
    outcome = await change(info.context.services, organizer, campaign_id, *more)
    return CHANGE_DRAW.present(outcome, ResultView(organizer))


@strawberry.type
class DrawMutations:
    @SET_WISHES.mutation(
        "Rank the slots of a campaign that the caller wishes for. The list replaces the one of "
        "before, alone or with others; an empty one removes it. One of a team ends for all of its "
        "members; others of a family keep theirs. It counts when the wishes are closed. "
        "With `expectedChangedAt`, it replaces only the list that the client saw. "
        f"Fails with `WrongDrawState` after that. At most {MAX_WISHES} slots."
    )
    async def set_wishes(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        slot_ids: Annotated[
            list[strawberry.ID], argument(description="The slots, the best wish first.")
        ],
        team_id: Annotated[
            strawberry.ID | None,
            argument(
                description="A team of the caller, whose members get places together or none. Null "
                "for the caller alone."
            ),
        ] = None,
        user_ids: Annotated[
            list[strawberry.ID] | None,
            argument(
                description="Dependents of the caller, also together with the caller, who get "
                "places together or none. Not with a `teamId`. Others lead to `NotTeammate`."
            ),
        ] = None,
        expected_changed_at: Annotated[
            datetime | None,
            argument(
                description="The `changedAt` of the list that the client saw, of the caller or of "
                "the first of `userIds`. Null if there was none. If the list is another one by "
                "now, nothing changes: `InvalidInput` with `WISHES_CHANGED`. Without this "
                "argument, any list is replaced."
            ),
        ] = UNSET,
    ) -> object:
        caller, services = info.context.caller, info.context.services
        if user_ids is not None and (team_id or not 1 <= len(user_ids) <= MAX_DEPENDENTS + 1):
            message = f"`userIds` must have 1 to {MAX_DEPENDENTS + 1} items, without a `teamId`."
            raise bad_input("userIds", message)
        parsed = ids.parse_campaign_id(campaign_id)
        if parsed is None or await campaigns.find(services, parsed, caller) is None:
            return refuse_id(DrawNotFound, campaign_id)
        team = ids.parse_team_id(team_id) if team_id else None
        slots = [ids.parse_slot_id(each) for each in slot_ids]
        view = ResultView(caller)
        if team_id and team is None:
            return SET_WISHES.present(_invalid("teamId", ProblemCode.NOT_IN_TEAM), view)
        known = [each for each in slots if each is not None]
        if len(known) < len(slots):
            return SET_WISHES.present(_invalid("slotIds", ProblemCode.NOT_IN_CAMPAIGN), view)
        users = {sent_id: ids.parse_user_id(sent_id) for sent_id in user_ids or ()}
        senders = [user_id for user_id in users.values() if user_id is not None]
        if len(senders) < len(users):
            return refuse_id(NotTeammate, next(each for each in users if not users[each]))
        seen = None if expected_changed_at is UNSET else SeenWishes(expected_changed_at)
        outcome = await wishes.set_wishes(services, caller, parsed, known, team, senders, seen)
        return SET_WISHES.present(outcome, view)

    @CHANGE_DRAW.mutation(
        "Open the draw of a campaign, or change one that collects wishes. From then on only "
        "organizers book in the campaign, until the result is published. Fails with `DrawActive` "
        "until a published draw `isWritten`. Organizers only."
    )
    async def configure_draw(self, info: Info, input: ConfigureDrawArgument) -> object:
        organizer, sent_id = info.context.require_organizer(), input.copy_wishes_of
        copied = ids.parse_draw_id(sent_id) if sent_id else None
        if sent_id and copied is None and ids.parse_campaign_id(input.campaign_id):
            invalid = _invalid("copyWishesOf", ProblemCode.NO_CLOSED_DRAW)
            return CHANGE_DRAW.present(invalid, ResultView(organizer))
        more = input.to_settings(), copied, input.reason or ""
        return await _change(info, input.campaign_id, draws.configure_draw, *more)

    @CHANGE_DRAW.mutation(
        "Accept no more wishes. Some seconds later the draw has its `root`, and then nobody can "
        "change what is drawn. The server does it at `wishesUntil` by itself. Organizers only."
    )
    async def close_wishes(self, info: Info, campaign_id: CampaignIdArgument) -> object:
        return await _change(info, campaign_id, draws.close_wishes)

    @CHANGE_DRAW.mutation(
        "Fix the seed, from which the result follows. Nobody can replace it. Fails with "
        "`DrawOutdated` if slots have fewer free places than when the wishes were closed. Fails "
        "with `SeedTooEarly` before `seedAt`, and with `RootTooLate` if the root was not public "
        "before it. Organizers only."
    )
    async def run_draw(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        seed: Annotated[
            str | None,
            argument(
                description="What the announced `seedSource` gave, 1 to 500 characters. Null if "
                "none was announced: the server then reveals the seed that it made."
            ),
        ] = None,
    ) -> object:
        return await _change(info, campaign_id, draws.run_draw, seed)

    @CHANGE_DRAW.mutation(
        "Publish the result. The server then books the places and does what the settings say; "
        "`isWritten` of the draw says when that is done. Organizers only."
    )
    async def publish_draw(self, info: Info, campaign_id: CampaignIdArgument) -> object:
        return await _change(info, campaign_id, draws.publish_draw)

    @CHANGE_DRAW.mutation(
        "Replace a draw that is closed and not published by another one, which collects wishes "
        "again and starts with those of before. The old record stays public. Organizers only."
    )
    async def supersede_draw(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        reason: Annotated[str, argument(description="Why, for everybody, 1 to 500 characters.")],
    ) -> object:
        return await _change(info, campaign_id, draws.supersede_draw, reason)

    @CHANGE_DRAW.mutation(
        "Call off a draw that is not published, and let everybody book again. Its record stays "
        "public. It opens a campaign with `admission: DRAW` that has no draw, too. Organizers only."
    )
    async def cancel_draw(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        reason: Annotated[str, argument(description="Why, for everybody, 1 to 500 characters.")],
    ) -> object:
        return await _change(info, campaign_id, draws.cancel_draw, reason)


def _invalid(field_name: str, code: ProblemCode) -> InvalidInput:
    return InvalidInput((FieldProblem(field_name, code.problem()),))
