"""The problems that a value of a field can have, each declared once with its code and its text."""

from collections.abc import Mapping
from enum import Enum


class ProblemCode(Enum):
    """Why the value of a field is invalid.

    The value of a member is the problem as a sentence in English, with the names of its values.
    """

    # Texts and numbers
    NAME_MISSING = "Please enter a name."
    TITLE_MISSING = "A slot needs a title."
    NAME_TAKEN = "This name is used already."
    NUMBER_TAKEN = "Another slot of the campaign has this number."
    NUMBER_OF_ONE_SLOT = "A number is for one slot, not for several of a series."
    TOO_LONG = "Please use at most {maximum} characters."
    CONTROL_CHARACTERS = "Control characters are not allowed."
    NOT_ONE_LINE = "Line breaks and control characters are not allowed."
    NOT_IN_RANGE = "Please enter a number from {minimum} to {maximum}."
    YEAR_NOT_IN_RANGE = "The year must be between {minimum} and {maximum}."
    UNKNOWN_TIME_ZONE = "Please use an IANA time zone, such as Europe/Berlin."

    INVALID_COLOR = "Please enter a color like #2a3bb7."
    NOT_AN_IMAGE = "Please choose a PNG, JPEG or WebP image."
    IMAGE_TOO_LARGE = "Please choose an image of at most {maximum} kB."

    # Accounts
    INVALID_EMAIL = "This is not an email address."
    INVALID_USERNAME = "A user name has 1 to {maximum} characters, without spaces and @."
    INVALID_LOGIN_NAME = "This is neither an email address nor a user name without spaces."
    LOGIN_NAME_MISSING = "Please enter an email address or a user name."
    TWO_LOGIN_NAMES = "An account has an email address or a user name, not both."
    USERNAME_TAKEN = "This user name already has an account."
    PASSWORD_LENGTH = "The password must have {minimum} to {maximum} characters."
    PASSWORD_TOO_COMMON = (
        "This password is too easy to guess. Please use another one, such as several words."
    )
    PASSWORD_CONTAINS_NAME = (
        "The password must not contain the name, the email address or the user name, or 'slotlock'."
    )
    INVALID_LANGUAGE = "This is not a language tag such as de or en-GB."
    INVALID_PHONE = (
        "A telephone number has digits, spaces and + ( ) / . - only: at least 3 digits and at most "
        "{maximum} characters."
    )
    GUARDIAN_IS_DEPENDENT = "A user with guardians, such as {name}, cannot be one."
    HAS_DEPENDENTS = "This user is the guardian of others, so that nobody can be their guardian."
    TOO_MANY_GUARDIANS = "A user has at most {maximum} guardians."
    TOO_MANY_DEPENDENTS = "A guardian acts for at most {maximum} users, and {name} does so already."
    DEPENDENT_NOT_MEMBER = "Only members can have guardians."
    DEPENDENT_EXISTS = "These guardians already act for {name}."
    USER_IS_BANNED = "The user is banned."
    HAS_PASSWORD = "The user has a password already."
    SIGNS_IN_AT_PROVIDER = "The user signs in at a provider."
    OWN_PASSWORD = "Change your own password instead."
    OWN_LOGIN_NAME = "Change your own address in your account, with your password."
    EMAIL_VERIFIED = "Your address is verified."
    EMAIL_UNCHANGED = "This is your address already."
    EMAIL_CHANGED = "Your address changed meanwhile. Please try again."
    CODE_EXPIRED = "This code is not valid any more. Please request a new one."
    HAS_USERNAME = "Your account has a user name. Please ask an organizer."
    NO_MAIL = "This server sends no mail. Please ask an organizer."
    UNKNOWN_PROVIDER = "This server has no such provider."
    UNKNOWN_REDIRECT = "Users may not return to this address."
    INVALID_CHALLENGE = "This is not a SHA-256 in Base64 for URLs, without padding."
    RECENTLY_MAILED = "The user got an invitation by mail within the last day."

    # Groups and campaigns
    TOO_MANY_GROUPS = "At most {maximum} groups are possible."
    GROUP_BLANK = "The name of a group cannot be blank."
    GROUP_SEPARATOR = "The name of a group cannot contain a comma, a semicolon or a star (*)."
    TOO_MANY_GROUP_SETS = "A campaign can have at most {maximum} sets of groups."
    GROUP_SET_SIZE = "A set must have 1 to {maximum} groups."
    TOO_MANY_LIMITS = "Please use at most {maximum} limits."
    TWO_LIMITS = "A group can have only one limit."
    LIMIT_NOT_IN_RANGE = "A limit must be from {minimum} to {maximum}."
    CLOSES_BEFORE_OPENING = "The campaign must close after it opens."
    CLOSES_IN_PAST = "The campaign would close in the past, at {time}."

    # Slots and their meetings
    END_BEFORE_START = "The end must be after the start."
    IN_PAST = "The slot at {time} lies in the past."
    DATE_TOO_LATE = "This date is too late."
    TOO_MANY_RESOURCES = "A slot has at most {maximum} resources."
    GROUPS_NOT_RECORDED = "Groups were not recorded for the existing bookings and waitlist entries."
    TIMES_OR_TIMETABLE = "Please enter either a start and an end, or a timetable."
    TIMES_OF_TIMETABLE = "The times of a course are those of its timetable."
    MEETING_COUNT = "A slot needs 1 to {maximum} meetings."
    MEETING_REVERSED = "The meeting at {time} must end after it starts."
    MEETINGS_UNSORTED = "Please sort the meetings by start: the one at {time} comes too late."
    MEETINGS_OVERLAP = "The meetings at {time} and {other} overlap."
    MEETING_TOO_SHORT = "The meeting at {time} is too short to be shortened this much."
    UNKNOWN_MEETING = "The slot has no meeting that starts at this time."
    LAST_BEFORE_FIRST = "The last date must not be before the first date."
    RANGE_TOO_LONG = "The last date must be at most two years after the first date."
    TOO_MANY_WEEKLY = "A timetable can have at most {maximum} meetings per week."
    WEEKLY_WITHOUT_TIME = "A weekly meeting cannot start and end at the same time."
    EXTRA_REVERSED = "An extra meeting must end after it starts."

    # Series
    MEETING_TOO_LONG = "The end must be at most one year after the start."
    UNTIL_BEFORE_START = "UNTIL must not be before the start."
    UNTIL_TOO_LATE = "UNTIL must be at most five years after the start."
    RULE_WITHOUT_TIMES = "The rule matches no time within five years of the start."
    RULE_TOO_MANY = "A series can have at most {maximum} meetings."
    RULE_TOO_FEW = "Only {found} of {wanted} meetings are within five years of the start."
    INVALID_RULE = "This recurrence rule is invalid ({detail})."
    ALL_ARE_HOLIDAYS = "The holidays exclude every meeting of the series."
    SERIES_NEEDS_TIMES = "The first slot of a series has a start and an end."
    TIMETABLE_OF_SEVERAL = "A timetable is for one slot of a series, not for several."
    SLOT_HAS_TIMETABLE = "The slot at {time} has a timetable, so times change one by one."
    START_COUNT = "Please enter 1 to {maximum} times."
    ALL_HAVE_TIMETABLES = "Each slot of the series has a timetable, so none can be copied."
    SERIES_TOO_LONG = "A series can have at most {maximum} slots; it has {found}."
    SERIES_TOO_WIDE = "All dates of a series must be within five years."
    SLOT_COUNT = "Please name 1 to {maximum} slots."

    # Resources and holidays
    UNKNOWN_RESOURCE = "There is no resource with the name '{name}'."
    SIMILAR_RESOURCE = "There is no resource with the name '{name}'. Did you mean '{similar}'?"
    RESOURCE_USED = "The slot '{slot}' uses {name} at {time}."
    RESOURCE_DELETED = "The nearest slot uses '{name}', which is no resource any more."
    UNKNOWN_RESOURCE_ID = "There is no such resource."
    LEADER_NOT_STAFF = "Only a member of the staff can have a leader."
    NAMES_OR_IDS = "Please give the resources either by name or by id."
    HOLIDAY_COUNT = "A list has 1 to {maximum} holidays."
    HOLIDAY_REVERSED = "A holiday cannot end before it begins."
    HOLIDAY_TOO_LONG = "A holiday lasts at most a year."
    UNKNOWN_HOLIDAY_LIST = "This list of holidays does not exist."
    PERIOD_COUNT = "A school can have at most {maximum} periods."
    PERIOD_REVERSED = "A period must end after it starts, on the same day."
    PERIOD_TWICE = "Another period has this name on the same weekday."
    FILE_TOO_LONG = "The file has more than {maximum} characters."
    FILE_HAS_REPEATS = "The file has repeated events: please enter their dates."
    INVALID_CALENDAR = "This is not a valid iCalendar file."

    # Mails and webhooks
    SUBJECT_MISSING = "Please enter a subject."
    TEXT_MISSING = "Please enter a text."
    NOT_SENT_AGAIN = "It cannot be sent again: it was sent, or had a secret that was deleted."
    INVALID_URL = "This is not a URL."
    NOT_HTTPS = "Please enter a URL that begins with https://."
    URL_WITH_SECRETS = "The URL must have no user name, no password and no fragment."
    EVENTS_MISSING = "Please choose at least one event."
    EVENTS_OF_USERS = "Events about users belong to no campaign."
    TOO_MANY_WEBHOOKS = "There are {maximum} webhooks already. Please delete one of them first."
    TOO_MANY_SECRETS = (
        "The webhook has {maximum} secrets already. Please wait: each ends a day after it was "
        "replaced."
    )
    CAMPAIGN_MISSING = "Please choose a campaign. Only admins create webhooks without one."
    UNKNOWN_CAMPAIGN = "This campaign does not exist."

    # Draws
    TOO_MANY_WISHES = "Please rank at most {maximum} slots."
    WISHED_TWICE = "Each slot can be ranked once."
    NOT_IN_CAMPAIGN = "A slot is not in this campaign, or is over."
    NOT_IN_TEAM = "You are not in a team with this id."
    DRAW_OWNS_ADMISSION = "Opening a draw, or calling it off, changes this."
    NO_CLOSED_DRAW = "The campaign has no such draw with closed wishes."
    SEED_BEFORE_ROOT = "The seed must become public {minutes} minutes after the wishes or later."
    SEED_OF_SERVER = "No source was announced: the server made the seed when the draw opened."
    WISHES_ELSEWHERE = "A member has wishes alone or with another team, which must go first."
    WISHES_CHANGED = "The wishes have changed meanwhile. Please read them again."
    TIME_PASSED = "This time has passed."
    AFTER_CLOSING = "The campaign closes before this time."

    def problem(self, **values: str | int) -> "Problem":
        """Return the problem with the values that its text contains."""
        return Problem(self, values)


class Problem(str):
    """A problem as a sentence in English, with its code and the values in it for other languages.

    `about` is the part of the field that has it, such as one name of several; empty for the whole.
    """

    __slots__ = ("about", "code", "values")

    def __new__(cls, code: Enum, values: Mapping[str, str | int], about: str = "") -> "Problem":
        """Write the sentence."""
        sentence = code.value.format_map(values)
        problem = super().__new__(cls, f"{about}: {sentence}" if about else sentence)
        problem.about, problem.code, problem.values = about, code, values
        return problem

    about: str
    code: Enum
    values: Mapping[str, str | int]

    def __reduce__(self) -> tuple[type["Problem"], tuple[object, ...]]:
        """Copy it with its code."""
        return Problem, (self.code, self.values, self.about)

    def of(self, about: str) -> "Problem":
        """Return the problem of a part of the field."""
        return Problem(self.code, self.values, about)
