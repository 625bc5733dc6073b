"""Mutations with which organizers manage users: set groups, vouch, ban and unban."""

from typing import Annotated

import strawberry
from strawberry import UNSET, argument, field

from slotlock.auth import accounts
from slotlock.auth.admin import groups_and_bans
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.shared.unchanged import Unchanged
from slotlock.domain.users import user
from slotlock.domain.users.user import MailTopic
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import to_change, to_required_change
from slotlock.graphql.core.outcomes import ResultView, refuse_id
from slotlock.graphql.users.user_queries import (
    BAN_USER,
    SET_GROUPS,
    UNBAN_USER,
    UPDATE_ME,
    VOUCH_FOR_USER,
)
from slotlock.services.booking import waitlist


@strawberry.input(description="The new groups of a user.")
class SetGroupsInput:
    user_id: strawberry.ID = field(description="The user to change.")
    groups: list[str] = field(
        description="All groups of the user, replacing the previous ones: at most 20, each a line "
        "of 1 to 50 characters without `,` `;` and `*`."
    )


SetGroupsArgument = Annotated[SetGroupsInput, argument(description="The user and the groups.")]
ReasonArgument = Annotated[
    str | None,
    argument(description="A reason that organizers can read, one line of at most 200 characters."),
]


LocaleArgument = Annotated[
    str | None,
    argument(
        description="The language of the user as an IETF tag, such as `de` or `zh-Hant`, at most "
        "35 characters; null to remove it. It does not change if it is left out."
    ),
]


RemindersArgument = Annotated[
    bool | None,
    argument(
        description="Whether the user gets reminders by mail. It does not change if it is left out."
    ),
]
AnnouncementsArgument = Annotated[
    bool | None,
    argument(
        description="Whether the user gets announcements by mail: messages of organizers to all, "
        "invitations to teams, and that a campaign will open. It does not change if it is left out."
    ),
]


PhoneArgument = Annotated[
    str | None,
    argument(
        description="The telephone number, at most 40 digits, spaces and `+-()/.`; null or an "
        "empty text to remove it. It does not change if it is left out."
    ),
]


@strawberry.type
class UserMutations:
    @UPDATE_ME.mutation("Change the caller's own account.")
    async def update_me(
        self,
        info: Info,
        locale: LocaleArgument = UNSET,
        wants_reminders: RemindersArgument = UNSET,
        wants_announcements: AnnouncementsArgument = UNSET,
        phone: PhoneArgument = UNSET,
    ) -> object:
        context, caller = info.context, info.context.caller
        wants = {
            topic: wanted
            for topic, name, value in (
                (MailTopic.REMINDERS, "wantsReminders", wants_reminders),
                (MailTopic.ANNOUNCEMENTS, "wantsAnnouncements", wants_announcements),
            )
            if not isinstance(wanted := to_required_change(name, value), Unchanged)
        }
        outcome: accounts.UpdateMeOutcome
        if locale is UNSET and phone is UNSET and not wants:
            found = await context.loaders.user(caller.user_id)
            outcome = found or UserNotFound(caller.user_id)
        else:
            outcome = await accounts.set_preferences(
                context.auth, caller, to_change(locale), wants, to_change(phone)
            )
        return UPDATE_ME.present(outcome, ResultView(caller))

    @SET_GROUPS.mutation(
        "Replace the groups of a user. Organizers change members and themselves, "
        "admins change everyone."
    )
    async def set_groups(self, info: Info, input: SetGroupsArgument) -> object:
        organizer = info.context.require_organizer()
        if (user_id := ids.parse_user_id(input.user_id)) is None:
            return refuse_id(UserNotFound, input.user_id)
        outcome = await groups_and_bans.set_groups(
            info.context.auth, organizer, user_id, input.groups
        )
        return SET_GROUPS.present(outcome, ResultView(organizer))

    @VOUCH_FOR_USER.mutation(
        "Confirm that a user who registered (`User.selfRegistered`) is who the account says. The "
        "user keeps the password and the sessions, and can get groups. Another user does not "
        "change. Organizers vouch for members, admins for everyone."
    )
    async def vouch_for_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user who is known.")],
    ) -> object:
        organizer = info.context.require_organizer()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await groups_and_bans.vouch(info.context.auth, organizer, parsed_id)
        return VOUCH_FOR_USER.present(outcome, ResultView(organizer))

    @BAN_USER.mutation(
        "Ban a user. The ban ends their sessions and waiting list entries, and they "
        "can no longer sign in or be booked for; their bookings stay, and nobody moves them. "
        "Banning again replaces the reason. Organizers can ban members, admins can ban everyone "
        "but themselves."
    )
    async def ban_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to ban.")],
        reason: ReasonArgument = None,
    ) -> object:
        organizer = info.context.require_organizer()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await groups_and_bans.ban(info.context.auth, organizer, parsed_id, reason)
        if isinstance(outcome, user.User):
            await waitlist.remove_from_all(info.context.services, parsed_id, organizer.user_id)
        return BAN_USER.present(outcome, ResultView(organizer))

    @UNBAN_USER.mutation(
        "Lift the ban of a user. A user who is not banned does not change. Organizers "
        "can unban members, admins can unban everyone but themselves."
    )
    async def unban_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to unban.")],
    ) -> object:
        organizer = info.context.require_organizer()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await groups_and_bans.unban(info.context.auth, organizer, parsed_id)
        return UNBAN_USER.present(outcome, ResultView(organizer))
