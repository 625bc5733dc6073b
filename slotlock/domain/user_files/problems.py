"""The problems of the users in a file."""

from enum import auto

from slotlock.domain.shared.tables.file_problems import NamedCode


class ImportProblem(NamedCode):
    """Why a file of users is invalid, if it is a table."""

    TOO_MANY_USERS = auto()
    TOO_MANY_CHANGES = auto()
    ROLE_COLUMN = auto()
    NO_LOGIN_COLUMN = auto()
    TWO_LOGIN_NAMES = auto()
    INVALID_EMAIL = auto()
    INVALID_LOGIN_NAME = auto()
    INVALID_NAME = auto()
    INVALID_GROUPS = auto()
    INVALID_PHONE = auto()
    SAME_USER = auto()
    ADMIN_REQUIRED = auto()
    CLAIM_BY_ADMIN = auto()
    ERASED = auto()
    INVALID_SUBJECT = auto()
    SUBJECT_TAKEN = auto()
    OTHER_SUBJECT = auto()
    SUBJECT_BY_ADMIN = auto()
    UNKNOWN_GUARDIAN = auto()
    SELF_REGISTERED_GUARDIAN = auto()
    BANNED_GUARDIAN = auto()
    GUARDIAN_IS_DEPENDENT = auto()
    HAS_DEPENDENTS = auto()
    DEPENDENT_NOT_MEMBER = auto()
    TOO_MANY_GUARDIANS = auto()
    TOO_MANY_DEPENDENTS = auto()
    CHILD_WITHOUT_LOGIN_NAME = auto()
    SEVERAL_CHILDREN = auto()
    SAME_RESOURCE = auto()
