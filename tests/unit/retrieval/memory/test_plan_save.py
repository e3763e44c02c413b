"""What a save does to the facts of a user: by the rules for quotes, doubles, conflicts, caps and ages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.memory import CAPS, Fact, NewFact, Quoted, Tier, WrittenBy
from wayline.retrieval.memory.compare_facts import conflict, says_the_same, supports
from wayline.retrieval.memory.fact_rules import expiry, relevance
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.plan_save import Owner, Plan, Row, plan_save

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ANN = Owner("memory", user_id="ann")


def said(text: str, *, seq: int = 1, **fields: Any) -> NewFact:
    """A fact in the user's own words."""
    own = {"quote": text, "quoted": Quoted(job_id="j1", seq=seq)}
    return NewFact.model_validate({"text": text, "category": "profile"} | own | fields)


def save(
    *facts: NewFact, known: Sequence[Row] = (), now: datetime = NOW, prefix: str = "f", **written: Any
) -> tuple[Plan, list[Row]]:
    """Plan a save, and return with it the facts that are live afterwards."""
    plan = plan_save(
        ANN,
        facts,
        WrittenBy(**written),
        known=known,
        vectors=[None] * len(facts),
        new_id=lambda number: f"{prefix}{number}",
        now=now,
    )
    gone = {(one.fact_id, one.version) for one in plan.retired}
    rows = [*known, *plan.inserts]
    return plan, [row for row in rows if (row.fact.fact_id, row.fact.version) not in gone]


def test_a_tier_ends_after_its_days():
    assert [expiry(tier, NOW) for tier in ("core", "important", "context")] == [
        None,
        NOW + timedelta(days=90),
        NOW + timedelta(days=30),
    ]


def test_what_is_out_of_date_goes_with_the_next_save():
    _, live = save(said("Lives in Bonn."))

    plan, live = save(said("Keeps bees."), known=live, now=NOW + timedelta(days=31), prefix="g")

    assert [one.because for one in plan.retired] == ["its time is over"]
    assert [row.fact.text for row in live] == ["Keeps bees."]


def test_the_least_relevant_goes_over_a_cap():
    names = ("cello", "flute", "harp", "lute", "oboe", "viola")
    _, live = save(
        *(said(f"Plays the {name}.", confidence=0.9) for name in names[:5]), said("Plays the viola.", confidence=0.2)
    )

    plan, live = save(said("Plays the drums.", confidence=0.8), known=live, prefix="g")

    assert len(live) == CAPS["context"]
    assert [one.fact_id for one in plan.retired] == ["f5"]


def test_a_use_and_a_word_more_make_a_fact_weigh_more():
    _, [row] = save(said("Plays the cello."))

    used = row.fact.model_copy(update={"uses": 3})
    later = NOW + timedelta(days=90)

    assert relevance(used, NOW) > relevance(row.fact, NOW)
    assert relevance(row.fact, later) == relevance(row.fact, NOW) / 2


def test_the_same_quote_twice_is_said_once():
    _, live = save(said("Lives in Bonn.", seq=4))

    plan, _ = save(said("Lives in Bonn.", seq=4), known=live, prefix="g")

    assert [one.outcome for one in plan.outcomes] == ["known"]
    assert plan.said_again == []


def test_a_repeat_without_new_words_only_counts_a_use():
    _, live = save(said("Lives in Bonn."))

    plan, after = save(NewFact(text="The user lives in Bonn", category="profile"), known=live, prefix="g")

    assert (plan.outcomes[0].outcome, plan.used, plan.inserts) == ("known", ["f0"], [])
    assert after == live


def test_the_users_own_words_raise_an_inferred_fact():
    _, live = save(NewFact(text="Lives in Bonn.", category="profile", tier="core"))
    assert (live[0].fact.trust, live[0].fact.tier, live[0].fact.confidence) == ("inferred", "context", 0.5)

    plan, [row] = save(said("Lives in Bonn.", tier="core"), known=live, prefix="g")

    assert (row.fact.fact_id, row.fact.version, row.fact.trust, row.fact.tier) == ("f0", 2, "own", "core")
    assert plan.retired[0].state == "superseded"


def test_a_guess_never_replaces_the_users_words():
    _, live = save(said("Lives in Bonn."))

    plan, after = save(NewFact(text="Owns a farm.", category="profile", replaces="f0"), known=live, prefix="g")

    assert [row.fact.text for row in after] == ["Lives in Bonn.", "Owns a farm."]
    assert [(one.other_id, one.why) for one in plan.conflicts] == [("f0", "would replace the user's own words")]


