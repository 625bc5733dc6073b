/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';
/** The place to book or hold. */
export type BookSlotInput = {
  /** Whether to hold the place until `heldUntil` instead of booking it. `confirmBooking` then books it. */
  hold?: boolean;
  /** A key that makes retries safe, 1 to 255 characters. Repeated requests with the same key and the same arguments take effect once and return the same result. The server remembers a key for at least 24 hours. */
  idempotencyKey?: string | null | undefined;
  /** The slot to book. */
  slotId: string | number;
  /** The user to book for; the caller by default. Members can book for members of their teams, guardians for their `dependents`, leaders in their slots for `bookableUsers`, organizers for everyone. */
  userId?: string | number | null | undefined;
  /** How long the request may wait for other requests on the slot, in milliseconds from 0 to 20000. The result is `Locked` when the time is over. By default, a new booking does not wait, and other changes wait for 5 s. */
  waitMs?: number;
};

/** An action on a booking. */
export type BookingAction =
  /** The user or someone else booked a place. */
  | 'BOOKED'
  /** The booking was cancelled, or its slot was cancelled. */
  | 'CANCELLED'
  /** An organizer checked the user in. */
  | 'CHECKED_IN'
  /** An organizer took the check-in back. */
  | 'CHECK_IN_UNDONE'
  /** A hold was confirmed. */
  | 'CONFIRMED'
  /** A hold expired. */
  | 'EXPIRED'
  /** A hold was extended. */
  | 'EXTENDED'
  /** The user or someone else placed a hold. */
  | 'HELD'
  /** The booking was moved to another slot. */
  | 'MOVED'
  /** An organizer marked the booking as a no-show. */
  | 'NO_SHOW'
  /** An organizer took the no-show back. */
  | 'NO_SHOW_UNDONE'
  /** The waiting list placed a hold for its first user. */
  | 'OFFERED'
  /** The action is one of a newer version, which this server does not know. */
  | 'OTHER'
  /** The waiting list booked a free place for its first user. */
  | 'PROMOTED'
  /** The time, the place or the staff of the slot changed. Only live events have this action. */
  | 'SLOT_EDITED'
  /** The user's waiting list entry ended without a booking. Only live events have this action. */
  | 'WAITLIST_LEFT';

/** Whether a booking occupies a place. */
export type BookingStatus =
  /** The booking was cancelled or moved, or its slot was cancelled. */
  | 'CANCELLED'
  /** The booking occupies a place. */
  | 'CONFIRMED'
  /** The booking was a hold and expired. */
  | 'EXPIRED'
  /** The booking is a hold. It occupies a place until `heldUntil` unless it is confirmed. */
  | 'HELD';

/** The slot to create. */
export type CreateSlotInput = {
  /** How members get places in the slot. It is for the booking queue only, too, if its campaign is. */
  admission?: SlotAdmission;
  /** Whether the slot may lie wholly in the past, as in an import of an old term. Of a series, every slot counts: without it, none may be over. */
  allowPast?: boolean;
  /** The campaign that the slot belongs to. It cannot be changed later. */
  campaignId?: string | number | null | undefined;
  /** How many minutes before the start members can no longer cancel a booking, 0 to 86400. */
  cancelCutoffMinutes?: number;
  /** The number of places, 1 to 1000. */
  capacity?: number;
  /** A name that alternative slots share, at most 100 characters. Each user can have at most one booking in a choice group. It cannot be changed later. */
  choiceGroup?: string | null | undefined;
  /** A text in Markdown, at most 10,000 characters, which is stored as it is. */
  description?: string | null | undefined;
  /** Whether the slot stays hidden until `publishSlot`. */
  draft?: boolean;
  /** When the slot ends, after its start. Required unless there is a timetable. */
  endTime?: string | null | undefined;
  /** How many places a group may have in the slot, in addition to the limits of the campaign. */
  groupLimits?: Array<GroupLimitInput>;
  /** How many minutes a user whose hold ended without a confirmation cannot hold a place in the slot again, 0 to 10080. A booking without a hold is not affected. */
  holdCooldownMinutes?: number;
  /** How long a hold lasts, 1 to 60 minutes. */
  holdMinutes?: number;
  /** A key that makes retries safe, 1 to 255 characters. Repeated requests with the same key and the same arguments take effect once and return the same result. The server remembers a key for at least 24 hours. */
  idempotencyKey?: string | null | undefined;
  /** The kind of event that the slot is for. */
  kind?: SlotKind;
  /** Where the slot takes place, at most 200 characters. */
  location?: string | null | undefined;
  /** The address with https:// at which a meeting on the net takes place, at most 2000 characters. Only organizers see it, and users with a confirmed booking. */
  meetingUrl?: string | null | undefined;
  /** The number of the slot, at most 40 characters, which no other slot of its campaign has; cancelled ones do not count. Several slots of a series get none. */
  number?: string | null | undefined;
  /** The groups that the slot is for, at most 20, of those that may take part in its campaign; empty for all of them. `class:*` is each group whose name begins so. */
  onlyForGroups?: Array<string>;
  /** How many minutes before the start a mail reminds all who have a place, at most 20160; 0 for none, null for the setting of the campaign. */
  reminderMinutes?: number | null | undefined;
  /** The name of an existing resource that the slot occupies, such as a room. Published slots with the same resource cannot overlap. */
  resource?: string | null | undefined;
  /** The resources that the slot occupies, at most 10, instead of `resource`. */
  resourceIds?: Array<string | number> | null | undefined;
  /** When the slot starts. Required unless there is a timetable. */
  startTime?: string | null | undefined;
  /** The time zone in which the slot takes place. */
  timeZone?: string;
  /** The meetings of a course, instead of one start and end. */
  timetable?: TimetableInput | null | undefined;
  /** The title of the slot, 1 to 200 characters. */
  title: string;
  /** How many users can be on the waiting list, 0 to 1000; 0 for no waiting list. */
  waitlistCapacity?: number;
  /** How many minutes a free place is held for the first user on the waiting list, 1 to 10080; null to book it for them immediately. */
  waitlistOfferMinutes?: number | null | undefined;
};

