"""Sign in at a provider of the school (OpenID Connect), and link what a user has there."""

from typing import Annotated

import strawberry
from strawberry import argument

from slotlock.auth.sign_on import identities, sign_in
from slotlock.auth.sign_on.sign_in_outcomes import (
    FinishSignInOutcome,
    LinkSignInOutcome,
    StartSignInOutcome,
)
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id

ANONYMOUS = ResultView(None)

START = Result[StartSignInOutcome](
    "StartSignInResult", "The address of the provider, or a refusal."
)
FINISH = Result[FinishSignInOutcome]("FinishSignInResult", "The new session, or a refusal.")
LINK = Result[LinkSignInOutcome]("LinkSignInResult", "The linked sign-in, or a refusal.")
UNLINK = Result[identities.UnlinkSignInOutcome](
    "UnlinkSignInResult", "The unlinked sign-in, or a refusal."
)

UNLINK_OF_USER = Result[identities.UnlinkUserSignInOutcome](
    "UnlinkUserSignInResult", "The unlinked sign-in, or a refusal."
)

StateArgument = Annotated[str, argument(description="The `state` that the provider returned.")]
CodeArgument = Annotated[str, argument(description="The `code` that the provider returned.")]
VerifierArgument = Annotated[
    str, argument(description="The secret of the client, whose challenge began the sign-in.")
]
IssuerArgument = Annotated[
    str | None, argument(description="The `iss` that the provider returned, if it did (RFC 9207).")
]


@strawberry.type
class SignOnMutations:
    @START.mutation(
        "Start a sign-in at a provider of `Site.signInProviders`. The client makes a random "
        "verifier, which it remembers, and sends the user to the returned address."
    )
    async def start_sign_in(
        self,
        info: Info,
        provider: Annotated[str, argument(description="The id of the provider.")],
        challenge: Annotated[
            str,
            argument(
                description="The SHA-256 of the verifier in Base64 for URLs, without padding: "
                "S256 of RFC 7636. The verifier has 43 to 128 letters and digits."
            ),
        ],
        redirect_uri: Annotated[
            str | None,
            argument(
                description="Where the provider sends the user afterwards: by default to the "
                "board. Apps have other addresses, which the settings of the provider list."
            ),
        ] = None,
    ) -> object:
        context = info.context
        outcome = await sign_in.start_sign_in(
            context.auth, provider, challenge, redirect_uri, context.client.address
        )
        return START.present(outcome, ANONYMOUS)

    @FINISH.mutation(
        "Sign in the user whom a provider sent back. A sign-in that was started can be finished "
        "once, within ten minutes, and only by the client that started it. After `ServerBusy`, it "
        "can be finished with the same values, once `retryAfterMs` are over."
    )
    async def finish_sign_in(
        self,
        info: Info,
        state: StateArgument,
        code: CodeArgument,
        verifier: VerifierArgument,
        issuer: IssuerArgument = None,
    ) -> object:
        auth, client = info.context.auth, info.context.client
        outcome = await sign_in.finish_sign_in(
            auth, state, code, verifier, issuer, client.user_agent, client.address
        )
        return FINISH.present(outcome, ANONYMOUS)

    @LINK.mutation(
        "Finish a sign-in as `finishSignIn` does, but link it to the caller, who can sign in with "
        "it from now on. It needs the password or a fresh session (`ReauthenticationRequired`). "
        "Without a right one, it can be finished with the same values."
    )
    async def link_sign_in(
        self,
        info: Info,
        state: StateArgument,
        code: CodeArgument,
        verifier: VerifierArgument,
        issuer: IssuerArgument = None,
        current_password: Annotated[
            str | None,
            argument(description="The current password of the caller, if they have one."),
        ] = None,
    ) -> object:
        caller = info.context.caller
        outcome = await sign_in.link_sign_in(
            info.context.auth,
            caller,
            state,
            code,
            verifier,
            issuer,
            info.context.client.address,
            current_password,
        )
        return LINK.present(outcome, ResultView(caller))

    @UNLINK.mutation(
        "End that the caller signs in with an identity, and end the other sessions that it "
        "opened. Unlinking again gives the same result."
    )
    async def unlink_sign_in(
        self,
        info: Info,
        identity: Annotated[strawberry.ID, argument(description="The id of the identity.")],
    ) -> object:
        caller = info.context.caller
        outcome = await identities.unlink_sign_in(info.context.auth, caller, identity)
        return UNLINK.present(outcome, ResultView(caller))

    @UNLINK_OF_USER.mutation(
        "End that a user signs in with an identity, and end the sessions that it opened. The user "
        "may have no other way in: they can be invited then. Unlinking again gives the same "
        "result. Admins only."
    )
    async def unlink_user_sign_in(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user.")],
        identity: Annotated[strawberry.ID, argument(description="The id of the identity.")],
    ) -> object:
        admin = info.context.require_admin()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await identities.unlink_sign_in_of(info.context.auth, admin, parsed_id, identity)
        return UNLINK_OF_USER.present(outcome, ResultView(admin))
