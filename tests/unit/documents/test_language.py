"""The language of a text is told, also of a short one; of what is no language nothing is said."""

import pytest

from wayline.documents.language import language_of


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Wie bekomme ich mein Geld zurück?"),
        ("fr", "Facture pour l'entretien du chauffage"),
        ("es", "¿Cómo recupero mi dinero?"),
        ("ru", "Как вернуть деньги?"),
        ("zh", "如何退款？"),  # noqa: RUF001
        ("ja", "返金を受けるにはどうすればよいですか？"),  # noqa: RUF001
        ("ko", "환불은 어떻게 받나요?"),
        ("ar", "كيف أسترد أموالي؟"),
        ("en", "How do I get my money back?"),
        ("it", "Come posso avere un rimborso per questo viaggio?"),
        ("tr", "Sözleşme üç ay önceden bildirimde bulunularak feshedilebilir."),
    ],
)
def test_the_language_of_a_sentence_is_told(language: str, text: str):
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", "42", "Tea", "INV-2024-001", "12345 67890 " * 50])
def test_of_what_is_no_sentence_no_language_is_told(text: str):
    assert language_of(text) is None


def test_a_long_text_is_judged_by_more_than_its_beginning():
    notice = "Permission is hereby granted, free of charge, to any person. " * 10

    assert language_of(notice + "Der Vertrag kann mit einer Frist gekündigt werden. " * 1_000) == "de"


def test_where_short_samples_say_nothing_longer_ones_are_looked_at():
    numbers, german = "12345 67890 " * 40, "Der Vertrag kann mit einer Frist gekündigt werden. " * 60
    # The beginning, the middle and the end are numbers.
    text = f"{numbers}{german}{numbers}{german}{numbers}"

    assert language_of(text) == "de"