/** The number of places that one group may have in a slot. */
export type GroupLimitInput = {
  /** The name of the group. A trailing star matches every group with that prefix: `class:*` with a limit of 5 allows 5 places for each class. */
  group: string;
  /** How many places the group may have in the slot, at least 1. */
  limit: number;
};

/** The credentials of a user. */
export type LoginInput = {
  /** The e-mail address of the account, or its user name (`User.username`). */
  email: string;
  /** The password of the account. */
  password: string;
};

/** A single meeting. */
export type MeetingInput = {
  /** When the meeting ends. */
  endTime: string;
  /** When the meeting starts. */
  startTime: string;
};

/** Why the server refused a request. The list grows as the schema does. */
export type RefusalCode =
  /** The account to claim has bookings or waits for places: say whether they stay. */
  | 'ACCOUNT_HOLDS_PLACES'
  /** Only admins can change accounts of organizers and admins, and how a user signs in. */
  | 'ADMIN_REQUIRED'
  /** The user already has an active booking of the slot. */
  | 'ALREADY_BOOKED'
  /** The user of the booking is checked in for the meeting. */
  | 'ALREADY_CHECKED_IN'
  /** The invited user is already a member of the team. */
  | 'ALREADY_MEMBER'
  /** The user is already on the waiting list of the slot. */
  | 'ALREADY_WAITING'
  /** The credentials are right, but the account is banned. */
  | 'BANNED'
  /** The booking does not exist, has ended, or is neither for the caller, nor for somebody whose guardian they are, nor made by them. */
  | 'BOOKING_NOT_FOUND'
  /** Too many requests are changing the campaign at once. */
  | 'CAMPAIGN_BUSY'
  /** The campaign is published or has slots, so it cannot be deleted. It can be unpublished, and slots without bookings can be deleted. */
  | 'CAMPAIGN_IN_USE'
  /** The campaign cannot be copied to the new dates. Nothing was created. */
  | 'CAMPAIGN_NOT_COPIED'
  /** The campaign does not exist, or the caller may not see it. */
  | 'CAMPAIGN_NOT_FOUND'
  /** The campaign has more slots or meetings than one request may copy. */
  | 'CAMPAIGN_TOO_LARGE'
  /** Callers cannot ban or unban their own account. */
  | 'CANNOT_BAN_SELF'
  /** Admins cannot erase their own account. */
  | 'CANNOT_ERASE_SELF'
  /** The new capacity is lower than the number of taken places. */
  | 'CAPACITY_BELOW_TAKEN'
  /** It is too early to check in for the slot, or for this meeting of it. */
  | 'CHECK_IN_NOT_OPEN'
  /** At least one claim was refused, so nothing was booked. */
  | 'CLAIMS_REFUSED'
  /** The campaign is closed. */
  | 'CLOSED'
  /** Members can no longer cancel or move the booking. Organizers still can. */
  | 'CUTOFF_PASSED'
  /** A draw opens only after all that follows from the former one is done (`isWritten`). */
  | 'DRAW_ACTIVE'
  /** The campaign does not exist, or has no draw, or none that goes on. */
  | 'DRAW_NOT_FOUND'
  /** Until the result of the draw is published, only organizers book, and nobody waits. */
  | 'DRAW_ONLY'
  /** Slots have fewer free places than when the wishes were closed, or than the draw has given. Organizers free places, or replace the draw by another one, with `supersedeDraw` and a reason. */
  | 'DRAW_OUTDATED'
  /** The campaign or the site is for users with a verified e-mail address. */
  | 'EMAIL_NOT_VERIFIED'
  /** The e-mail address already has an account. */
  | 'EMAIL_TAKEN'
  /** One of the user's groups has all of its places in the slot. */
  | 'GROUP_FULL'
  /** The user had a hold in the slot that ended without a confirmation, so they cannot hold a place there again yet. They can book without a hold. */
  | 'HOLD_COOLDOWN'
  /** The hold expired and its place became free. */
  | 'HOLD_EXPIRED'
  /** The hold cannot be extended any further. */
  | 'HOLD_LIMIT_REACHED'
  /** The list of holidays does not exist. */
  | 'HOLIDAY_LIST_NOT_FOUND'
  /** The text is no check-in code of this server. */
  | 'INVALID_CHECK_IN_CODE'
  /** No account has this e-mail address or user name, and this password. */
  | 'INVALID_CREDENTIALS'
  /** At least one field of the input is invalid. Nothing was changed. */
  | 'INVALID_INPUT'
  /** The token of an invitation or reset is unknown, expired, used or replaced by a newer one. */
  | 'INVALID_INVITATION'
  /** The refresh token is invalid, or its session has ended. The user must sign in again. */
  | 'INVALID_SESSION'
  /** The idempotency key was sent before with other arguments. */
  | 'KEY_REUSED'
  /** The user is the last admin, who can neither lose the role nor be erased. */
  | 'LAST_ADMIN'
  /** Without it, the caller could not sign in any more. */
  | 'LAST_SIGN_IN'
  /** The user has the maximum number of bookings: one for each choice group, or as many as the campaign allows. */
  | 'LIMIT_REACHED'
  /** An account has the e-mail address, and the provider does not prove that it is the user's. Sign in with its password, start a sign-in again, and finish it with `linkSignIn`. */
  | 'LINK_REQUIRED'
  /** Another request is using the slot right now. */
  | 'LOCKED'
  /** Every slot of the series has started, was cancelled or is a draft. */
  | 'NOTHING_TO_BOOK'
  /** The booking is a hold, or it was cancelled, moved or has expired. */
  | 'NOT_CONFIRMED'
  /** The campaign or the slot is for users of other groups. */
  | 'NOT_ELIGIBLE'
  /** The booking is confirmed and does not expire. */
  | 'NOT_HELD'
  /** The invitation does not exist or is no longer open. */
  | 'NOT_INVITED'
  /** The account is not `selfRegistered`, or no longer: only such an account can be claimed. */
  | 'NOT_SELF_REGISTERED'
  /** Members book for themselves, as guardians, for their teams, and as leaders for the groups of the campaign. */
  | 'NOT_TEAMMATE'
  /** The user is not on the waiting list of the slot. */
  | 'NOT_WAITING'
  /** The campaign has not opened yet. */
  | 'NOT_YET_OPEN'
  /** Members sign in at a provider only (`Site.signInProviders`). */
  | 'PASSWORD_SIGN_IN_OFF'
  /** The provider did not respond, or not as a provider: start the sign-in again later. */
  | 'PROVIDER_UNAVAILABLE'
  /** The booking queue of the slot is full. */
  | 'QUEUE_FULL'
  /** Members get places in the slot through the booking queue only: use `requestBooking`. */
  | 'QUEUE_ONLY'
  /** The caller has to prove again who they are: a session alone is not enough. A user with a password sends it. For another one, the session must be at most ten minutes old, and a sign-in at a provider must have opened it. */
  | 'REAUTHENTICATION_REQUIRED'
  /** Nobody can register on this server (`register`), or even set a first password with an invitation (`setPassword`). */
  | 'REGISTRATION_CLOSED'
  /** Slots that are not over use the resource, so it cannot be deleted. */
  | 'RESOURCE_IN_USE'
  /** The resource does not exist. */
  | 'RESOURCE_NOT_FOUND'
  /** Another published slot uses the resource at the same time. */
  | 'RESOURCE_TAKEN'
  /** The seed was public before the root, so that somebody could have chosen wishes by it. This draw can never run. Organizers replace it, with `supersedeDraw` and a reason. */
  | 'ROOT_TOO_LATE'
  /** The seed is drawn from what becomes public at `seedAt`, and nobody draws before. */
  | 'SEED_TOO_EARLY'
  /** Somebody registered the account, and nobody has vouched for the user or claimed it. */
  | 'SELF_REGISTERED'
  /** The resource is taken on some dates of the series. Nothing was created. */
  | 'SERIES_CONFLICTS'
  /** The series does not exist, or the caller may see none of its slots. */
  | 'SERIES_NOT_FOUND'
  /** The series has more slots to book than one request may book. `bookSlots` can book a part of them. */
  | 'SERIES_TOO_LONG'
  /** More users sign in or set passwords than the server can serve in time. Nothing was set. */
  | 'SERVER_BUSY'
  /** The caller has no session of this id. */
  | 'SESSION_NOT_FOUND'
  /** The sign-in has expired, was finished before, or is not valid: start it again. The log of the server says why. */
  | 'SIGN_IN_FAILED'
  /** Another account has this sign-in: the user must unlink it there first. */
  | 'SIGN_IN_TAKEN'
  /** Users have booked some of the slots or have waited for them, now or earlier. Nothing was removed. */
  | 'SLOTS_HAVE_BOOKINGS'
  /** An organizer cancelled the slot. */
  | 'SLOT_CANCELLED'
  /** The slot has no free place. */
  | 'SLOT_FULL'
  /** A user has booked the slot or has waited for it, now or earlier, so it cannot be deleted. A published slot can be cancelled. */
  | 'SLOT_HAS_BOOKINGS'
  /** The slot does not exist, or the caller may not see it. Nobody can book a draft, and only an organizer can book a slot of an unpublished campaign, for another user. */
  | 'SLOT_NOT_FOUND'
  /** The slot has a free place, so there is no need to wait. */
  | 'SLOT_NOT_FULL'
  /** The slot is a draft, so it cannot be cancelled. Drafts can be deleted. */
  | 'SLOT_NOT_PUBLISHED'
  /** The slot or this meeting of it has not started, so nobody has missed it. */
  | 'SLOT_NOT_STARTED'
  /** The slot has started, so its bookings can no longer change. */
  | 'SLOT_STARTED'
  /** Too many requests are changing the team at once. */
  | 'TEAM_BUSY'
  /** The team has the maximum number of members and open invitations. */
  | 'TEAM_FULL'
  /** The team does not exist, or the caller is not a member. */
  | 'TEAM_NOT_FOUND'
  /** The caller has no such ticket, or it is older than 24 hours. */
  | 'TICKET_NOT_FOUND'
  /** The request cannot be cancelled: it has an outcome, or the queue lost it. */
  | 'TICKET_NOT_QUEUED'
  /** A meeting of the slot overlaps another booking of the user. */
  | 'TIME_CONFLICT'
  /** The user, or all users together, sent too many announcements within an hour. */
  | 'TOO_MANY_ANNOUNCEMENTS'
  /** Too many sign-in attempts, codes or links by mail: for this account, or from this address. */
  | 'TOO_MANY_ATTEMPTS'
  /** The e-mail address has the maximum number of open invitations. */
  | 'TOO_MANY_INVITATIONS'
  /** The user missed as many bookings of the campaign as it allows, and books nothing in it for some days. */
  | 'TOO_MANY_NO_SHOWS'
  /** The caller is a member of the maximum number of teams. */
  | 'TOO_MANY_TEAMS'
  /** The user is banned. Nobody can book, confirm, extend or move a place for them. */
  | 'USER_BANNED'
  /** The user does not exist. */
  | 'USER_NOT_FOUND'
  /** The waiting list is full, or the slot has none. */
  | 'WAITLIST_FULL'
  /** The webhook does not exist, or not any more, or the delivery does not. */
  | 'WEBHOOK_NOT_FOUND'
  /** The act is not possible in the state of the draw. */
  | 'WRONG_DRAW_STATE'
  /** The booking is for another slot than the one that the request names. */
  | 'WRONG_SLOT';

