"""What a model is told between calls: each thing once, and nothing when there is nothing to say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts.chat import AssistantMessage, NoteMessage, TextPart, UserMessage
from wayline.contracts.tools import USE_TOOL, ToolDefinition
from wayline.executor.prompt.notes import (
    GUIDANCE_CHARS_MAX,
    LINE_CHARS_MAX,
    REMIND_AFTER_MESSAGES,
    _line,
    forgotten,
    found,
    guidance,
    known,
    reminder,
)
from wayline.journal import Job
from wayline.testkit.jobs import job_with
from wayline.testkit.walks import examples

from ..talk import Step, Talk, play, turning

LOOK = ToolDefinition(name="look", description="Look around.")
PAGE = ToolDefinition(
    name="book__page",
    description="Read a page.",
    input_schema={"properties": {"number": {}, "line": {}}, "required": ["number"]},
)
JOB = job_with(offered=(LOOK, ToolDefinition(name=USE_TOOL)), messages=(UserMessage(parts=(TextPart(text="go"),)),))
CHANGED = LOOK.model_copy(update={"input_schema": {"required": ["where"]}})


def after(job: Job, **changes) -> Job:
    return job_with(job, **changes)


def test_a_listing_that_says_nothing_new_is_no_news():
    assert found(JOB, (LOOK,)) == ()
    assert found(JOB, (LOOK.model_copy(),)) == ()


def test_a_tool_that_went_away_is_no_news():
    assert found(JOB, ()) == ()


def test_a_new_tool_and_a_new_definition_are_news_once():
    assert found(JOB, (PAGE, CHANGED)) == (PAGE, CHANGED)

    told = after(JOB, discovered=(PAGE, CHANGED))
    assert found(told, (PAGE, CHANGED)) == ()
    assert found(told, (PAGE, LOOK)) == ()


def test_a_job_without_use_tool_gets_no_new_tools():
    closed = after(JOB, offered=(LOOK,))

    assert found(closed, (PAGE, CHANGED)) == (CHANGED,)


def test_guidance_holds_the_definitions_and_how_to_call_them():
    note = guidance(JOB, (PAGE, CHANGED))

    assert note.label == "TOOL GUIDANCE"
    assert note.text == (
        "book__page (new, call it through use_tool): Read a page.\n"
        'Arguments: {"properties":{"number":{},"line":{}},"required":["number"]}\n\n'
        'look (changed, call it as before): Look around.\nArguments: {"required":["where"]}'
    )


def test_guidance_on_very_many_tools_stays_bounded_and_names_them_all():
    many = [ToolDefinition(name=f"t{n:03}", description="x" * 500) for n in range(200)]

    note = guidance(JOB, many)

    assert len(note.text) < GUIDANCE_CHARS_MAX + 200 * (LINE_CHARS_MAX + 2)
    assert all(f"t{n:03}" in note.text for n in range(200))


def test_discovered_tools_are_named_again_when_they_were_not_for_long():
    told = NoteMessage(label="TOOL GUIDANCE", text="…")
    talk = tuple(AssistantMessage(text=str(n)) for n in range(REMIND_AFTER_MESSAGES))
    fresh = after(JOB, discovered=(PAGE,), messages=(*JOB.conversation.messages, told, *talk[:-1]))
    old = after(JOB, discovered=(PAGE,), messages=(*JOB.conversation.messages, told, *talk))

    assert reminder(fresh) is None
    assert reminder(old) == NoteMessage(
        label="AVAILABLE TOOLS", text="Through use_tool:\n- book__page(number, line?): Read a page.", quoted=True
    )


def test_discovered_tools_are_named_again_when_a_summary_took_them_away():
    assert reminder(after(JOB, discovered=(PAGE,))) is not None


def test_a_changed_tool_is_not_one_to_be_reminded_of():
    assert reminder(after(JOB, discovered=(CHANGED,))) is None


def test_a_changed_tool_is_noted_again_after_its_note_was_compacted():
    short = after(JOB, discovered=(CHANGED,))
    kept = after(short, messages=(*short.conversation.messages, guidance(JOB, (CHANGED,))))

    assert forgotten(short, (CHANGED, PAGE)) == (CHANGED,)
    assert forgotten(kept, (CHANGED,)) == (), "it still stands there"
    assert forgotten(short, (LOOK,)) == (), "it is again what the prompt says"
    assert forgotten(JOB, (LOOK, PAGE)) == ()


def test_too_many_changed_tools_are_noted_once():
    many = tuple(ToolDefinition(name=f"t{n:03}", description="x" * 500) for n in range(200))
    now = tuple(tool.model_copy(update={"description": "y" * 500}) for tool in many)
    job = after(JOB, offered=many, discovered=now)

    assert forgotten(after(job, messages=(*job.conversation.messages, guidance(job, now))), now) == ()


@settings(max_examples=examples(100), deadline=None)
@given(history=st.lists(turning, min_size=2, max_size=8))
def test_every_prompt_has_the_current_definition_of_each_tool(history: list[Step]):
    talk = Talk()
    for step in history:
        play(talk, step)
        prompt = talk.prompts[-1]
        head = {tool.name: tool for tool in prompt.tools}
        told = "".join(message.text for message in prompt.messages if isinstance(message, NoteMessage))
        for tool in talk.listed:
            how = f"{tool.name} (changed, call it as before): {tool.description}"
            assert head.get(tool.name, tool) == tool or how in told


def test_nothing_discovered_is_nothing_to_remind_of():
    assert reminder(JOB) is None


def update(text: str) -> NoteMessage:
    return NoteMessage(label="CONTEXT UPDATE", text=text)


def told(*messages) -> Job:
    return after(JOB, messages=(*JOB.conversation.messages, *messages))


ANSWER = AssistantMessage(text="so")


def test_the_last_word_under_a_label_is_not_said_again():
    assert known(told(update("open"), ANSWER), update("open"))
    assert known(told(update("open"), ANSWER, NoteMessage(label="CONTEXT", text="x"), ANSWER), update("open"))


def test_what_became_so_again_is_said_again():
    assert not known(told(update("open"), ANSWER, update("closed"), ANSWER), update("open"))


def test_a_repeated_attempt_says_nothing_twice():
    assert known(told(ANSWER, update("one"), update("two")), update("one"))
    assert known(told(ANSWER, update("one"), update("two")), update("two"))


def test_the_same_words_under_another_label_are_another_note():
    assert not known(told(NoteMessage(label="CONTEXT", text="open")), update("open"))


class Searched(list[str]):
    """Names of which one is looked for among all."""

    def __contains__(self, name: object) -> bool:
        raise AssertionError("each name was compared with each")


def test_a_line_about_a_tool_compares_no_name_with_all():
    schema = {"properties": {"number": {}, "line": {}}, "required": Searched(["number"])}
    tool = ToolDefinition.model_construct(name="book__page", description="Read a page.", input_schema=schema)

    assert _line(tool) == "- book__page(number, line?): Read a page."
