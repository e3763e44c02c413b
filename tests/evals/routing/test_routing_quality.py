"""The figures that the router must reach: on subjects that it has not learned from, and on a stated mix of tasks."""

from __future__ import annotations

import pytest

from .__main__ import OURS, measure, table
from .data import load
from .mix_of_prompts import NEUTRAL, held_out, moved, of_mix, plain, set_on
from .mix_of_prompts import table as table_of_levels
from .savings import saved, spent
from .savings import table as table_of_savings

APGR_MIN = {"MMLU": 0.56, "GSM8K": 0.59}
SAVED_MIN = 0.6
COMPLEX_MAX = 0.4


@pytest.mark.timeout(1_200)
def test_routing_recovers_more_than_length_words_or_a_regex(tell):
    data = load()
    measured = measure(data)
    tell(table(measured, data))

    for part, least in APGR_MIN.items():
        ours = measured[OURS][part].apgr
        assert ours > least, part
        assert all(ours > parts[part].apgr for name, parts in measured.items() if name != OURS), part


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_routing_saves_three_fifths_where_jobs_are_of_similar_length(tell, provider: str):
    tell(table_of_savings(provider))

    assert saved(spent(provider, one_size=True)) > SAVED_MIN


@pytest.mark.parametrize("sets", [set_on, held_out])
def test_at_most_two_fifths_of_public_prompts_are_complex(tell, sets):
    tell(table_of_levels(sets.__name__, sets()))

    assert of_mix(sets()).complex <= COMPLEX_MAX


@pytest.mark.parametrize("between", ["\n\n", " "])
@pytest.mark.parametrize("instruction", NEUTRAL)
def test_a_neutral_instruction_moves_no_plain_request(instruction: str, between: str):
    assert moved(plain(), instruction, between) == 0