/** The account to create. */
export type RegisterInput = {
  /** The e-mail address to sign in with. */
  email: string;
  /** The name of the user, 1 to 100 characters. Organizers and team members see it. */
  name: string;
  /** The new password, 8 to 128 characters. It must not be common, a simple pattern, or contain the name, the e-mail address or the user name of the user. */
  password: string;
};

/** How members get places. Organizers can always book. */
export type SlotAdmission =
  /** Members book with `bookSlot` or through the booking queue, with `requestBooking`. */
  | 'ANY'
  /** Members enter wishes, and places are drawn by lot. Until then only organizers book. */
  | 'DRAW'
  /** Members get places through the booking queue only, and from the waiting list. */
  | 'QUEUE_ONLY';

/** The kind of event that a slot is for. */
export type SlotKind =
  /** A course or a class. */
  | 'COURSE'
  /** A meeting. */
  | 'MEETING'
  /** Something else. */
  | 'OTHER';

/** Whether a slot is visible and can be booked. */
export type SlotStatus =
  /** The slot was cancelled with all its bookings. Nobody can book it. */
  | 'CANCELLED'
  /** Only organizers see the slot. Nobody can book it. */
  | 'DRAFT'
  /** Everyone sees the slot, unless its campaign is unpublished. */
  | 'PUBLISHED';

