"""The columns of a file of users, and the headers by which schools call them.

`Name`, `Nom` and `Nombre` have their meaning from the columns beside them, and so has `Eltern`.
"""

from collections.abc import Sequence

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
    # An address of each; `parent 1 email` and `parent 2 email` are two of them.
    GUARDIAN: """
        guardian email, parent email, parents email, email of parents, email parent
        parent/guardian email, email of parent, email of guardian
        mother email, mother's email, email of mother, father email, father's email, email of father
        E-Mail der Eltern, E-Mail Eltern, Eltern-E-Mail, Elternmail
        E-Mail Elternteil, E-Mail Sorgeberechtigte
        E-Mail Erziehungsberechtigte, E-Mail der Sorgeberechtigten, E-Mail der Mutter
        E-Mail des Vaters, E-Mail Mutter, E-Mail Vater, E-Mail der Erziehungsberechtigten
        Elternteil E-Mail, Mutter E-Mail, Vater E-Mail
        Eltern E-Mail-Adresse, E-Mail-Adresse der Eltern, E-Mail-Adresse Eltern
        courriel des parents, courriel parent
        courriel de la mère, courriel du père, courriel mère, courriel père
        courriel du responsable, adresse e-mail des parents, mail des parents, e-mail des parents
        correo del tutor, correo de los padres, correo de la madre
        correo del padre, correo electrónico de los padres, correo electrónico del tutor
        correo madre, correo padre, correo padres
        母亲邮箱, 父亲邮箱, 母親信箱, 父親信箱
        家长邮箱, 家长电子邮箱, 家长电子邮件, 监护人邮箱, 监护人电子邮箱
        家長信箱, 家長電郵, 家長電子郵件, 監護人信箱, 監護人電郵, 監護人電子郵件
    """,
    _GUARDIANS: """
        parent, parents, parent/guardian
        Eltern, Elternteil, Sorgeberechtigte, Erziehungsberechtigte, Sorgeberechtigter
        Erziehungsberechtigter, Sorgeberechtigte/r, Erziehungsberechtigte/r
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
_NUMBERS = str.maketrans("", "", "12")
_COLUMN_OF = columns_by_header(_SPELLINGS)


def columns_of(headers: Sequence[str], *, addresses_of_guardians: bool = False) -> list[str | None]:
    """Return the column that each header stands for; None for an unknown one.

    `Name` beside `Vorname` is the last name, and `Nombre` beside `Apellidos` the first. `Eltern`
    has names beside `E-Mail der Eltern`, and otherwise addresses.
    """
    columns = list(map(_column_of, headers))
    if addresses_of_guardians:
        columns = [GUARDIAN if column == EMAIL else column for column in columns]
    guardians = GUARDIAN_NAME if GUARDIAN in columns else GUARDIAN
    columns = [guardians if column == _GUARDIANS else column for column in columns]
    if (FIRST_NAME in columns) is not (LAST_NAME in columns):
        meaning = LAST_NAME if FIRST_NAME in columns else FIRST_NAME
        return [meaning if column == NAME else column for column in columns]
    return columns


def _column_of(header: str) -> str | None:
    folded = fold_header(header)
    numbered = _COLUMN_OF.get(folded.translate(_NUMBERS))
    is_numbered = numbered in (GUARDIAN, GUARDIAN_NAME, _GUARDIANS)
    return _COLUMN_OF.get(folded) or (numbered if is_numbered else None)
