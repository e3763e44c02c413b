"""The question before what cannot be undone leads to the act, or back to the thing."""

from __future__ import annotations

import pytest

from wayline.console.pages.confirm import Confirmation


@pytest.mark.parametrize(
    ("at", "back", "action"),
    [
        ("/budgets/team", "", "/budgets/team/delete"),
        ("/sessions/one?id=a%2Fb", "", "/sessions/one/delete?id=a%2Fb"),
        ("/settings/keys/k1", "/settings/keys", "/settings/keys/k1/delete"),
    ],
)
def test_a_question_leads_to_the_act_and_back(at: str, back: str, action: str):
    question = Confirmation.of("delete", "the thing", at=at, back=back, sentences=("It is gone then.",))

    assert question == Confirmation("Delete the thing?", "Delete it", action, back or at, ("It is gone then.",))