/** The progress of a ticket. */
export type TicketStatus =
  /** The request was processed and `outcome` is final. */
  | 'ANSWERED'
  /** The user cancelled the request before it was processed. Nothing was booked, and nothing will be. */
  | 'CANCELLED'
  /** The request could not be processed. Operators can return it to the queue. */
  | 'FAILED'
  /** The queue lost the request before it was processed. Nothing was booked; the user may request the booking again with the same key or another one. */
  | 'LOST'
  /** The request waits in the queue. */
  | 'QUEUED';

/** The meetings of a course, at most 500. Weekly meetings keep their local time when the clocks change. */
export type TimetableInput = {
  /** Additional meetings. */
  extra?: Array<MeetingInput>;
  /** The first day of the course. */
  first: string;
  /** A list of holidays whose days are skipped, too, in the time zone of the slot. A later change of the list does not change slots. */
  holidayListId?: string | number | null | undefined;
  /** Days on which no weekly meeting starts. */
  holidays?: Array<string>;
  /** The last day of the course, at most two years after the first. */
  last: string;
  /** The meetings that take place every week. */
  weekly?: Array<WeeklyInput>;
};

/** A day of the week. */
export type Weekday =
  /** Friday. */
  | 'FRIDAY'
  /** Monday. */
  | 'MONDAY'
  /** Saturday. */
  | 'SATURDAY'
  /** Sunday. */
  | 'SUNDAY'
  /** Thursday. */
  | 'THURSDAY'
  /** Tuesday. */
  | 'TUESDAY'
  /** Wednesday. */
  | 'WEDNESDAY';

