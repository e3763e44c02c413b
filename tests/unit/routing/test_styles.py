"""An agent's style stands at the head of its system prompt, with the figures that the executor decides by."""

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.routing import STYLES, confidence_needed, style_text, system_prompt


@pytest.mark.parametrize("style", STYLES)
def test_the_text_of_a_style_says_its_figures(style):
    figures, text = STYLES[style], style_text(style)

    assert f"Tool bias {figures.tool_bias}" in text
    assert f"confidence {figures.confidence_min:.2f}" in text


def test_a_style_stands_before_the_instructions_and_the_language_after():
    config = AgentConfig(style="direct", instructions="You are brief.", language="German")

    head, instructions, language = system_prompt(config).split("\n\n")
    assert (head, instructions) == (style_text("direct"), "You are brief.")
    assert language == "Always answer in German, whatever the language of the question."


def test_two_styles_are_two_static_prompts():
    prompts = [system_prompt(AgentConfig(style=style, instructions="Go.")) for style in (*STYLES, *STYLES)]

    assert len(set(prompts)) == 3 and prompts[:3] == prompts[3:]


def test_an_agent_without_style_or_tools_has_its_instructions_alone():
    assert system_prompt(AgentConfig(instructions=" Go.\n")) == " Go.\n"
    assert system_prompt(AgentConfig(style="direct", tools=(), instructions="Go.")) == "Go."


@pytest.mark.parametrize(
    ("style", "used_tools", "needed"),
    [("tool_first", False, 0.95), ("balanced", False, 0.8), ("direct", False, 0.6), ("tool_first", True, 0.6)],
)
def test_an_answer_without_tools_needs_its_styles_confidence(style, used_tools, needed):
    assert confidence_needed(AgentConfig(style=style), used_tools=used_tools) == needed
    assert confidence_needed(AgentConfig(routing=Routing(confidence_min=0.97)), used_tools=used_tools) == 0.97


@pytest.mark.parametrize("language", ["", "x", "{language}", "G" * 41, "1st"])
def test_a_language_is_a_name_of_one(language):
    with pytest.raises(ValueError, match="language"):
        AgentConfig(language=language)
