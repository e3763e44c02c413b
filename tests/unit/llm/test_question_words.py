"""What an answer to a question has to have, and how words of several languages are matched."""

import pytest

from wayline.contracts.chat import Citation, TextPart, ToolMessage, UserMessage
from wayline.contracts.models import ModelCard
from wayline.llm import ModelRequest
from wayline.llm.offline import QUOTE_CHARS_MAX, UNSPACED_CHARS, respond
from wayline.llm.question_words import language_of, may_answer, wanted_of
from wayline.llm.stems import stems_of


@pytest.mark.parametrize(
    ("question", "answer", "none"),
    [
        ("How many jars may I take?", "Each may take three jars home.", "Jars may be taken home by the members."),
        ("How many beds are there?", "The ward has 40 beds.", "Only two people may be at a bed for the night."),
        ("When does it open?", "It opens on Saturdays.", "It opens with a key."),
        ("How much does a ticket cost?", "A ticket is 4 euros.", "A ticket is valid for four days."),
        ("Which line goes there?", "The blue line goes there.", "A bus goes there."),
        ("What does it cost?", "It is 3 euros.", "It rises by two per cent."),
        ("Сколько времени это занимает?", "Это занимает два часа.", "Это занимает время."),
        ("How heavy is it?", "It weighs 12 kilograms.", "It takes 12 minutes."),
        ("Wie viele Schlafplätze hat sie?", "Sie hat 24 Schlafplätze.", "Die Schlafplätze sind schlicht."),
        ("Combien coûte le kilo ?", "Le kilo est à deux euros.", "Le kilo se vend bien."),
        ("¿Cuándo abre?", "Abre los lunes.", "Abre con llave."),
        ("Сколько стоит чистка?", "Чистка стоит 300 рублей.", "Чистка длится 3 дня."),
        ("体验课多少钱？", "体验课一百八十元。", "体验课十人。"),  # noqa: RUF001
        ("定員は何名ですか？", "定員は八名です。", "定員は少ないです。"),  # noqa: RUF001
        ("متى يبدأ؟", "يبدأ عند الخامسة صباحا.", "يبدأ بالسلام."),
    ],
)
def test_an_answer_has_the_number_or_time_asked_for(question: str, answer: str, none: str):
    wanted, language = wanted_of(question), language_of(question)

    def stem(text: str) -> frozenset[str]:
        return stems_of(text, language=language)

    assert may_answer(answer, wanted, stem=stem)
    assert not may_answer(none, wanted, stem=stem)


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("Häuser", "Häusern", "de"),
        ("пчёлы", "пчелы", "ru"),
        ("أقلام", "الأقلام", "ar"),
        ("empiezan", "empieza", "es"),
        ("leases", "leased", "en"),
        ("rinse", "rinsed", "en"),
        ("stops", "stopped", "en"),
        ("conductor", "conducts", "en"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str, language: str):
    assert stems_of(one, language=language) == stems_of(other, language=language) != frozenset()


WHETHER = [
    "Is there a café?",
    "Can I bring a dog?",
    "Gibt es Kaffee?",
    "Peut-on louer un vélo ?",
    "¿Hay sauna?",
    "Есть ли сауна?",
    "هل يوجد مصعد؟",
    "有咖啡吗？",  # noqa: RUF001
    "犬はいますか？",  # noqa: RUF001
    "오토바이도 수리합니까?",
]
NOT_WHETHER = [
    "Who can I ask?",
    "How many are there?",
    "Wo gibt es Kaffee?",
    "Quand peut-on venir ?",
    "¿Dónde está?",
    "Когда он открыт?",
    "متى يبدأ؟",
    "什么时候开门？",  # noqa: RUF001
    "犬はどこにいますか？",  # noqa: RUF001
    "누가 수리합니까?",
]


@pytest.mark.parametrize(("questions", "whether"), [(WHETHER, True), (NOT_WHETHER, False)])
def test_a_question_whether_something_is_so_is_known_in_nine_languages(questions: list[str], whether: bool):
    assert [question for question in questions if wanted_of(question).whether is not whether] == []


def test_whether_something_is_so_needs_more_of_the_question():
    passage = "The mill at Carrow Creek ground barley until 1941."

    assert answered("Where is the mill at Carrow Creek?", passage, 0.6) != ()
    assert answered("Is there a café at Carrow Creek?", passage, 0.6) == ()
    assert answered("Is the mill at Carrow Creek?", passage, 0.7) != ()


def test_words_that_only_ask_are_no_stems_in_any_language():
    for question in ("Was kostet das?", "Combien coûte-t-il ?", "¿Cuánto cuesta?", "Сколько стоит?", "كم ثمن"):
        assert stems_of(question, language=language_of(question)) == frozenset(), question


def answered(question: str, passage: str, covered: float) -> tuple[str, ...]:
    asked = UserMessage(parts=(TextPart(text=question),))
    found = ToolMessage(
        call="1",
        tool="search_knowledge",
        content="",
        citations=(Citation(document="d", quote=passage, covered=covered),),
    )
    card = ModelCard(provider="offline", model="extractive", tier="flash")
    answer = respond(ModelRequest(card, "", (asked, found), (), 1_000, "a"))
    return tuple(citation.quote for citation in answer.citations)


def test_a_question_for_a_number_needs_a_sentence_with_one():
    assert answered("How many people live on the island?", "People who live on the island fish.", 1.0) == ()
    assert answered("How many people live on the island?", "On the island live 40 people.", 0.45) != ()


@pytest.mark.parametrize(
    ("question", "stems"),
    [
        ("俱乐部的会长是谁？", {"俱乐", "乐部", "会长"}),  # noqa: RUF001
        ("湯はいつ建てられましたか？", {"建て"}),  # noqa: RUF001
    ],
)
def test_pairs_of_characters_do_not_reach_over_words_of_grammar(question: str, stems: set[str]):
    assert stems_of(question, language="en") == stems


def test_a_quote_has_to_tell_what_is_asked_of_its_subject():
    passage = "# Handbook of the Linden choir\n\nThe Linden choir sings on Thursdays at 19:30."

    assert answered("When was the Linden choir founded?", passage, 0.7) == ()
    assert answered("When does the Linden choir sing?", passage, 0.7) != ()


def test_a_quote_with_all_words_answers_where_the_search_counts_fewer():
    assert answered("Who helps with wheelchairs?", "Maeve helps with wheelchairs.", 0.44) != ()
    assert answered("Who helps with wheelchairs?", "Maeve helps with prams.", 0.44) == ()


def test_holding_what_names_the_document_is_not_enough():
    passage = "# Lantern quick start\n\nPlug the Lantern in and wait for two minutes."

    assert answered("How many phones can connect to the Lantern?", passage, 0.6) == ()


def test_a_quote_of_chinese_is_a_few_sentences():
    passage = "春天采茶。" * 30 + "茶叶放在北面的仓库，因为那里阴凉。" + "夏天休息。" * 30  # noqa: RUF001

    [quote] = answered("茶叶放在哪里？", passage, 0.9)  # noqa: RUF001

    assert "北面的仓库" in quote
    assert len(quote) <= QUOTE_CHARS_MAX // UNSPACED_CHARS