/** A meeting that takes place every week. */
export type WeeklyInput = {
  /** When the meeting ends, in the slot's time zone. A time before the start is on the next day. */
  endTime: string;
  /** When the meeting starts, in the slot's time zone. */
  startTime: string;
  /** The day of the week on which the meeting starts. */
  weekday: Weekday;
};

export type RegisterMutationVariables = Exact<{
  input: RegisterInput;
}>;


export type RegisterMutation = { register:
    | { __typename: 'EmailTaken', code: RefusalCode, message: string }
    | { __typename: 'InvalidInput', code: RefusalCode, message: string }
    | { __typename: 'RegistrationClosed', code: RefusalCode, message: string }
    | { __typename: 'ServerBusy', code: RefusalCode, message: string }
    | { __typename: 'Session', accessToken: string, refreshToken: string }
    | { __typename: 'TooManyAttempts', code: RefusalCode, message: string }
   };

export type LoginMutationVariables = Exact<{
  input: LoginInput;
}>;


export type LoginMutation = { login:
    | { __typename: 'Banned', code: RefusalCode, message: string }
    | { __typename: 'InvalidCredentials', code: RefusalCode, message: string }
    | { __typename: 'PasswordSignInOff', code: RefusalCode, message: string }
    | { __typename: 'ServerBusy', code: RefusalCode, message: string }
    | { __typename: 'Session', accessToken: string, refreshToken: string }
    | { __typename: 'TooManyAttempts', code: RefusalCode, message: string }
   };

export type RefreshSessionMutationVariables = Exact<{
  refreshToken: string;
}>;


export type RefreshSessionMutation = { refreshSession:
    | { __typename: 'InvalidSession', code: RefusalCode, message: string }
    | { __typename: 'Session', accessToken: string, refreshToken: string }
   };

export type ListSlotsQueryVariables = Exact<{
  text: string;
  after?: string | null | undefined;
}>;


export type ListSlotsQuery = { slots: { nodes: Array<{ id: string, title: string, startTime: string, timeZone: string, remaining: number, version: number }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } } };

export type WatchSlotsSubscriptionVariables = Exact<{
  slotIds: Array<string | number> | string | number;
}>;


export type WatchSlotsSubscription = { slotAvailability: { slotId: string, version: number, remaining: number, status: SlotStatus } };

export type BookMutationVariables = Exact<{
  input: BookSlotInput;
}>;


export type BookMutation = { bookSlot:
    | { __typename: 'AlreadyBooked', code: RefusalCode, message: string }
    | { __typename: 'Booked', booking: { id: string, status: BookingStatus, heldUntil: string | null }, slot: { version: number } }
    | { __typename: 'Closed', code: RefusalCode, message: string }
    | { __typename: 'DrawOnly', code: RefusalCode, message: string }
    | { __typename: 'EmailNotVerified', code: RefusalCode, message: string }
    | { __typename: 'GroupFull', code: RefusalCode, message: string }
    | { __typename: 'HoldCooldown', code: RefusalCode, message: string }
    | { __typename: 'KeyReused', code: RefusalCode, message: string }
    | { __typename: 'LimitReached', code: RefusalCode, message: string }
    | { __typename: 'Locked', retryAfterMs: number, code: RefusalCode, message: string }
    | { __typename: 'NotEligible', code: RefusalCode, message: string }
    | { __typename: 'NotTeammate', code: RefusalCode, message: string }
    | { __typename: 'NotYetOpen', code: RefusalCode, message: string }
    | { __typename: 'QueueOnly', code: RefusalCode, message: string }
    | { __typename: 'SlotCancelled', code: RefusalCode, message: string }
    | { __typename: 'SlotFull', code: RefusalCode, message: string }
    | { __typename: 'SlotNotFound', code: RefusalCode, message: string }
    | { __typename: 'SlotStarted', code: RefusalCode, message: string }
    | { __typename: 'TimeConflict', code: RefusalCode, message: string }
    | { __typename: 'TooManyNoShows', code: RefusalCode, message: string }
    | { __typename: 'UserBanned', code: RefusalCode, message: string }
    | { __typename: 'UserNotFound', code: RefusalCode, message: string }
   };

