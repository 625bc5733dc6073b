"""The columns of a file of users, and the headers by which schools call them.

`Name`, `Nom` and `Nombre` have their meaning from the columns beside them, and so have `Eltern` and
`E-Mail 1`.
"""

import re
from collections.abc import Iterable, Sequence

from slotlock.domain.shared.tables.headers import columns_by_header, fold_header

(
    EMAIL,
    USERNAME,
    NAME,
    FIRST_NAME,
    LAST_NAME,
    GROUPS,
    SUBJECT,
    PHONE,
    GUARDIAN,
    GUARDIAN_NAME,
    LEADS,
) = COLUMNS = (
    "email",
    "username",
    "name",
    "first_name",
    "last_name",
    "groups",
    "subject",
    "phone",
    "guardian",
    "guardian_name",
    "leads",
)

# The addresses of guardians, or their names beside a column of addresses.
_GUARDIANS = "guardians"
# The addresses of a user, or those of two guardians.
_EMAILS = "emails"
# Whose addresses a file has that does not say it.
ADDRESSES_OF = (_, GUARDIANS) = ("users", "guardians")

# English, German, French, Spanish, Chinese (simplified and traditional).
_SPELLINGS = {
    EMAIL: """
        email, e-mail address, mail, mail address
        E-Mail-Adresse, Mailadresse, Schul-E-Mail
        courriel, adresse courriel, adresse e-mail, adresse mail, adresse électronique, mél, mel
        correo, correo electrónico, dirección de correo, dirección de correo electrónico
        邮箱, 邮箱地址, 电子邮箱, 电子邮件, 电子邮件地址, 邮件, 邮件地址
        电子信箱, 郵箱, 電子郵箱, 電子郵件, 電子郵件地址, 電郵, 電郵地址, 信箱, 電子信箱
    """,
    USERNAME: """
        username, user, login, login name, account, account name, student id, student number
        Benutzername, Benutzer, Benutzerkennung, Nutzername, Anmeldename, Kennung, Schülernummer
        nom d'utilisateur, utilisateur, identifiant, identifiant de connexion, numéro étudiant
        usuario, nombre de usuario, nombre de cuenta, matrícula
        用户名, 用户, 用户名称, 登录名, 账号, 帐号, 账户, 学号
        用戶名, 使用者名稱, 登入名稱, 帳號, 帳戶, 學號
    """,
    NAME: """
        name, full name, display name, student, student name, pupil
        vollständiger Name, Anzeigename, Schüler, Schülername, Schüler/in, Schüler:in
        nom, noms, nom complet, nom et prénom, prénom et nom, élève
        nombre, nombres, nombre completo, nombre y apellidos, nombre y apellido, alumno, alumno/a
        姓名, 名字, 全名, 学生, 学生姓名, 學生, 學生姓名
    """,
    FIRST_NAME: """
        first name, given name, given names, forename
        Vorname, Vornamen
        prénom, prénoms
        nombre de pila, primer nombre
        名
    """,
    LAST_NAME: """
        last name, surname, family name
        Nachname, Familienname, Zuname
        nom de famille
        apellido, apellidos
        姓, 姓氏
    """,
    GROUPS: """
        groups, group, class, classes, form, homeroom, grade, year, year group
        Klasse, Klassen, Gruppe, Gruppen, Lerngruppe, Kurs, Kurse, Stufe, Jahrgang, Jahrgangsstufe
        classe, classes, groupe, groupes, division, niveau
        grupo, grupos, clase, clases, curso, cursos, grado, nivel
        班级, 班, 班别, 年级, 年級, 组, 组别, 小组, 分组, 群组
        班級, 班別, 組, 組別, 小組, 分組, 群組
    """,
    # In other languages, a column of this name has courses.
    SUBJECT: """
        subject, sub, subject id, subject identifier
    """,
    PHONE: """
        phone, phone number, telephone, telephone number, mobile, mobile phone, mobile number, cell
        Telefon, Telefonnummer, Tel, Tel., Handy, Handynummer, Mobil, Mobiltelefon, Mobilnummer
        téléphone, numéro de téléphone, portable, téléphone portable
        teléfono, número de teléfono, móvil, celular, teléfono móvil
        电话, 电话号码, 手机, 手机号, 手机号码, 联系电话, 联系方式
        電話, 電話號碼, 手機, 手機號碼, 聯絡電話, 聯絡方式
    """,
    _GUARDIANS: """
        parent, parents, parent/guardian
        Eltern, Elternteil, Sorgeberechtigte, Erziehungsberechtigte, Sorgeberechtigter
        Erziehungsberechtigter, Sorgeberechtigte/r, Erziehungsberechtigte/r, Erz.-Ber.
        responsable, responsable légal, représentant légal
        tutor, tutor legal
        家长, 监护人, 家長, 監護人
    """,
    GUARDIAN_NAME: """
        guardian name, name of guardian, parent name, name of parent, parents names
        parent/guardian name, mother, mother's name, father, father's name, mother name, father name
        Mutter, Vater
        Name der Eltern, Name Eltern, Name Elternteil, Name Sorgeberechtigte, Name Mutter
        Name der Sorgeberechtigten, Name Erziehungsberechtigte, Name der Erziehungsberechtigten
        Name der Mutter, Name des Vaters, Name Vater
        nom du responsable, nom du responsable légal, nom des parents, nom du parent, mère, père
        madre, padre, nombre del tutor, nombre de los padres, nombre de la madre, nombre del padre
        家长姓名, 监护人姓名, 家長姓名, 監護人姓名, 母亲姓名, 父亲姓名, 母親姓名, 父親姓名
        母亲, 父亲, 母親, 父親
    """,
    LEADS: """
        leads, leader of
        leitet, Leitung von
        dirige, responsable de
        dirige a, imparte
        负责, 带领, 負責, 帶領
    """,
}
# Besides those of `_GUARDIANS`, whose addresses are `E-Mail der Mutter` or `Mutter E-Mail`.
_ADDRESSED = """
    guardian, mother, mother's, father, father's
    Mutter, Vater, Vaters, Sorgeberechtigten, Erziehungsberechtigten
    responsables, mère, père
    tutores, madre, padre, padres
    母亲, 父亲, 母親, 父親
"""
_NUMBERS = str.maketrans("", "", "12")
_COLUMN_OF = columns_by_header({GUARDIAN: GUARDIAN, **_SPELLINGS})


