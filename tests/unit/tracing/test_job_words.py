from wayline.tracing.job_words import WORD_MAX, WORDS_MAX, job_words, words_of


def test_words_end_at_signs_and_are_kept_once():
    assert words_of(["Refund INV-2024_001, refund!", None, "Zürich"]) == ["refund", "inv", "2024", "001", "zürich"]


def test_scripts_without_spaces_are_kept_as_pairs():
    assert words_of(["退款政策 v2", "환불은"]) == ["退款", "款政", "政策", "v2", "환불", "불은"]
    assert words_of(["ab退cd"]) == ["ab", "退", "cd"]


def test_a_long_text_gives_few_short_words():
    many = words_of([" ".join(f"w{number}" for number in range(100_000)), "x" * 10_000])

    assert len(many) <= WORDS_MAX
    assert max(map(len, many)) <= WORD_MAX


def test_tags_and_tools_are_no_words_of_texts():
    named = {"tags": ["team:b"], "tools": ["search"], "cited": ["d 1", "d 1"]}
    words = job_words("acme", "Job_1", ["#team:a ~acme !mail"], label="next", **named)

    assert words == ["~acme", "=job_1", "#team:b", "!search", "@d 1", "$", "$next", "team", "a", "acme", "mail"]