export type ConfirmMutationVariables = Exact<{
  bookingId: string | number;
  key: string;
}>;


export type ConfirmMutation = { confirmBooking:
    | { __typename: 'BookingConfirmed', booking: { id: string, status: BookingStatus } }
    | { __typename: 'BookingNotFound', code: RefusalCode, message: string }
    | { __typename: 'HoldExpired', code: RefusalCode, message: string }
    | { __typename: 'KeyReused', code: RefusalCode, message: string }
    | { __typename: 'LimitReached', code: RefusalCode, message: string }
    | { __typename: 'Locked', retryAfterMs: number, code: RefusalCode, message: string }
    | { __typename: 'SlotCancelled', code: RefusalCode, message: string }
    | { __typename: 'TimeConflict', code: RefusalCode, message: string }
    | { __typename: 'UserBanned', code: RefusalCode, message: string }
   };

export type CancelMutationVariables = Exact<{
  bookingId: string | number;
  key: string;
}>;


export type CancelMutation = { cancelBooking:
    | { __typename: 'BookingCancelled', booking: { id: string, status: BookingStatus } }
    | { __typename: 'BookingNotFound', code: RefusalCode, message: string }
    | { __typename: 'CutoffPassed', code: RefusalCode, message: string }
    | { __typename: 'HoldExpired', code: RefusalCode, message: string }
    | { __typename: 'KeyReused', code: RefusalCode, message: string }
    | { __typename: 'Locked', retryAfterMs: number, code: RefusalCode, message: string }
    | { __typename: 'SlotStarted', code: RefusalCode, message: string }
   };

export type JoinWaitlistMutationVariables = Exact<{
  slotId: string | number;
}>;


export type JoinWaitlistMutation = { joinWaitlist:
    | { __typename: 'AlreadyBooked', code: RefusalCode, message: string }
    | { __typename: 'AlreadyWaiting', code: RefusalCode, message: string }
    | { __typename: 'Closed', code: RefusalCode, message: string }
    | { __typename: 'DrawOnly', code: RefusalCode, message: string }
    | { __typename: 'EmailNotVerified', code: RefusalCode, message: string }
    | { __typename: 'GroupFull', code: RefusalCode, message: string }
    | { __typename: 'LimitReached', code: RefusalCode, message: string }
    | { __typename: 'Locked', retryAfterMs: number, code: RefusalCode, message: string }
    | { __typename: 'NotEligible', code: RefusalCode, message: string }
    | { __typename: 'NotYetOpen', code: RefusalCode, message: string }
    | { __typename: 'SlotCancelled', code: RefusalCode, message: string }
    | { __typename: 'SlotNotFound', code: RefusalCode, message: string }
    | { __typename: 'SlotNotFull', code: RefusalCode, message: string }
    | { __typename: 'SlotStarted', code: RefusalCode, message: string }
    | { __typename: 'TimeConflict', code: RefusalCode, message: string }
    | { __typename: 'TooManyNoShows', code: RefusalCode, message: string }
    | { __typename: 'UserBanned', code: RefusalCode, message: string }
    | { __typename: 'UserNotFound', code: RefusalCode, message: string }
    | { __typename: 'WaitlistFull', code: RefusalCode, message: string }
    | { __typename: 'WaitlistJoined', position: number }
   };

export type MyPlaceQueryVariables = Exact<{
  slotId: string | number;
}>;


export type MyPlaceQuery = { slot: { myBooking: { id: string, status: BookingStatus, heldUntil: string | null } | null, myWaitlistEntry: { position: number | null } | null } | null };

export type FollowMyBookingsSubscriptionVariables = Exact<{ [key: string]: never; }>;


export type FollowMyBookingsSubscription = { myBookings: { action: BookingAction, booking: { id: string, status: BookingStatus, heldUntil: string | null, slot: { title: string } } } };

export type RequestTicketMutationVariables = Exact<{
  input: BookSlotInput;
}>;


export type RequestTicketMutation = { requestBooking:
    | { __typename: 'AlreadyBooked', code: RefusalCode, message: string }
    | { __typename: 'Closed', code: RefusalCode, message: string }
    | { __typename: 'DrawOnly', code: RefusalCode, message: string }
    | { __typename: 'EmailNotVerified', code: RefusalCode, message: string }
    | { __typename: 'GroupFull', code: RefusalCode, message: string }
    | { __typename: 'HoldCooldown', code: RefusalCode, message: string }
    | { __typename: 'KeyReused', code: RefusalCode, message: string }
    | { __typename: 'LimitReached', code: RefusalCode, message: string }
    | { __typename: 'NotEligible', code: RefusalCode, message: string }
    | { __typename: 'NotTeammate', code: RefusalCode, message: string }
    | { __typename: 'NotYetOpen', code: RefusalCode, message: string }
    | { __typename: 'QueueFull', retryAfterMs: number, code: RefusalCode, message: string }
    | { __typename: 'QueueOnly', code: RefusalCode, message: string }
    | { __typename: 'SlotCancelled', code: RefusalCode, message: string }
    | { __typename: 'SlotFull', code: RefusalCode, message: string }
    | { __typename: 'SlotNotFound', code: RefusalCode, message: string }
    | { __typename: 'SlotStarted', code: RefusalCode, message: string }
    | { __typename: 'Ticket', id: string, status: TicketStatus, position: number | null }
    | { __typename: 'TimeConflict', code: RefusalCode, message: string }
    | { __typename: 'TooManyNoShows', code: RefusalCode, message: string }
    | { __typename: 'UserBanned', code: RefusalCode, message: string }
    | { __typename: 'UserNotFound', code: RefusalCode, message: string }
   };