def _any_of(headers: Iterable[str]) -> str:
    return f"(?:{'|'.join(headers)})"


_ADDRESS = _any_of(header for header, column in _COLUMN_OF.items() if column == EMAIL)
_GUARDIAN = _any_of(
    header
    for header, column in columns_by_header({**_SPELLINGS, GUARDIAN: _ADDRESSED}).items()
    if column in (GUARDIAN, _GUARDIANS)
)
_ADDRESS_OF_GUARDIAN = re.compile(
    f"{_ADDRESS}(?:of|ofthe|de[rs]?|dela|du|del|delos)?{_GUARDIAN}|{_GUARDIAN}{_ADDRESS}"
)


def columns_of(headers: Sequence[str], *, addresses_of_guardians: bool = False) -> list[str | None]:
    """Return the column that each header stands for; None for an unknown one.

    `Name` beside `Vorname` is the last name, and `Nombre` beside `Apellidos` the first. `Eltern`
    has names beside `E-Mail der Eltern`, and otherwise addresses. `E-Mail 1` and `E-Mail 2` are
    addresses of guardians, unless the file has other addresses.
    """
    columns = list(map(_column_of, headers))
    if addresses_of_guardians:
        columns = [GUARDIAN if column in (EMAIL, _EMAILS) else column for column in columns]
    if not {EMAIL, GUARDIAN}.intersection(columns):
        emails = GUARDIAN if columns.count(_EMAILS) > 1 else EMAIL
        columns = [emails if column == _EMAILS else column for column in columns]
    columns = [None if column == _EMAILS else column for column in columns]
    guardians = GUARDIAN_NAME if GUARDIAN in columns else GUARDIAN
    columns = [guardians if column == _GUARDIANS else column for column in columns]
    if (FIRST_NAME in columns) is not (LAST_NAME in columns):
        meaning = LAST_NAME if FIRST_NAME in columns else FIRST_NAME
        return [meaning if column == NAME else column for column in columns]
    return columns


def _column_of(header: str) -> str | None:
    folded = fold_header(header)
    if folded in _COLUMN_OF:
        return _COLUMN_OF[folded]
    unnumbered = folded.translate(_NUMBERS)
    if _ADDRESS_OF_GUARDIAN.fullmatch(unnumbered):
        return GUARDIAN
    column = _COLUMN_OF.get(unnumbered)
    if column == EMAIL:
        return _EMAILS
    return column if column in (GUARDIAN, GUARDIAN_NAME, _GUARDIANS) else None
