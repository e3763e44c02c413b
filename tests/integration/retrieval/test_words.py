# ruff: noqa: RUF001
"""Words are found in every script, identifiers are found whole, and long queries by what they ask for."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from .conftest import Client

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture
def client(tenant_client: Any) -> Client:
    return tenant_client


async def found(client: Any, query: str, **fields: Any) -> list[str]:
    """The documents that the words of a query find, best first."""
    hits = (await client.search(query, mode="keyword", **fields)).hits
    return list(dict.fromkeys(hit.document_id for hit in hits))


async def ingest(client: Any, texts: dict[str, str]) -> None:
    for document_id, text in texts.items():
        await client.send(document_id, text, name="page")
    await client.idle()


TYPESET = {
    "quotes": "The operator asked about “jobs”—they’re counted once…",
    "accents": "Le café de la Straße sert une crème brûlée naïve, señor Łukasz.",
    "arabic": "كِتَابٌ جديد، عن المدرسة؛ كتبه أَحْمَد.",
    "russian": "Ёлка стоит во дворе — «Большой театр».",
    "greek": "Ο ΣΊΣΥΦΟΣ κύλησε τον βράχο· πάλι;",
    "hindi": "हिन्दी भाषा। सरल है॥",
    "widths": "ＷＡＹＬＩＮＥ（ﬁrst）ｻｰﾊﾞｰ",
    "trademark": "Wayland™ runs at 40°C, see note¹",
}


TYPESET_QUERIES = [
    ("jobs", "quotes"),
    ("they're counted", "quotes"),
    ("operator", "quotes"),
    ("cafe", "accents"),
    ("café", "accents"),
    ("strasse", "accents"),
    ("creme brulee", "accents"),
    ("senor lukasz", "accents"),
    ("كتاب", "arabic"),
    ("جديد", "arabic"),
    ("المدرسه", "arabic"),
    ("احمد", "arabic"),
    ("елка", "russian"),
    ("БОЛЬШОЙ", "russian"),
    ("σίσυφος", "greek"),
    ("παλι", "greek"),
    ("भाषा", "hindi"),
    ("wayline first", "widths"),
    ("サーバー", "widths"),
    ("wayland", "trademark"),
    ("note", "trademark"),
]


async def test_a_word_is_found_however_it_is_typeset(client: Any):
    await ingest(client, TYPESET)

    assert [(query, (await found(client, query))[:1]) for query, _ in TYPESET_QUERIES] == [
        (query, [document]) for query, document in TYPESET_QUERIES
    ]


UNSEEN = {
    "soft hyphen": "Der Wert\u00adpapier\u00adindex stieg.",
    "zero-width space": "The phil\u200bosophers debated.",
    "word joiner": "A co\u2060operative bargain.",
    "line end": "Steuerrecht und Poli\u00ad\n tikwissenschaft",
    "direction": "\u2067مرحبا بالعالم\u2069 greeting \u202ebackwards\u202c",
    "byte order mark": "alpha\ufeffbetic order",
    "tatweel": "كتـــاب وحيد",
    "emoji": "Ship it 🚀 tomorrow",
    "plain": "The zymurgy manual and the السفينة ledger.",
}

UNSEEN_QUERIES = [
    ("Wertpapierindex", "soft hyphen"),
    ("philosophers", "zero-width space"),
    ("cooperative", "word joiner"),
    ("Politikwissenschaft", "line end"),
    ("مرحبا", "direction"),
    ("backwards", "direction"),
    ("alphabetic", "byte order mark"),
    ("كتاب", "tatweel"),
    ("🚀", "emoji"),
    ("zym\u200burgy", "plain"),
    ("zymu\u00adrgy", "plain"),
    ("\u2067السفينة\u2069", "plain"),
]


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
async def test_characters_that_nobody_sees_part_no_word(client: Any, mode: str):
    await ingest(client, UNSEEN)

    first = [(query, (await client.search(query, mode=mode)).hits[:1]) for query, _ in UNSEEN_QUERIES]
    assert [(query, [hit.document_id for hit in hits]) for query, hits in first] == [
        (query, [document]) for query, document in UNSEEN_QUERIES
    ]


MANUAL = {
    "zh-upload": "如何上传文件：点击“上传文件”按钮，然后选择要发送的文档。",
    "zh-password": "忘记密码时，请打开设置页面并重置您的登录密码。",
    "zh-refund": "退款将在七个工作日内退回到原来的银行账户。",
    "zh-tea": "我们每天下午都喝茶，也吃一点点心。",
    "zh-server": "服务器重新启动以后，所有任务会从日志中恢复。",
    "ja-upload": "ファイルをアップロードするには、画面右上のボタンを押してください。",
    "ja-password": "パスワードを忘れた場合は、設定ページから再設定できます。",
    "ja-refund": "返金は七営業日以内に元の口座へ振り込まれます。",
    "ja-tokyo": "東京タワーは港区にあり、夜になると美しく光ります。",
    "ja-server": "サーバーを再起動すると、ジョブはログから復元されます。",
    "th-password": "หากลืมรหัสผ่านให้เปิดหน้าตั้งค่าแล้วเปลี่ยนรหัสผ่านใหม่",
    "ko-refund": "환불은 영업일 기준 칠일 이내에 처리됩니다.",
    "ko-seoul": "저는 서울에서 집을 찾고 있습니다.",
}


MANUAL_QUERIES = [
    ("上传文件", "zh-upload"),
    ("发送文档", "zh-upload"),
    ("登录密码", "zh-password"),
    ("重置", "zh-password"),
    ("忘记密码怎么办", "zh-password"),
    ("退款", "zh-refund"),
    ("银行账户", "zh-refund"),
    ("茶", "zh-tea"),
    ("日志恢复任务", "zh-server"),
    ("服务器", "zh-server"),
    ("アップロード", "ja-upload"),
    ("ボタン", "ja-upload"),
    ("パスワード", "ja-password"),
    ("再設定", "ja-password"),
    ("返金の口座", "ja-refund"),
    ("営業日", "ja-refund"),
    ("東京タワー", "ja-tokyo"),
    ("港区", "ja-tokyo"),
    ("サーバー 再起動", "ja-server"),
    ("復元", "ja-server"),
    ("รหัสผ่าน", "th-password"),
    ("환불은", "ko-refund"),
    ("환불", "ko-refund"),
    ("처리", "ko-refund"),
    ("서울", "ko-seoul"),
    ("집", "ko-seoul"),
]


async def test_a_word_inside_a_run_without_spaces_is_found(client: Any):
    await ingest(client, MANUAL)

    assert [(query, (await found(client, query))[:1]) for query, _ in MANUAL_QUERIES] == [
        (query, [document]) for query, document in MANUAL_QUERIES
    ]


IDENTIFIERS = {
    "invoice": "Payment of INV-2024-001 is due.",
    "trap": "Payment 001 of INV batch 2024: 2024 INV 001 payment, INV payment of 2024 for 001.",
    "other": "Payment of INV-2001-024 is due.",
    "cpp": "A course on C++ for those who know one other language.",
    "csharp": "A course on C# for those who know one other language.",
    "c": "A course on C, plain C, and C again for those who know one other language.",
    "dotnet": "A course on .NET for those who know one other language.",
    "net": "A net, a fishing net: a course on net repair for those who know one other net.",
    "version": "The fault was mended in 3.11.4 of it.",
    "versions": "Of 11 faults 4 were mended in 3 weeks, 3 in 4, 11 in 3.",
    "path": "Call os.path.join with two parts.",
    "words": "The path: join the os of your path, join by path, os.",
    "snake": "Set max_open_files to a thousand.",
    "files": "At max, files are open; open max files, files open at max.",
}


IDENTIFIER_QUERIES = [
    ("INV-2024-001", "invoice"),
    ("payment inv-2024-001", "invoice"),
    ("INV‑2024‑001", "invoice"),
    ("C++", "cpp"),
    ("course C#", "csharp"),
    (".NET course", "dotnet"),
    ("3.11.4", "version"),
    ("os.path.join", "path"),
    ("max_open_files", "snake"),
]


async def test_an_identifier_is_found_before_its_scattered_parts(client: Any):
    await ingest(client, IDENTIFIERS)

    assert [(query, (await found(client, query))[:1]) for query, _ in IDENTIFIER_QUERIES] == [
        (query, [document]) for query, document in IDENTIFIER_QUERIES
    ]


async def test_parts_of_an_identifier_are_found_too(client: Any):
    await client.ingest("path", IDENTIFIERS["path"], name="page")

    assert await found(client, "join") == ["path"]


STEMMED = {
    "de": "Die Häuser und die Bücher der Stadt sind alt, und wir sind es auch.",
    "fr": "Les chevaux et les maisons sont dans la vallée, avec les bateaux.",
    "es": "Las canciones y los libros están en la biblioteca.",
    "ru": "Новые книги стоят в библиотеке, большие и маленькие.",
    "ar": "الكتاب الجديد في المدرسة الكبيرة",
    "en": "The houses of the poets were painted, and what a die is was asked.",
    "mixed": "Der Befehl rebooting startet den Rechner neu, und das ist nicht alles.",
}
STEMMED_QUERIES = [
    ("Haus", "de"),
    ("Buch", "de"),
    ("maison", "fr"),
    ("cancion", "es"),
    ("libro", "es"),
    ("книга", "ru"),
    ("большой", "ru"),
    ("كتاب", "ar"),
    ("poet", "en"),
    # A stop word of German is none of English, and an English word in a German text is found as it is written.
    ("what is a die", "en"),
    ("rebooting", "mixed"),
    ("Was ist mit den Büchern?", "de"),
]


async def test_words_are_stemmed_by_the_language_of_their_passage(client: Any):
    await ingest(client, STEMMED)

    assert [(query, (await found(client, query))[:1]) for query, _ in STEMMED_QUERIES] == [
        (query, [document]) for query, document in STEMMED_QUERIES
    ]


NAMED = {
    "camel": "Call getUserName before anything else.",
    "path": "It is in src/router/turns_queue.py near the top.",
    "mail": "Write to anna.berg+news@example.com about it.",
    "setting": "Start it with retries=3 or fail.",
    "percent": "The rate is 50% on Mondays.",
    "long": f"The token {'ab1-' * 40}end is refused.",
}


NAMED_QUERIES = [
    ("user name", "camel"),
    ("getusername", "camel"),
    ("turns_queue.py", "path"),
    ("anna.berg+news@example.com", "mail"),
    ("retries=3", "setting"),
    ("50%", "percent"),
    (f"{'ab1-' * 40}end", "long"),
]


async def test_names_are_found_whole_and_by_their_parts(client: Any):
    await ingest(client, NAMED)

    assert [(query, (await found(client, query))[:1]) for query, _ in NAMED_QUERIES] == [
        (query, [document]) for query, document in NAMED_QUERIES
    ]


async def test_an_identifier_makes_no_text_longer(client: Any, shared_owner: Any):
    await client.ingest("invoice", "INV-2024-001 due", name="page")

    assert await shared_owner(f"SELECT words_count FROM retrieval.chunks WHERE tenant = '{client.tenant}'") == [(6,)]


async def test_a_long_query_is_matched_by_its_frequent_words(client: Any):
    # Each of ninety words is in one other document; what the ticket is about is in five, and said four times.
    noise = [f"{first}{second}ville" for first in "bcdfghjklm" for second in "aeiouwxyz"]
    await ingest(client, {word: f"A note about {word} and nothing else." for word in noise})
    await ingest(client, {f"like-{n}": f"Invoices of quarter {n} are printed in the evening." for n in range(4)})
    about = "Invoices with a wrong currency: open the ledger, void the invoices, print them."
    await ingest(client, {"answer": about})
    ticket = ("The invoices show the wrong currency, please void these invoices. " * 2) + " ".join(
        f"We met {word}." for word in noise
    )

    assert (await found(client, ticket))[0] == "answer"


async def test_words_of_plain_text_are_worked_out_without_calls(shared_owner: Any):
    """A call of a function that Postgres cannot put in its caller's place costs more than the work."""
    for function in ("folded", "spaced"):
        plan = await shared_owner(f"EXPLAIN (VERBOSE) SELECT retrieval.{function}(name) FROM retrieval.documents")
        told = " ".join(row[0] for row in plan)
        assert f"{function}_letters(" in told and f"{function}(" not in told


async def test_every_sign_of_unicode_ends_a_word(shared_owner: Any):
    # Vertical lines, so that the parser of words sees a letter on each side.
    signs = [chr(code) for code in range(0x21, 0x30000) if unicodedata.category(chr(code)) in SIGNS]
    dropped = "'\u00ad\u200c\u200d\u2060\ufeff"

    joined = await shared_owner(
        "SELECT coalesce(string_agg(to_hex(code), ' '), '') FROM generate_series(33, 196607) AS code "
        f"WHERE code IN ({','.join(str(ord(sign)) for sign in signs if sign not in dropped)}) "
        "AND retrieval.spaced('a' || chr(code) || 'b') !~ '^a[ '']+b$'"
    )

    assert joined == [("",)]


SIGNS = {"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp"}
