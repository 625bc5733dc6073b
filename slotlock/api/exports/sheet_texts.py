"""The printed texts of sign-in sheets in the languages of viewers."""

from collections.abc import Iterable

from slotlock.domain.reports.export_formats import ExportLanguage
from slotlock.domain.shared.value_object import value_object

DEFAULT_LANGUAGE = ExportLanguage.EN


@value_object
class SheetTexts:
    """The texts of a sheet in one language."""

    title: str
    number: str
    here: str
    name: str
    groups: str
    signature: str
    draft: str
    cancelled: str
    no_slots: str
    missing_font: str
    marks: str


SHEET_TEXTS: dict[str, SheetTexts] = {
    DEFAULT_LANGUAGE: SheetTexts(
        title="Sign-in sheet",
        number="No.",
        here="Here",
        name="Name",
        groups="Groups",
        signature="Signature",
        draft="This slot is a draft.",
        cancelled="This slot is cancelled.",
        no_slots="No published slots.",
        missing_font="Boxes stand for characters that no font of the server has. "
        "The administrator can install fonts.",
        marks="X: came, –: did not come",  # noqa: RUF001
    ),
    "de": SheetTexts(
        title="Teilnahmeliste",
        number="Nr.",
        here="Da",
        name="Name",
        groups="Gruppen",
        signature="Unterschrift",
        draft="Dieser Termin ist ein Entwurf.",
        cancelled="Dieser Termin ist abgesagt.",
        no_slots="Keine veröffentlichten Termine.",
        missing_font="Kästchen stehen für Zeichen, für die der Server keine Schriftart hat. "
        "Die Administration kann Schriftarten installieren.",
        marks="X: war da, –: fehlte",  # noqa: RUF001
    ),
    "fr": SheetTexts(
        title="Liste d'émargement",
        number="N°",
        here="Présent",
        name="Nom",
        groups="Groupes",
        signature="Signature",
        draft="Ce créneau est un brouillon.",
        cancelled="Ce créneau est annulé.",
        no_slots="Aucun créneau publié.",
        missing_font="Les carrés remplacent des caractères sans police sur le serveur. "
        "L'administration peut installer des polices.",
        marks="X : présent, – : absent",  # noqa: RUF001
    ),
    "es": SheetTexts(
        title="Hoja de firmas",
        number="N.º",
        here="Presente",
        name="Nombre",
        groups="Grupos",
        signature="Firma",
        draft="Este turno es un borrador.",
        cancelled="Este turno está cancelado.",
        no_slots="No hay turnos publicados.",
        missing_font="Los cuadros sustituyen caracteres para los que el servidor no tiene fuente. "
        "La administración puede instalar fuentes.",
        marks="X: vino, –: no vino",  # noqa: RUF001
    ),
    "zh": SheetTexts(
        title="签到表",
        number="序号",
        here="到场",
        name="姓名",
        groups="分组",
        signature="签名",
        draft="此时段为草稿。",
        cancelled="此时段已取消。",
        no_slots="没有已发布的时段。",
        missing_font="方框表示服务器没有相应字体的字符。管理员可以安装字体。",
        marks="X：到场，–：未到",  # noqa: RUF001
    ),
}


def choose_language(tags: Iterable[str]) -> ExportLanguage:
    """Return the first language with texts of these tags, such as `de-ch`; else English."""
    languages = (tag.split("-")[0] for tag in tags)
    found = next((each for each in languages if each in SHEET_TEXTS), DEFAULT_LANGUAGE)
    return ExportLanguage(found)
