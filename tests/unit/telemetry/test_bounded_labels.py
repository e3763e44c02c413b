"""Names that tenants choose make a bounded number of labels, whoever comes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wayline.telemetry.bounded_labels import NAME_MAX_CHARS, OTHER, BoundedLabels


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=3), st.sampled_from(["a", "b", "c"])), max_size=60),
    st.integers(1, 8),
    st.integers(1, 4),
)
def test_labels_never_exceed_the_limit_or_a_tenants_share(names: list[tuple[str, str]], most: int, share: int):
    label = BoundedLabels(most=most, per_tenant_max=share)
    brought: dict[str, set[str]] = {}
    labels = set[str]()
    for name, tenant in names:
        shown = label(name, tenant)
        assert shown in (name, OTHER)
        if shown != OTHER and shown not in labels:
            brought.setdefault(tenant, set()).add(shown)
            labels.add(shown)

    assert len(labels) <= most
    assert all(len(own) <= share for own in brought.values())


def test_one_tenants_names_leave_room_for_those_of_others():
    label = BoundedLabels(most=10, per_tenant_max=3)

    hostile = [label(f"junk-{n}", "hostile") for n in range(100)]

    assert hostile == ["junk-0", "junk-1", "junk-2", *[OTHER] * 97]
    assert label("assistant", "acme") == "assistant"
    assert label("junk-1", "acme") == "junk-1"
    assert label("n" * (NAME_MAX_CHARS + 1), "acme") == OTHER