export type FollowTicketSubscriptionVariables = Exact<{
  id: string | number;
}>;


export type FollowTicketSubscription = { ticket: { status: TicketStatus, position: number | null, outcome:
      | { __typename: 'AlreadyBooked', code: RefusalCode, message: string }
      | { __typename: 'Booked', booking: { id: string, status: BookingStatus, heldUntil: string | null }, slot: { version: number } }
      | { __typename: 'Closed', code: RefusalCode, message: string }
      | { __typename: 'DrawOnly', code: RefusalCode, message: string }
      | { __typename: 'EmailNotVerified', code: RefusalCode, message: string }
      | { __typename: 'GroupFull', code: RefusalCode, message: string }
      | { __typename: 'HoldCooldown', code: RefusalCode, message: string }
      | { __typename: 'KeyReused', code: RefusalCode, message: string }
      | { __typename: 'LimitReached', code: RefusalCode, message: string }
      | { __typename: 'Locked', code: RefusalCode, message: string }
      | { __typename: 'NotEligible', code: RefusalCode, message: string }
      | { __typename: 'NotTeammate', code: RefusalCode, message: string }
      | { __typename: 'NotYetOpen', code: RefusalCode, message: string }
      | { __typename: 'QueueOnly', code: RefusalCode, message: string }
      | { __typename: 'SlotCancelled', code: RefusalCode, message: string }
      | { __typename: 'SlotFull', code: RefusalCode, message: string }
      | { __typename: 'SlotNotFound', code: RefusalCode, message: string }
      | { __typename: 'SlotStarted', code: RefusalCode, message: string }
      | { __typename: 'TimeConflict', code: RefusalCode, message: string }
      | { __typename: 'TooManyNoShows', code: RefusalCode, message: string }
      | { __typename: 'UserBanned', code: RefusalCode, message: string }
      | { __typename: 'UserNotFound', code: RefusalCode, message: string }
     | null } };

export type CreateSlotMutationVariables = Exact<{
  input: CreateSlotInput;
}>;


export type CreateSlotMutation = { createSlot:
    | { __typename: 'CampaignNotFound', code: RefusalCode, message: string }
    | { __typename: 'InvalidInput', code: RefusalCode, message: string }
    | { __typename: 'KeyReused', code: RefusalCode, message: string }
    | { __typename: 'Locked', code: RefusalCode, message: string }
    | { __typename: 'ResourceTaken', code: RefusalCode, message: string }
    | { __typename: 'Slot', id: string }
   };

export type CancelSlotMutationVariables = Exact<{
  slotId: string | number;
}>;


export type CancelSlotMutation = { cancelSlot:
    | { __typename: 'CapacityBelowTaken', code: RefusalCode, message: string }
    | { __typename: 'InvalidInput', code: RefusalCode, message: string }
    | { __typename: 'Locked', code: RefusalCode, message: string }
    | { __typename: 'ResourceTaken', code: RefusalCode, message: string }
    | { __typename: 'Slot' }
    | { __typename: 'SlotCancelled', code: RefusalCode, message: string }
    | { __typename: 'SlotNotFound', code: RefusalCode, message: string }
    | { __typename: 'SlotNotPublished', code: RefusalCode, message: string }
   };


