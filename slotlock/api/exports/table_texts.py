"""The titles and words of rosters in the languages of viewers.

English titles are those of the columns. Without a language, tables have the names and codes of the
API, which programs read.
"""

from collections.abc import Sequence

from slotlock.api.exports.columns import Cell, RosterColumn, Shown, cells_of
from slotlock.domain.reports.export_formats import ExportLanguage

_LANGUAGES = ("de", "fr", "es", "zh")
# Titles by the names of columns, then names of sheets, then words by their codes.
_TABLE = """
slot | Termin | Créneau | Turno | 时段
start | Beginn (Ortszeit) | Début (heure locale) | Inicio (hora local) | 开始
end | Ende (Ortszeit) | Fin (heure locale) | Fin (hora local) | 结束
time_zone | Zeitzone | Fuseau horaire | Zona horaria | 时区
location | Ort | Lieu | Lugar | 地点
resources | Räume und Geräte | Ressources | Recursos | 资源
meetings | Treffen | Séances | Sesiones | 课次
name | Name | Nom | Nombre | 姓名
email | Adresse | Adresse | Dirección | 邮箱或用户名
groups | Gruppen | Groupes | Grupos | 群组
status | Status | Statut | Estado | 状态
held_until | Reserviert bis (Ortszeit) | Réservé jusqu'à | Reservado hasta | 保留至
created_at | Gebucht am (Ortszeit) | Réservé le (heure locale) | Creado (hora local) | 预约时间
created_by | Gebucht von | Réservé par | Creado por | 预约人
waiting_since | Wartet seit (Ortszeit) | En attente depuis | Espera desde | 候补开始
waiting_position | Platz | Position | Posición | 位次
overridden_limits | Übergangene Grenzen | Limites ignorées | Límites omitidos | 超出的限制
attendance | Anwesenheit | Présence | Asistencia | 出勤
checked_in_at | Eingelassen (Ortszeit) | Arrivé (heure locale) | Llegada (hora local) | 签到时间
waitlisted_by | Eingetragen von | Inscrit par | Apuntado por | 候补添加人
places | Plätze | Places | Plazas | 名额
confirmed | Bestätigt | Confirmées | Confirmadas | 已确认
held | Reserviert | Réservées | Reservadas | 已保留
cancelled | Storniert | Annulées | Canceladas | 已取消
waiting | Wartend | En attente | En espera | 候补
free | Frei | Libres | Libres | 空余
sheet | Blatt | Feuille | Hoja | 工作表
Summary | Übersicht | Résumé | Resumen | 汇总
Waiting lists | Wartelisten | Listes d'attente | Listas de espera | 候补名单
Bookings | Buchungen | Réservations | Reservas | 预约
Total | Summe | Total | Total | 合计
CONFIRMED | bestätigt | confirmé | confirmado | 已确认
HELD | reserviert | réservé | reservado | 已保留
CANCELLED | abgesagt | annulé | cancelado | 已取消
EXPIRED | abgelaufen | expiré | caducado | 已过期
WAITING | wartet | en attente | en espera | 候补中
DRAFT | Entwurf | brouillon | borrador | 草稿
PUBLISHED | veröffentlicht | publié | publicado | 已发布
NOT_RECORDED | nicht erfasst | non saisi | sin registrar | 未记录
CHECKED_IN | war da | présent | presente | 到场
NO_SHOW | fehlte | absent | ausente | 未到
SLOT_STARTED | nach dem Beginn | après le début | tras el inicio | 开始之后
CANCEL_CUTOFF | nach der Frist | après le délai | fuera de plazo | 退回截止之后
ONE_OF_CHOICE | zweiter aus der Auswahl | second choix | segunda opción | 同组第二个
NOT_YET_OPEN | vor der Öffnung | avant l'ouverture | antes de abrir | 开放之前
CLOSED | nach dem Schluss | après la clôture | tras el cierre | 截止之后
NOT_ELIGIBLE | andere Gruppe | autre groupe | otro grupo | 其他群组
EMAIL_NOT_VERIFIED | Adresse unbestätigt | adresse non confirmée | correo sin confirmar | 邮箱未确认
MAX_BOOKINGS | mehr als erlaubt | au-delà du maximum | más de lo permitido | 超过名额上限
TIME_CONFLICT | Überschneidung | chevauchement | solapamiento | 时间冲突
GROUP_FULL | Gruppe voll | groupe complet | grupo completo | 群组名额已满
NO_SHOWS | während einer Pause | pendant une pause | durante una pausa | 暂停预约期间
HOLD_COOLDOWN | Reservierungspause | pause de réservation | pausa de reserva | 保留后的等待期间
OTHER | andere | autre | otro | 其他
"""
_ROWS = [[cell.strip() for cell in line.split("|")] for line in _TABLE.strip().splitlines()]
TEXTS = {key: dict(zip(_LANGUAGES, texts, strict=True)) for key, *texts in _ROWS}


def title_of(column: RosterColumn[Shown], language: ExportLanguage | None) -> str:
    """Return the title of a column; those of meetings are times, in every language."""
    return TEXTS.get(column.name, {}).get(language or "", column.title)


def sheet_name(english: str, language: ExportLanguage | None) -> str:
    """Return the name of a sheet, or another text of a workbook."""
    return TEXTS[english].get(language or "", english)


def shown_cells(
    columns: Sequence[RosterColumn[Shown]],
    shown: Shown,
    time_zone: str,
    language: ExportLanguage | None,
) -> list[Cell]:
    """Return the cells of a row; with a language, its words stand for the codes of the API."""
    cells = cells_of(columns, shown, time_zone)
    if language is None:
        return cells
    for index, column in enumerate(columns):
        cell = cells[index]
        if column.text:
            cells[index] = column.text(shown, language)
        elif column.is_coded and isinstance(cell, str):
            cells[index] = _words(cell, language)
    return cells


def _words(codes: str, language: ExportLanguage) -> str:
    def word(code: str) -> str:
        return TEXTS.get(code, {}).get(language, code.replace("_", " ").capitalize())

    return ", ".join(map(word, filter(None, codes.split(";"))))
