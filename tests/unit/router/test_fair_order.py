"""Who comes next in a shared lane: as the weights say, whoever comes, goes or changes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from wayline.router.fair_share.fair_order import FairOrder, WaitingTenant, charge, next_turns

MANY = 10_000
NEARLY = 1e-6
Weights = dict[str, int]
weights_of_tenants = st.dictionaries(
    st.text("abcdefghijkl", min_size=1, max_size=2), st.integers(1, 100), min_size=1, max_size=12
)


def full(weights: Weights, tickets: int = MANY) -> dict[str, WaitingTenant]:
    return {tenant: WaitingTenant(weight, tickets) for tenant, weight in weights.items()}


def turns_of(weights: Weights, count: int, order: FairOrder | None = None) -> tuple[list[str], FairOrder]:
    return next_turns(order or FairOrder(), full(weights), most=count)


@given(weights_of_tenants, st.integers(1, 400))
def test_no_tenant_is_a_ticket_off_its_share_since_all_wait(weights: Weights, count: int):
    turns, _ = turns_of(weights, count)

    together, begun = sum(weights.values()), Counter[str]()
    for served, tenant in enumerate(turns, start=1):
        begun[tenant] += 1
        for name, weight in weights.items():
            assert abs(begun[name] - served * weight / together) < 1 + NEARLY


@settings(max_examples=50)
@given(weights_of_tenants, st.data())
def test_in_any_window_each_end_is_at_most_one_ticket_off(weights: Weights, data: st.DataObject):
    turns, _ = turns_of(weights, 300)
    begin = data.draw(st.integers(0, 299))
    end = data.draw(st.integers(begin, 300))

    begun, together = Counter(turns[begin:end]), sum(weights.values())
    for name, weight in weights.items():
        assert abs(begun[name] - (end - begin) * weight / together) < 2 + NEARLY
    for one, other in combinations(weights, 2):
        apart = abs(begun[one] / weights[one] - begun[other] / weights[other])
        assert apart < 2 / weights[one] + 2 / weights[other] + NEARLY


@given(weights_of_tenants, st.lists(st.integers(1, 30), min_size=1, max_size=10))
@example({"a": 1, "b": 36, "c": 48, "d": 39}, [1, 1, 1, 6])
def test_turns_taken_in_parts_are_the_same_turns(weights: Weights, parts: list[int]):
    order, taken = FairOrder(), list[str]()
    for part in parts:
        turns, order = turns_of(weights, part, order)
        taken += turns

    assert taken == turns_of(weights, sum(parts))[0]


@given(weights_of_tenants, st.integers(0, 300), st.integers(1, 100))
def test_an_idle_tenant_has_saved_nothing_up(weights: Weights, before: int, weight: int):
    _, order = turns_of(weights, before)
    together = {**weights, "late": weight}

    turns, _ = turns_of(together, 200, order)

    share = weight / sum(together.values())
    late = 0
    for served, tenant in enumerate(turns, start=1):
        late += tenant == "late"
        assert abs(late - served * share) < 2 + NEARLY


@given(weights_of_tenants, st.integers(0, 100), st.integers(1, 100))
def test_leaving_and_coming_back_gains_nothing(weights: Weights, before: int, weight: int):
    together = {**weights, "leaver": weight}
    turns, order = next_turns(
        FairOrder(), {**full(weights), "leaver": WaitingTenant(weight, tickets=1)}, most=before + 1
    )
    again, _ = turns_of(together, 100, order)

    begun, share = Counter(turns + again)["leaver"], weight / sum(together.values())
    assert begun <= 2 + share * (before + 1 + len(again)) + NEARLY


@given(weights_of_tenants, st.integers(0, 100), st.integers(1, 100))
def test_a_changed_weight_counts_from_the_next_ticket(weights: Weights, before: int, weight: int):
    changed = next(iter(weights))
    _, order = turns_of(weights, before)
    weights = {**weights, changed: weight}

    turns, _ = turns_of(weights, 300, order)

    share = 300 * weight / sum(weights.values())
    assert abs(Counter(turns)[changed] - share) < 2 + NEARLY


@given(weights_of_tenants)
def test_every_waiting_tenant_comes_while_its_share_is_one_ticket(weights: Weights):
    lightest, together = min(weights.values()), sum(weights.values())

    turns, _ = turns_of(weights, -(-together // lightest) + 1)

    assert set(turns) == set(weights)


def test_a_single_tenant_gets_all_and_no_more_than_it_has():
    turns, order = next_turns(FairOrder(), {"only": WaitingTenant(7, tickets=3)}, most=10)

    assert turns == ["only"] * 3
    assert next_turns(order, {}, most=10)[0] == []


def test_turns_end_before_the_tenant_that_takes_its_own():
    waiting = full({"owner": 1, "small": 1, "large": 3})
    order, begun = FairOrder(), Counter[str]()

    for _ in range(100):
        turns, order = next_turns(order, waiting, most=50, until="owner")
        order = charge(order, waiting, "owner", tickets=1)
        begun.update([*turns, "owner"])

    assert abs(begun["small"] - begun.total() / 5) < 1
    assert abs(begun["large"] - begun.total() * 3 / 5) < 1


def test_what_a_tenant_took_at_once_is_made_up_for():
    waiting = full({"owner": 1, "other": 2})
    order = charge(FairOrder(), waiting, "owner", tickets=25)

    turns, _ = next_turns(order, waiting, most=1_000, until="owner")

    assert abs(len(turns) - 50) <= 2
