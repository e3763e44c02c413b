"""Posting lists give the places whose words weigh most."""

from __future__ import annotations

from random import Random
from struct import pack

from wayline.retrieval.search.postings import IMPACT_BITS, PostingList, best_places


def listed(segment: int, term: str, held: dict[int, int]) -> PostingList:
    places = [slot << IMPACT_BITS | impact for slot, impact in held.items()]
    return PostingList(segment, term, pack(f">{len(places)}I", *places))


def test_the_best_places_are_those_of_the_highest_sums():
    random = Random(7)
    weights = {"a": 1.5, "b": 0.25, "c": 4.0}
    held = {
        (segment, term): {slot: random.randint(1, 255) for slot in random.sample(range(200), 60)}
        for segment in (1, 2)
        for term in weights
    }
    sums: dict[tuple[int, int], float] = {}
    for (segment, term), places in held.items():
        for slot, impact in places.items():
            sums[segment, slot] = sums.get((segment, slot), 0) + weights[term] * impact
    best = sorted(sums, key=lambda place: (-sums[place], place))[:25]

    found = best_places([listed(*key, places) for key, places in held.items()], weights=weights, count=25)

    assert list(zip(found.segments, found.slots, strict=True)) == best


def test_no_lists_have_no_places():
    assert best_places([], weights={}, count=5) == ([], [])
