"""At which level public prompts stand: of sets that the levels were set on, and of sets held out from that.

    python -m tests.evals.routing.mix_of_prompts

The classifier's words were learned from the MMLU and GSM8K prompts; of these it says a little too much.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import pytest

from wayline.routing.complexity import assess

from ..shared import rows

Sets = dict[str, Sequence[str]]
NEUTRAL = (
    "You are a helpful assistant for our company. Please read the following message carefully and answer it "
    "politely and in complete sentences. Use a friendly tone, keep to the point, and do not include anything "
    "that is not needed for the answer.",
    "In this conversation the assistant replies to people who write to us during the day. It should be polite "
    "and to the point, use plain language, and end with a short greeting. What the person wrote stands below, "
    "and the reply goes to them directly.",
    "As a member of the support staff you handle incoming mail. Every message gets a courteous reply in plain "
    "words. There is no hurry, and nobody expects more than a good and honest answer to what was written by "
    "the sender below.",
    "Hello and welcome. Today we will go through a message together. Please have a look at it in peace, think "
    "about what the person would like to know, and then give a reply that is kind, useful and easy to "
    "understand for everybody.",
)
"""Instructions of about forty words that make no request harder."""


def set_on() -> Sets:
    """The prompts that the levels were set on."""
    answered = rows("routing-routellm-dev", "dev.jsonl.gz")
    return {
        "MMLU, every fourth": [row["prompt"] for row in answered if row["set"] == "mmlu"][::4],
        "GSM8K": [row["prompt"] for row in answered if row["set"] == "gsm8k"],
        "CLINC150, every fifth": texts("cluster-clinc150", "test.jsonl.gz")[::5],
        "MetaTool": texts("tools-metatool-dev", "queries.jsonl.gz"),
        "Seal-Tools": texts("tools-seal-dev", "queries.jsonl.gz"),
        "ToolRet APIGen": texts("tools-toolret-apigen", "queries.jsonl.gz"),
        "BFCL simple": calls("simple_python"),
        "BFCL parallel multiple": calls("parallel_multiple"),
        "tau2": [
            row["user"]["reason_for_call"]
            for name in ("retail", "telecom")
            for row in rows("agent-tau2", f"{name}.jsonl.gz")
        ],
        "LoCoMo": texts("memory-locomo-dev", "queries.jsonl.gz"),
    }


def held_out() -> Sets:
    """Prompts that nobody had looked at when the levels were set."""
    answered = [row["prompt"] for row in rows("routing-routellm-dev", "dev.jsonl.gz") if row["set"] == "mmlu"]
    requests = texts("cluster-clinc150", "test.jsonl.gz")
    return {
        "MMLU, the others": [text for n, text in enumerate(answered) if n % 4],
        "CLINC150, the others": [text for n, text in enumerate(requests) if n % 5],
        "BFCL multiple": calls("multiple"),
        "BFCL parallel": calls("parallel"),
        "SciFact": texts("ir-scifact-train", "queries.jsonl.gz"),
        "BFCL memory, notetaker": [
            turn[0]["content"] for row in rows("memory-bfcl", "prereq_notetaker.jsonl.gz") for turn in row["question"]
        ],
    }


def texts(*place: str) -> list[str]:
    return [row["text"] for row in rows(*place)]


def calls(name: str) -> list[str]:
    return [row["question"][0][-1]["content"] for row in rows("calls-bfcl-dev", f"{name}.jsonl.gz")]


@dataclass(frozen=True)
class Levels:
    """The share of prompts at each level."""

    prompts: int
    words: float
    simple: float
    complex: float


def levels(prompts: Sequence[str]) -> Levels:
    seen = [assess(text).level for text in prompts]
    share = {level: seen.count(level) / len(seen) for level in ("simple", "complex")}
    return Levels(len(prompts), median(len(text.split()) for text in prompts), share["simple"], share["complex"])


def of_mix(sets: Sets) -> Levels:
    """The mix in which every set weighs the same, however many prompts it has."""
    each = [levels(prompts) for prompts in sets.values()]
    means: dict[str, Any] = {name: fmean(getattr(one, name) for one in each) for name in ("words", "simple", "complex")}
    return Levels(sum(one.prompts for one in each), **means)


def moved(prompts: Iterable[str], instruction: str, between: str = "\n\n") -> int:
    """How many prompts stand at another level behind an instruction."""
    return sum(assess(text).level != assess(f"{instruction}{between}{text}").level for text in prompts)


def table(name: str, sets: Sets) -> str:
    mix = of_mix(sets)
    lines = [f"{name}: {mix.complex:.0%} complex, {mix.simple:.0%} simple, where every set weighs the same"]
    for part, prompts in sets.items():
        one = levels(prompts)
        lines.append(
            f"  {part:24s} {one.prompts:5d} prompts of about {one.words:3.0f} words: {one.complex:4.0%} complex, "
            f"{one.simple:4.0%} simple"
        )
    return "\n".join(lines)


def plain() -> list[str]:
    """450 plain requests of those held out."""
    return list(held_out()["CLINC150, the others"])[::8]


def table_of_moved() -> str:
    requests = plain()
    lines = [f"{len(requests)} plain requests behind a neutral instruction, on a line of its own / on the same line"]
    for instruction in NEUTRAL:
        counts = " / ".join(str(moved(requests, instruction, between)) for between in ("\n\n", " "))
        lines.append(f"  {instruction[:60]}…: {counts} moved")
    return "\n".join(lines)


def main() -> None:
    try:
        print(table("set on", set_on()), table("held out", held_out()), table_of_moved(), sep="\n")
    except pytest.skip.Exception as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()
