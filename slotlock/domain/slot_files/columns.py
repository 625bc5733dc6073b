"""The columns of a file of courses, and the headers by which schools call them."""

from collections.abc import Sequence

from slotlock.domain.reports.export_formats import ExportLanguage
from slotlock.domain.shared.tables.headers import columns_by_header, fold_header

# English, German, French, Spanish, Chinese (simplified and traditional), each with the header of
# exports first; `id` is of this server.
_SPELLINGS = {
    "id": "id, slot id",
    "number": """
        number, no, course number, course no, course id, course code, code
        Nummer, Nr, Kursnummer, Kurs-Nr, Kurskürzel, Kürzel
        numéro, n°, numéro du cours, code du cours
        número, núm, número del curso, código
        编号, 课程编号, 课程号, 课程代码, 序号, 編號, 課程編號, 課程代碼, 序號
    """,
    "title": """
        title, course, course title, course name, name
        Titel, Kurs, Kurstitel, Kursname, Bezeichnung, Thema
        titre, cours, nom du cours, intitulé, nom
        título, curso, nombre del curso, nombre
        课程, 标题, 课程名称, 课程名, 名称, 標題, 課程, 課程名稱, 名稱
    """,
    "description": """
        description, details, text
        Beschreibung, Text, Inhalt
        description, contenu
        descripción, contenido
        说明, 简介, 课程简介, 描述, 课程说明, 說明, 簡介, 課程簡介
    """,
    "first_day": """
        first day, date, day, start date, begins on, from
        erster Tag, Datum, Tag, Beginn, Startdatum, von
        premier jour, date, jour, date de début, début
        primer día, fecha, día, fecha de inicio, inicio
        开始日期, 日期, 首日, 起始日期, 開始日期
    """,
    "last_day": """
        last day, end date, ends on, until
        letzter Tag, Ende, Enddatum, bis
        dernier jour, date de fin, fin
        último día, fecha de fin, fin
        结束日期, 末日, 截止日期, 結束日期
    """,
    "weekly": """
        weekdays, weekday, weekly, days of the week
        Wochentage, Wochentag, wöchentlich
        jours de la semaine, jour de la semaine, hebdomadaire
        días de la semana, día de la semana, semanal
        星期, 每周, 周几, 上课时间, 每週, 週幾, 上課時間
    """,
    "start_time": """
        start time, starts at, time from
        Startzeit, Anfangszeit, Uhrzeit von, Beginn (Uhrzeit)
        heure de début
        hora de inicio
        开始时间, 開始時間
    """,
    "end_time": """
        end time, ends at, time to
        Endzeit, Uhrzeit bis, Ende (Uhrzeit)
        heure de fin
        hora de fin
        结束时间, 結束時間
    """,
    "period": """
        period, periods, lesson, lessons
        Stunde, Stunden, Unterrichtsstunde
        heure de cours
        hora lectiva
        节次, 课节, 節次, 課節
    """,
    "except": """
        except, not on, skipped days
        Ausfalltage, außer, nicht am
        sauf, sauf le
        excepto
        除外, 停课日期, 停課日期
    """,
    "meetings": """
        meetings, all meetings
        Treffen, alle Treffen, Termine, alle Termine
        séances
        sesiones
        全部课次, 全部課次
    """,
    "time_zone": """
        time zone
        Zeitzone
        fuseau horaire
        zona horaria
        时区, 時區
    """,
    "location": """
        location, place, where
        Ort, Treffpunkt
        lieu
        lugar
        地点, 上课地点, 地點, 上課地點
    """,
    "teacher": """
        teacher, teachers, instructor, staff
        Lehrkraft, Lehrkräfte, Lehrer, Lehrerin, Lehrer/in, Leitung, Kursleitung
        enseignant, enseignante, professeur, intervenant
        profesor, profesora, docente
        教师, 老师, 任课教师, 授课教师, 教師, 老師, 任課教師
    """,
    "room": """
        room, rooms, classroom
        Raum, Räume, Zimmer
        salle, salles
        aula, sala
        教室
    """,
    "resources": """
        resources, equipment, devices
        Geräte, Ressourcen, Ausstattung
        ressources, matériel
        recursos, material
        资源, 设备, 資源, 設備
    """,
    "places": """
        places, capacity, seats, max participants
        Plätze, Kapazität, Teilnehmerzahl, max. Teilnehmer
        places, capacité
        plazas, cupo
        名额, 容量, 人数, 人数上限, 名額, 人數, 人數上限
    """,
    "group_limits": """
        group limits, limits
        Gruppenlimits, Limits
        limites par groupe
        límites por grupo
        分组限额, 班级限额, 分組限額, 班級限額
    """,
    "waiting_list": """
        waiting list, waitlist
        Warteliste
        liste d'attente
        lista de espera
        候补名额, 候补, 候補名額, 候補
    """,
}
COLUMNS = tuple(_SPELLINGS)
RESOURCE_COLUMNS = ("teacher", "room", "resources")
_COLUMN_OF = columns_by_header(_SPELLINGS)
# The columns of the fields of an input that have a problem.
COLUMN_OF_FIELD = {
    "timeZone": "time_zone",
    "capacity": "places",
    "waitlistCapacity": "waiting_list",
    "groupLimits": "group_limits",
    "resource": "resources",
    "resourceIds": "resources",
    "startTime": "first_day",
    "endTime": "first_day",
    "timetable": "first_day",
    "first": "first_day",
    "last": "last_day",
    "extra": "meetings",
}


def headers_in(language: ExportLanguage | None) -> Sequence[str]:
    """Return the headers of all columns in a language, or the names of the API."""
    if language is None:
        return COLUMNS
    at = list(ExportLanguage).index(language)
    lines = (spellings.strip().splitlines() for spellings in _SPELLINGS.values())
    headers = (each[min(at, len(each) - 1)].split(",")[0].strip() for each in lines)
    return [header[0].upper() + header[1:] for header in headers]


def columns_of(headers: Sequence[str]) -> list[str | None]:
    """Return the column that each header stands for; None for an unknown one."""
    return [_COLUMN_OF.get(fold_header(header)) for header in headers]
