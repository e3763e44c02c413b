"""What is remembered: lists, one fact, what forms change, subjects, and the receipt of what is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from wayline.console.pages.form_values import WrongField
from wayline.console.pages.frame import Frame
from wayline.console.pages.knowledge import facts, forgetting, subjects
from wayline.console.pages.knowledge.fact_fields import KINDS, NEW_FACT, STATES, new_fact_of, shown_fact
from wayline.console.render.environment import Templates
from wayline.console.render.formats import visible
from wayline.contracts.forgetting import Forgetting, StoreReceipt
from wayline.contracts.memory import Fact, FactConversation, Subject, SubjectLink, SubjectRef

ME = {"tenant": "acme", "name": "ann", "scopes": ["read", "write"], "open": False, "version": "1", "user_id": None}
NOW = datetime(2026, 5, 1, tzinfo=UTC)
FRAME = Frame("Memories", "/knowledge", ME, "token", "system", "/knowledge/memories", now=NOW)
ZURICH = ZoneInfo("Europe/Zurich")
PAYLOAD = '"><script>alert(1)</script><svg onload=alert(2)>\u202e'


def fact_of(**fields: Any) -> dict[str, Any]:
    usual = {"fact_id": "f1", "text": "Lives in Bonn.", "category": "profile", "recorded_at": NOW, "last_said_at": NOW}
    return Fact(**{**usual, **fields}).model_dump(mode="json")


def list_of(*found: dict[str, Any], kind: str = "memories", **more: Any) -> str:
    wanted = dict.fromkeys(KINDS[kind].conditions, "")
    page = facts.Facts(KINDS[kind], list(found), None, wanted, **more)
    return Templates().render(facts.LIST_TEMPLATE, page=page, frame=FRAME, states=STATES).decode()


def page_of(found: dict[str, Any], *versions: dict[str, Any], kind: str = "memories", **more: Any) -> str:
    page = facts.FactPage(KINDS[kind], found, '"tag"', list(versions), **more)
    shown = {**shown_fact(found, ZURICH), **page.typed}
    return Templates().render(facts.TEMPLATE, page=page, frame=FRAME, shown=shown).decode()


def receipt_page(told: Forgetting) -> str:
    page = forgetting.receipt_of(told.model_dump(mode="json"))
    return Templates().render(forgetting.RECEIPT_TEMPLATE, page=page, frame=FRAME).decode()


def test_a_list_shows_tier_confidence_and_last_use():
    found = fact_of(
        tier="core", confidence=0.5, user_id="ann", last_used_at="2026-04-28T00:00:00Z", conflicts_with=("f2",)
    )
    html = list_of(found)

    assert "core" in html and "50 %" in html and "3 d" in html and "conflicts with 1" in html
    assert "Nothing is remembered here" in list_of() and "Nothing is remembered here" in list_of(kind="insights")


def test_a_waiting_fact_is_released_by_its_own_scope_alone():
    html = page_of(fact_of(state="quarantined", tainted_by=("web_search",)))

    assert "web_search" in html
    assert html.count("Your key lacks the scope memory:release.") == 2


def test_a_fact_shows_its_history_its_conflicts_and_its_uses():
    talked = FactConversation(conversation="s/1", job_id="j1", said=1, used=2, first_at=NOW, last_at=NOW)
    old = fact_of(text="Lives in Rome.", state="superseded", retired_because="said otherwise")
    html = page_of(
        fact_of(version=2, conflicts_with=("f2",), conversations=(talked,), quote="I moved."), fact_of(), old
    )

    assert "said otherwise" in html and "Lives in Rome." in html and 'href="/knowledge/memories/f2"' in html
    assert 'href="/sessions/one?id=s/1"' in html and "I moved." in html


def test_strangers_words_in_facts_and_subjects_stay_words():
    about = SubjectRef(type="client", id=PAYLOAD.replace("\n", ""))
    said = {"text": PAYLOAD, "category": PAYLOAD[:32], "quote": PAYLOAD, "keywords": (PAYLOAD,), "about": PAYLOAD}
    found = fact_of(subject=about, retired_because=PAYLOAD, **said)
    html = page_of(found, found, found, kind="insights") + list_of(found, kind="insights", problem=PAYLOAD)
    link = SubjectLink(type="client", id=about.id, kind=PAYLOAD)
    shown = Subject(type="client", id=about.id, name=PAYLOAD, attributes={PAYLOAD: PAYLOAD}, links=(link,))
    page = subjects.SubjectPage(shown.model_dump(mode="json"), "", [found])
    values = {"page": page, "frame": FRAME, "shown": subjects.shown_subject(page.subject), "kind": KINDS["insights"]}
    html += Templates().render(subjects.TEMPLATE, **values).decode()

    assert "<script>alert" not in html and "<svg onload" not in html and "\u202e" not in html


def test_a_new_fact_names_whom_it_is_about():
    typed = {**NEW_FACT, "text": "Likes tea.", "category": "preference", "importance": "8", "keywords": "tea\r\ncup"}
    fact = {"text": "Likes tea.", "category": "preference", "importance": 8, "keywords": ["tea", "cup"]}

    assert new_fact_of(KINDS["memories"], {**typed, "user": "ann"}, zone=ZURICH) == {
        "user_id": "ann",
        "facts": [fact | {"tier": "context"}],
        "source": "user_noted",
    }
    assert new_fact_of(KINDS["insights"], {**typed, "type": "client", "subject": "acme"}, zone=ZURICH) == {
        "subject": {"type": "client", "id": "acme"},
        "facts": [fact],
        "source": "user_noted",
    }
    for kind in KINDS.values():
        with pytest.raises(WrongField, match="is about one"):
            new_fact_of(kind, typed, zone=ZURICH)


def test_an_untouched_form_changes_nothing_of_a_fact():
    found = fact_of(
        text="a \u202e b", tier="core", confidence=0.8, keywords=("x", "y"), expires_at="2027-01-31T11:00:30Z"
    )
    shown = shown_fact(found, ZURICH)

    assert facts.change_of(found, {name: v.replace("\n", "\r\n") for name, v in shown.items()}, zone=ZURICH) == {}
    assert facts.change_of(found, {**shown, "importance": "9", "expires_at": ""}, zone=ZURICH) == {
        "importance": 9,
        "expires_at": None,
    }


def test_links_of_a_subject_are_typed_one_a_line():
    assert subjects.links_of("owns company/acme\r\n works with  person/a/b ") == [
        {"kind": "owns", "type": "company", "id": "acme"},
        {"kind": "works with", "type": "person", "id": "a/b"},
    ]
    with pytest.raises(WrongField, match="owns company/acme"):
        subjects.links_of("company/acme")


def test_an_untouched_form_saves_a_subject_as_it_was():
    links = (SubjectLink(type="client", id="a/b", kind="rival\u202e of"),)
    found = Subject(type="client", id="x", name="a\u202eb", attributes={"n": "\u202e"}, links=links).model_dump(
        mode="json"
    )
    typed = {name: visible(value).replace("\n", "\r\n") for name, value in subjects.shown_subject(found).items()}

    assert subjects.saved_subject(found, typed) == {name: found[name] for name in ("name", "attributes", "links")}


def test_a_receipt_is_followed_until_it_is_whole():
    begun = Forgetting(
        forget_id="forget_1", what="user", step="stopping", user_id=PAYLOAD, name_sha256="a", asked_at=NOW
    )
    store = StoreReceipt(store="tracing", counts={"spans": 12}, kept={"ledger_rows": 3})
    done = begun.model_copy(update={"step": "done", "user_id": None, "receipt": (store,), "left": {}, "done_at": NOW})
    running, whole = receipt_page(begun), receipt_page(done)

    assert 'hx-trigger="every 2s"' in running and "<script>alert" not in running and "\u202e" not in running
    assert "hx-trigger" not in whole and "not named any more" in whole
    assert "spans" in whole and "ledger rows" in whole and "<dd>0</dd>" in whole


@pytest.mark.parametrize(
    ("scopes", "own", "user", "may"),
    [
        (["read", "admin"], None, "ann", True),
        (["read", "write"], None, "ann", False),
        (["read", "write"], "ann", "ann", True),
        (["read", "write"], "ann", "bob", False),
        (["read"], "ann", "ann", False),
        (["read", "write"], "ann", "", False),
    ],
)
def test_only_an_administrator_and_the_user_may_forget(scopes: list[str], own: str | None, user: str, may: bool):
    assert forgetting.may_forget({"scopes": scopes, "user_id": own}, user) is may