export const RegisterDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"Register"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"RegisterInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"register"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Session"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"accessToken"}},{"kind":"Field","name":{"kind":"Name","value":"refreshToken"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<RegisterMutation, RegisterMutationVariables>;
export const LoginDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"Login"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"LoginInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"login"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Session"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"accessToken"}},{"kind":"Field","name":{"kind":"Name","value":"refreshToken"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<LoginMutation, LoginMutationVariables>;
export const RefreshSessionDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"RefreshSession"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"refreshToken"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"refreshSession"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"refreshToken"},"value":{"kind":"Variable","name":{"kind":"Name","value":"refreshToken"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Session"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"accessToken"}},{"kind":"Field","name":{"kind":"Name","value":"refreshToken"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<RefreshSessionMutation, RefreshSessionMutationVariables>;
export const ListSlotsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ListSlots"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"text"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"after"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"slots"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"filter"},"value":{"kind":"ObjectValue","fields":[{"kind":"ObjectField","name":{"kind":"Name","value":"text"},"value":{"kind":"Variable","name":{"kind":"Name","value":"text"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"onlyWithPlacesLeft"},"value":{"kind":"BooleanValue","value":true}}]}},{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"IntValue","value":"20"}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"after"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"title"}},{"kind":"Field","name":{"kind":"Name","value":"startTime"}},{"kind":"Field","name":{"kind":"Name","value":"timeZone"}},{"kind":"Field","name":{"kind":"Name","value":"remaining"}},{"kind":"Field","name":{"kind":"Name","value":"version"}}]}},{"kind":"Field","name":{"kind":"Name","value":"pageInfo"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"endCursor"}},{"kind":"Field","name":{"kind":"Name","value":"hasNextPage"}}]}}]}}]}}]} as unknown as DocumentNode<ListSlotsQuery, ListSlotsQueryVariables>;
export const WatchSlotsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"subscription","name":{"kind":"Name","value":"WatchSlots"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"slotIds"}},"type":{"kind":"NonNullType","type":{"kind":"ListType","type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"slotAvailability"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"slotIds"},"value":{"kind":"Variable","name":{"kind":"Name","value":"slotIds"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"slotId"}},{"kind":"Field","name":{"kind":"Name","value":"version"}},{"kind":"Field","name":{"kind":"Name","value":"remaining"}},{"kind":"Field","name":{"kind":"Name","value":"status"}}]}}]}}]} as unknown as DocumentNode<WatchSlotsSubscription, WatchSlotsSubscriptionVariables>;
export const BookDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"Book"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"BookSlotInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"bookSlot"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Booked"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"booking"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"heldUntil"}}]}},{"kind":"Field","name":{"kind":"Name","value":"slot"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"version"}}]}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Locked"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterMs"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<BookMutation, BookMutationVariables>;
export const ConfirmDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"Confirm"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"bookingId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"key"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"confirmBooking"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"bookingId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"bookingId"}}},{"kind":"Argument","name":{"kind":"Name","value":"idempotencyKey"},"value":{"kind":"Variable","name":{"kind":"Name","value":"key"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"BookingConfirmed"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"booking"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"status"}}]}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Locked"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterMs"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<ConfirmMutation, ConfirmMutationVariables>;
export const CancelDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"Cancel"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"bookingId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"key"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cancelBooking"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"bookingId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"bookingId"}}},{"kind":"Argument","name":{"kind":"Name","value":"idempotencyKey"},"value":{"kind":"Variable","name":{"kind":"Name","value":"key"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"BookingCancelled"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"booking"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"status"}}]}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Locked"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterMs"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<CancelMutation, CancelMutationVariables>;
export const JoinWaitlistDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"JoinWaitlist"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"slotId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"joinWaitlist"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"slotId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"slotId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"WaitlistJoined"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"position"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Locked"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterMs"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<JoinWaitlistMutation, JoinWaitlistMutationVariables>;
export const MyPlaceDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"MyPlace"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"slotId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"slot"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"id"},"value":{"kind":"Variable","name":{"kind":"Name","value":"slotId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"myBooking"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"heldUntil"}}]}},{"kind":"Field","name":{"kind":"Name","value":"myWaitlistEntry"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"position"}}]}}]}}]}}]} as unknown as DocumentNode<MyPlaceQuery, MyPlaceQueryVariables>;
export const FollowMyBookingsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"subscription","name":{"kind":"Name","value":"FollowMyBookings"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"myBookings"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"action"}},{"kind":"Field","name":{"kind":"Name","value":"booking"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"heldUntil"}},{"kind":"Field","name":{"kind":"Name","value":"slot"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"title"}}]}}]}}]}}]}}]} as unknown as DocumentNode<FollowMyBookingsSubscription, FollowMyBookingsSubscriptionVariables>;
export const RequestTicketDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"RequestTicket"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"BookSlotInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"requestBooking"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Ticket"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"position"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"QueueFull"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"retryAfterMs"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<RequestTicketMutation, RequestTicketMutationVariables>;
export const FollowTicketDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"subscription","name":{"kind":"Name","value":"FollowTicket"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"ticket"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"id"},"value":{"kind":"Variable","name":{"kind":"Name","value":"id"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"position"}},{"kind":"Field","name":{"kind":"Name","value":"outcome"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Booked"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"booking"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"heldUntil"}}]}},{"kind":"Field","name":{"kind":"Name","value":"slot"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"version"}}]}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]}}]} as unknown as DocumentNode<FollowTicketSubscription, FollowTicketSubscriptionVariables>;
export const CreateSlotDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"CreateSlot"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"CreateSlotInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"createSlot"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Slot"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}}]}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<CreateSlotMutation, CreateSlotMutationVariables>;
export const CancelSlotDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"CancelSlot"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"slotId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cancelSlot"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"slotId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"slotId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"__typename"}},{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}}]} as unknown as DocumentNode<CancelSlotMutation, CancelSlotMutationVariables>;