"""A metric's label has so many values, whatever jobs name."""

from wayline.llm.labels import ModelLabels
from wayline.telemetry.bounded_labels import OTHER, BoundedLabels


def test_labels_name_catalogue_models_and_a_bounded_number_of_others():
    label = ModelLabels(BoundedLabels(most=2))
    junk = [f"junk-{n}" for n in range(1_000)]

    labels = [label(name) for name in (*junk, "claude-haiku-5-5", "openai/gpt-6-sol", *junk)]

    assert set(labels) == {"junk-0", "junk-1", "claude-haiku-5-5", "openai/gpt-6-sol", OTHER}
    assert [label(name) for name in junk[:3]] == ["junk-0", "junk-1", OTHER]
