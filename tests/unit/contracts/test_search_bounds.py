"""A search asks for as many passages as one answer holds, and for no more."""

import pytest
from pydantic import ValidationError

from wayline.contracts.knowledge import SearchKnowledge


@pytest.mark.parametrize("top_k", [-1, 0, 201, 10**9, 10**30])
def test_a_search_for_no_or_endless_passages_is_refused(top_k: int):
    with pytest.raises(ValidationError, match="top_k"):
        SearchKnowledge(tenant="acme", query="tortoise", top_k=top_k)
