"""Texts, what users type to find them, and whether they should be found."""

# Query, text, found.
SEARCH_PAIRS = [
    # Accents, capitals and variants of characters.
    ("ubung", "Übung", True),
    ("ÜBUNG", "ubung", True),
    ("cafe", "Café", True),
    ("café", "cafe\u0301 au lait", True),
    ("MATH101", "\uff2d\uff21\uff34\uff28\uff11\uff10\uff11", True),
    ("\uff2d\uff21\uff34\uff28\uff11", "Math101", True),
    ("strasse", "Straße 5", True),
    ("STRAẞE", "strasse", True),
    ("istanbul", "İSTANBUL", True),
    ("ışık", "ISIK", True),  # noqa: RUF001
    ("fine", "\ufb01ne", True),
    ("dang", "Đặng", True),
    ("Łódź", "lodz", True),
    ("aero oe", "Ærø Œuvre", True),
    ("елка и", "Ёлка й", True),
    ("محمد", "مُحَمَّد", True),
    ("25", "٢٥ طالبا", True),
    ("ﾃﾞｰﾀ", "データ", True),
    ("葛城", "葛\U000e0100城", True),
    ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글", True),
    # Words and their beginnings; all of them must occur.
    ("gym yog", "Yoga, Gym 2", True),
    ("yoga gym", "Yoga", False),
    ("oga", "Yoga", False),
    ("ubungs", "Übung", False),
    ("lovelace", "ada_lovelace@school.test", True),
    ("soft", "so\u00adft\u200bware", True),
    # Scripts without blanks, from any character on.
    ("数学", "高等数学A", True),
    ("学A", "高等数学A", True),
    ("学数", "高等数学A", False),
    ("小明", "王小明", True),
    ("王明", "王小明", False),
    ("一二三四五六七八九十", "零一二三四五六七八九十", True),
    ("수학", "고등수학", True),
    ("テスト", "数学のテスト", True),
    ("ไทย", "ภาษาไทย", True),
    ("ខ្មែរ", "ភាសាខ្មែរ", True),
    # Symbols, and what is in no word.
    ("🎉", "Party 🎈🎉", True),
    ("👍", "👍🏽", True),
    ("party", "🎉", False),
    ("?!", "?!", False),
    ("\0", "a\0", False),
    ("a\0b", "a b", True),
    ("\ud800", "a", False),
    ("", "a", False),
    (" ".join(map(str, range(40))), " ".join(map(str, range(40))), True),
]
