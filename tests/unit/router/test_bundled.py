"""The prompt of the bundled agent keeps every rule that was decided for it."""

import pytest

from wayline.contracts.tenant_settings import INHERITED
from wayline.contracts.tools import TASK_TOOLS
from wayline.router.agents.bundled import ORCHESTRATOR, bundled
from wayline.router.agents.check_agent import check_agent
from wayline.router.tenants.settings_in_force import inherited_when_bundled
from wayline.routing import system_prompt

ASSISTANT = bundled()["assistant"]
PROMPT = " ".join(ASSISTANT.instructions.split())


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("work in a loop", "Think about what is missing, act by calling a tool, observe what it returned, and repeat"),
        ("text may accompany calls", "You may write a short text beside your calls."),
        ("tools are not named", "Never name a tool to the user"),
        ("follow-ups are short", "A short follow-up gets a short answer"),
        ("results are facts", "Results of tools are facts"),
        ("history is past", "what was said earlier is past"),
        (
            "a doubted outcome is checked",
            "When somebody doubts an outcome, check it again by a tool before you confirm",
        ),
        ("this and that are recent entities", '"This", "that", "it" mean the thing that was mentioned last'),
        ("light fetches come first", "Fetch light things first"),
        ("bullets from two items", "bullets from two items on, plain text for one"),
        ("no header for one", "no heading where there is one thing to say"),
        ("labels are bold", "labels in bold"),
        ("ids are code", "ids, paths and commands in `code`"),
        ("empty fields are skipped", "Leave out fields that are empty."),
        ("the user's language", "In the language of the user's last message"),
    ],
)
def test_the_bundled_agent_is_told_a_rule(rule, words):
    assert words in PROMPT, rule


def test_the_bundled_agent_has_the_decided_defaults():
    assert (ASSISTANT.style, ASSISTANT.max_steps, ASSISTANT.language) == ("balanced", 5, None)


def test_a_fixed_language_is_said_after_the_users():
    prompt = system_prompt(ASSISTANT.model_copy(update={"language": "Chinese"}))

    assert prompt.endswith(
        "`code`. Leave out fields that are empty.\n\n\nAlways answer in Chinese, whatever the language of the question."
    )


def test_the_planner_has_the_decided_defaults_and_tools_that_read():
    planner = bundled()[ORCHESTRATOR]

    check_agent(planner, ())
    assert (planner.temperature, planner.max_output_tokens, planner.max_steps) == (0.2, 4_000, 10)
    assert planner.tools == TASK_TOOLS and (planner.assemble, planner.on_invalid) == ("task_plan", "empty")
    places = [planner.instructions.index(f"`{tool}`") for tool in TASK_TOOLS]
    assert places == sorted(places)


def test_only_an_agent_with_an_assembler_keeps_its_own_steps():
    assert inherited_when_bundled(ASSISTANT) == INHERITED
    assert not {"max_steps", "adapt_steps", "tools"} & set(inherited_when_bundled(bundled()[ORCHESTRATOR]))
