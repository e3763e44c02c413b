"""Long tool results in a shorter form: smaller, still readable, and always saying how to read the rest."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts.chat import Attachment, ToolImage, ToolMessage
from wayline.contracts.tools import RECALL, ToolDefinition, ToolError, ToolReply
from wayline.executor.prompt.shorten import JOB_IMAGES_MAX, JOB_IMAGES_MAX_BYTES, condense, cut, shown
from wayline.journal import Job
from wayline.llm.tokens import BYTES_PER_TOKEN
from wayline.testkit.jobs import job_with
from wayline.testkit.walks import examples

JOB = job_with(offered=(ToolDefinition(name=RECALL), ToolDefinition(name="read")))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=80) | st.dictionaries(st.text(max_size=10), inner, max_size=80),
    max_leaves=60,
)


def tokens(text: str) -> int:
    """As results are measured: by their bytes."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def short(content: str, tokens_max: int = 500) -> str | None:
    return condense(content, tokens_max=tokens_max, how='recall_details {"step": 3, "call": "2"}')


def body(text: str) -> str:
    return text[: text.rindex("\n[Shortened")]


def test_a_result_within_the_limit_stays_whole():
    assert short("x" * 500 * BYTES_PER_TOKEN) is None


def test_a_long_list_is_sampled_from_both_ends_as_json():
    rows = [{"id": n, "name": f"customer {n}"} for n in range(2_000)]

    shortened = short(orjson.dumps(rows).decode())

    assert shortened is not None
    sampled = orjson.loads(body(shortened))
    assert (sampled[0], sampled[-1]) == (rows[0], rows[-1])
    kept = sum(isinstance(one, dict) for one in sampled)
    assert sampled[-2] == f"… {2_000 - kept} of 2000 items left out …"
    assert f'{RECALL} {{"step": 3, "call": "2"}}' in shortened


def test_a_list_deep_inside_an_object_is_sampled_where_it_stands():
    shortened = short(orjson.dumps({"page": {"total": 900, "rows": list(range(900))}, "next": "abc"}).decode())

    assert shortened is not None
    sampled = orjson.loads(body(shortened))
    assert (sampled["page"]["total"], sampled["next"]) == (900, "abc")
    assert len(sampled["page"]["rows"]) < 100


def test_a_long_text_keeps_both_ends_and_marks_the_gap():
    text = "\n".join(f"line {n}" for n in range(5_000))

    shortened = short(text)

    assert shortened is not None and shortened.startswith("line 0\nline 1\n")
    shown_lines = body(shortened).splitlines()
    assert shown_lines[-1] == "line 4999"
    [marker] = [line for line in shown_lines if line.startswith("[…")]
    begin, end = int(marker.split()[2]), int(marker.split()[4])
    assert body(shortened) == f"{text[:begin]}\n{marker}\n{text[end:]}"


@pytest.mark.parametrize("strange", ["123456789012345678901234567890", '"\\ud800"', "[" * 9_000 + "]" * 9_000])
def test_numbers_keep_their_digits_and_nothing_strange_is_too_much(strange):
    shortened = short(f'[{strange}, "{"word " * 2_000}"]')

    assert shortened is not None
    assert strange[:30] in shortened


def test_json_that_is_too_wide_to_sample_is_cut_as_text():
    wide = orjson.dumps({f"field {n}" * 20: n for n in range(500)}).decode()

    shortened = short(wide, tokens_max=200)

    assert shortened is not None and body(shortened).startswith('{"field 0')


@settings(max_examples=examples(200), deadline=None)
@given(content=st.one_of(values.map(lambda v: json.dumps([v, "é" * 999])), st.text(min_size=900)))
def test_the_short_form_is_deterministic_and_within_the_limit(content):
    shortened = short(content, tokens_max=200)

    assert shortened == short(content, tokens_max=200)
    assert (shortened is None) == (tokens(content) <= 200)
    assert tokens(shortened or "") <= 200


@pytest.mark.parametrize("size", [0, 1, 80, 81, 300])
def test_half_a_character_is_never_shown(size):
    assert "�" not in cut("zürich→" * 100, size)


def test_the_log_keeps_the_whole_of_what_was_shortened():
    whole = "word " * 5_000

    fields = shown(JOB, "read", ToolReply(status="success", content=whole), step=1, call="1", tokens_max=300)

    assert fields["full"] == whole
    assert tokens(fields["content"]) <= 300


def test_a_long_error_is_shortened_like_a_result():
    error = ToolError(code="tool_failed", message="trace " * 5_000)

    fields = shown(JOB, "read", ToolReply(status="failed", error=error), step=1, call="1", tokens_max=300)

    assert fields["full"] == error.message
    assert tokens(fields["error"].message) <= 300


@pytest.mark.parametrize(("job", "tool"), [(job_with(offered=(ToolDefinition(name="read"),)), "read"), (JOB, RECALL)])
def test_results_without_recall_and_recalled_ones_stay_whole(job, tool):
    whole = "word " * 5_000

    fields = shown(job, tool, ToolReply(status="success", content=whole), step=1, call="1", tokens_max=300)

    assert fields == {"content": whole, "error": None}


def image(size_bytes: int = 9) -> ToolImage:
    about = {"media_type": "image/png", "width": 8, "height": 6, "content_base64": "AAAA"}
    return ToolImage(sha256="0" * 64, size_bytes=size_bytes, **about)


def with_images(job: Job, *images: ToolImage, content: str = "it") -> tuple[int, str]:
    """How many images of a result the model is shown, and the text."""
    fields = shown(
        job, "read", ToolReply(status="success", content=content, images=images), step=1, call="1", tokens_max=300
    )
    return len(fields["images"]), fields["content"]


def test_a_shortened_text_keeps_its_images_and_their_notes():
    note = "[image image/png, 8x6]"
    count, content = with_images(JOB, image(), content=f"{'word ' * 2_500}\n{note}\n{'word ' * 2_500}")

    assert count == 1
    assert content.count(note) == 1


@pytest.mark.parametrize(
    ("held", "attached", "new", "shown_now"),
    [
        ([9] * (JOB_IMAGES_MAX - 1), 0, [9], 1),
        ([9] * (JOB_IMAGES_MAX - 1), 0, [9, 9], 1),
        ([9] * (JOB_IMAGES_MAX - 1), 1, [9], 0),
        ([JOB_IMAGES_MAX_BYTES - 9], 0, [10, 9], 1),
    ],
)
def test_images_beyond_what_a_conversation_holds_are_named(held, attached, new, shown_now):
    messages = tuple(ToolMessage(call="1", tool="t", content="", images=(image(size),)) for size in held)
    about = {"document_id": "d", "name": "a", "media_type": "image/png", "sha256": "0" * 64, "size_bytes": 9}
    job = job_with(messages=messages, attachments=(Attachment(**about),) * attached)

    count, content = with_images(job, *map(image, new))

    left_out = len(new) - shown_now
    assert count == shown_now
    assert (f"[Not shown: {left_out} of {len(new)} images; a conversation holds at most" in content) == bool(left_out)
