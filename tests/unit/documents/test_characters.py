"""Bytes become the characters that their sender meant."""

from __future__ import annotations

import pytest

from wayline.documents import characters, is_binary, without_controls, without_nuls

RUSSIAN = "Дата;Город;Сумма\n01.02.2026;Москва;1500\n02.02.2026;Казань;2300\n"


@pytest.mark.parametrize(
    ("text", "encoding", "charset"),
    [
        ("Tides, Grüße", "utf-16-le", "utf-16le"),
        ("Tides, Grüße", "utf-16-be", "utf-16be"),
        ("Tides, Grüße", "utf-16-be", "UTF-16"),
        ("Tides, Grüße", "utf-16-le", "utf-16"),
        ("潮の満ち干", "utf-16-le", "utf-16le"),
        ("潮の満ち干", "iso-2022-jp", "iso-2022-jp"),
        ("潮の満ち干", "shift_jis", "Shift_JIS"),
        ("“Tides”", "cp1252", "iso-8859-1"),
        ("Tides, Grüße", "utf-8", "utf-16le"),
        ("Tides, Grüße", "utf-8", "iso-2022-jp"),
        ("Привет", "utf-8", "windows-1251"),
    ],
)
def test_the_encoding_that_the_sender_names_is_used(text: str, encoding: str, charset: str):
    assert characters(text.encode(encoding), charset=charset) == text


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ('<?xml version="1.0" encoding="windows-1251"?>', "cp1251"),
        ("\n<?xml version='1.0' encoding='KOI8-R' standalone='yes'?>", "koi8-r"),
        ('<?xml version="1.0" encoding="windows-1251"?>', "utf-8"),
    ],
)
@pytest.mark.parametrize("html", [False, True])
def test_the_encoding_of_an_xml_declaration_is_used(declaration: str, encoding: str, html: bool):
    text = f"{declaration}<p>Привет</p>"

    assert characters(text.encode(encoding), html=html) == text


def test_a_page_in_iso_2022_jp_that_names_it_is_read():
    text = '<meta charset="iso-2022-jp"><p>潮の満ち干</p>'

    assert characters(text.encode("iso-2022-jp"), html=True) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN * 3_000, "cp1251"),
        ("Ημερομηνία;Πόλη\n01.02.2026;Αθήνα\n02.02.2026;Θεσσαλονίκη\n", "cp1253"),
        ("日付;都市\n2026年2月1日;東京\n2026年2月2日;大阪です\n", "shift_jis"),
        ("日期;城市\n2026年2月1日;北京\n2026年2月2日;上海市\n", "gb18030"),
    ],
)
def test_a_text_that_names_no_encoding_is_read_as_it_looks(text: str, encoding: str):
    assert characters(text.encode(encoding)) == text


@pytest.mark.parametrize(
    "text",
    [
        "Größe;Straße\nMünchen;Köln\nÄpfel;Öl\n" * 10,
        "été;à côté;créée\nforêt;où;Noël\n" * 10,
        "Þetta er íslenska; það er gott að læra hana\n" * 10,
        "“5 €” — “3 £” … ±2 °C\n" * 10,
        "Привет".encode("cp1251").decode("cp1252"),
    ],
)
def test_latin_and_short_texts_are_read_as_old_editors_wrote(text: str):
    assert characters(text.encode("cp1252")) == text


def test_a_utf8_text_that_breaks_off_is_read_to_there():
    assert characters(RUSSIAN.encode() + "Ж".encode()[:1]) == f"{RUSSIAN}\ufffd"


def test_control_characters_and_terminal_sequences_are_left_out():
    text = "a\x00b \x1b[31mred\x1b[0m \x1b]0;t\x07 c\x7f\x9b\ud800\ttab\r\nline\rline\x0cpage\u200dé"

    assert without_controls(text) == "ab red ]0;t c\ttab\nline\nline\npage\u200dé"


@pytest.mark.parametrize(
    ("content", "binary"),
    [
        (b"name\0\0\0city\0\0\0\0of a record\n" * 20, False),
        (b"a scanned title\0", False),
        (b"\0" * 50 + b"x" * 50, True),
        (bytes(range(256)), True),
        (b"\x7fELF\x02\x01\x01\0\0", True),
    ],
)
def test_nuls_between_words_are_text_and_control_characters_are_not(content: bytes, binary: bool):
    assert is_binary(characters(content)) is binary


def test_nuls_part_words_as_the_padding_that_they_are():
    assert without_nuls("name\0\0\0city\0") == "name city "


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_known_by_its_nuls(encoding: str):
    assert characters("Grüße aus Köln".encode(encoding)) == "Grüße aus Köln"