def test_a_tainted_repeat_changes_nothing_of_an_active_fact():
    _, live = save(said("Lives in Bonn."))

    plan, after = save(said("Lives in Bonn.", seq=9), known=live, prefix="g", tainted_by=("web_fetch",))

    assert (plan.outcomes[0].outcome, plan.used, plan.said_again) == ("known", [], [])
    assert after == live


def test_a_quote_with_a_secret_is_not_kept():
    _, [row] = save(said("Prefers the blue account.", quote="I prefer the blue account, my password is hunter2"))

    assert (row.fact.trust, row.fact.quote) == ("own", None)


def test_facts_are_the_same_in_other_spellings_only():
    def same(one: str, other: str) -> bool:
        return says_the_same(FactText(one), FactText(other))

    assert same("The user prefers dark mode", "Prefers dark mode.")
    assert same("Lives in Köln", "lives in koln")
    assert not same("Allergic to nuts", "Not allergic to nuts")
    assert not same("Has 2 sons", "Has 3 sons")
    assert not same("Lives in Bonn", "Lives in Berlin")
    assert not same("住在北京", "不住在北京")


def test_another_value_or_the_opposite_is_a_conflict():
    def against(one: str, other: str) -> str | None:
        return conflict(FactText(one), FactText(other))

    assert against("Lives in Bonn", "The user lives in Paris") == "another value of lives in"
    assert (
        against("Favourite colour is blue", "The user's favourite colour is green")
        == "another value of favourite colour is"
    )
    assert against("Likes olives", "Does not like olives") == "the opposite"
    assert against("Has 2 sons", "Has 3 sons") == "another value of has # sons"
    assert against("Likes tea", "Likes coffee") is None
    assert against("Is allergic to nuts", "Is allergic to milk") is None


def test_a_quote_supports_only_what_stands_in_it():
    assert supports("I'm vegan, so no cheese please", FactText("User is vegan"))
    assert supports("we moved to Bonn in 2021", FactText("Moved to Bonn in 2021"))
    assert supports("我住在北京", FactText("Lives in Beijing"))
    assert not supports("we moved to Bonn", FactText("Moved to Bonn in 2021"))
    assert not supports("yes", FactText("Lives in Berlin"))
    assert not supports("I live in Bonn", FactText("Lives in Paris"))
    assert supports("i live in paris", FactText("Lives in Paris"))
    assert not supports("what is the weather like?", FactText("Owns a sailing boat"))
    assert not supports("I like olives", FactText("Does not like olives"))


WORDS = st.sampled_from(
    [
        f"{verb} {thing}."
        for verb in ("Likes", "Plays", "Owns", "Does not like")
        for thing in ("tea", "chess", "a boat", "jazz", "2 dogs")
    ]
)
FACTS = st.builds(
    lambda text, tier, confidence, seq, proven: (
        said(text, tier=tier, confidence=confidence, seq=seq)
        if proven
        else NewFact(text=text, category="profile", tier=tier, confidence=confidence)
    ),
    WORDS,
    st.sampled_from(["core", "important", "context"]),
    st.floats(0, 1),
    st.integers(1, 5),
    st.booleans(),
)


@given(st.lists(st.lists(FACTS, min_size=1, max_size=6), min_size=1, max_size=8), st.booleans())
def test_any_order_of_saves_keeps_the_rules(batches: list[list[NewFact]], tainted: bool):
    live: list[Row] = []
    for number, batch in enumerate(batches):
        taint = ("web_fetch",) if tainted and number % 2 else ()
        plan, live = save(*batch, known=live, prefix=f"b{number}-", tainted_by=taint)
        assert len(plan.outcomes) == len(batch)

    active = [row.fact for row in live if row.fact.state == "active"]
    assert all(len(_of_tier(active, tier)) <= cap for tier, cap in CAPS.items())
    assert all(one.tier == "context" and one.confidence <= 0.5 for one in active if one.trust == "inferred")
    assert all(one.trust != "stranger" for one in active)
    assert len({row.words.text_hash for row in live if row.fact.state == "active"}) == len(active)
    assert len({(row.fact.fact_id, row.fact.version) for row in live}) == len(live)


def _of_tier(facts: list[Fact], tier: Tier) -> list[Fact]:
    return [one for one in facts if one.tier == tier]
