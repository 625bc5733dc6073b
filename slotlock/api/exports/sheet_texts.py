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
        draft="This course is a draft.",
        cancelled="This course does not take place.",
        no_slots="No published courses.",
        missing_font="Boxes stand for characters that no font of the server has. "
        "The administrator can install fonts.",
        marks="X: here, –: absent",  # noqa: RUF001
    ),
    "de": SheetTexts(
        title="Anwesenheitsliste",
        number="Nr.",
        here="Da",
        name="Name",
        groups="Gruppen",
        signature="Unterschrift",
        draft="Dieser Kurs ist ein Entwurf.",
        cancelled="Dieser Kurs findet nicht statt.",
        no_slots="Keine veröffentlichten Kurse.",
        missing_font="Kästchen stehen für Zeichen, für die der Server keine Schriftart hat. "
        "Die Administration kann Schriftarten installieren.",
        marks="X: da, –: gefehlt",  # noqa: RUF001
    ),
    "fr": SheetTexts(
        title="Liste d'émargement",
        number="N°",
        here="Présent",
        name="Nom",
        groups="Groupes",
        signature="Signature",
        draft="Ce cours est un brouillon.",
        cancelled="Ce cours est annulé.",
        no_slots="Aucun cours publié.",
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
        draft="Este curso es un borrador.",
        cancelled="Este curso está cancelado.",
        no_slots="No hay cursos publicados.",
        missing_font="Los cuadros sustituyen caracteres para los que el servidor no tiene fuente. "
        "La administración puede instalar fuentes.",
        marks="X: vino, –: no vino",  # noqa: RUF001
    ),
    "zh": SheetTexts(
        title="签到表",
        number="序号",
        here="到场",
        name="姓名",
        groups="班级和分组",
        signature="签名",
        draft="此课程为草稿。",
        cancelled="课程已取消。",
        no_slots="没有已发布的课程。",
        missing_font="方框表示服务器没有相应字体的字符。管理员可以安装字体。",
        marks="X：已到场，–：缺席",  # noqa: RUF001
    ),
}


def choose_language(tags: Iterable[str]) -> ExportLanguage:
    """Return the first language with texts of these tags, such as `de-ch`; else English."""
    languages = (tag.split("-")[0] for tag in tags)
    found = next((each for each in languages if each in SHEET_TEXTS), DEFAULT_LANGUAGE)
    return ExportLanguage(found)
