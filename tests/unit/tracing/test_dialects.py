"""Receivers' own names are added to what is forwarded, and no token or dollar is named twice."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from wayline.contracts.errors import WrongSetting
from wayline.tracing.adapters.dialects import SAID, Dialect
from wayline.tracing.adapters.otlp_exporter import dialects_of
from wayline.tracing.adapters.readable_spans import from_rows
from wayline.tracing.rows import SpanRow
from wayline.tracing.settings import Settings

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.cache_read.input_tokens": 60,
    "gen_ai.usage.cache_write.input_tokens": 30,
    "gen_ai.usage.output_tokens": 20,
    "gen_ai.usage.reasoning.output_tokens": 5,
}
ROOT = {"gen_ai.operation.name": "invoke_agent", "session.id": "s-1", "user.id": "u-1", "gen_ai.request.model": "m"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"}


def exported(attributes: dict[str, Any], *dialects: Dialect, cost_usd: str | None = None) -> dict[str, Any]:
    cost = None if cost_usd is None else Decimal(cost_usd)
    at = datetime(2026, 5, 1, tzinfo=UTC)
    row = SpanRow(
        *("a" * 32, "b" * 16, at, "acme", None, None, "executor", "span", "client", 1.0, "ok"),
        *(orjson.dumps(attributes).decode(), None, None, None, cost, 1),
    )
    [span] = from_rows([row], dialects=dialects)
    # As it goes over the wire: what the exporter cannot encode would be lost.
    [encoded] = encode_spans([span]).resource_spans[0].scope_spans[0].spans
    assert {attribute.key for attribute in encoded.attributes} == dict(span.attributes or {}).keys()
    return dict(span.attributes or {})


def test_without_a_dialect_nothing_is_added():
    assert exported(CHAT, cost_usd="0.01") == CHAT


def test_every_dialect_leaves_the_conventions_names_as_they_are():
    for attributes in (CHAT, ROOT, TOOL):
        said = exported(attributes, *SAID, cost_usd="0.01")

        assert attributes.items() <= said.items()


def test_openinference_has_kinds_and_tokens_with_their_parts():
    said = exported(CHAT, "openinference", cost_usd="0.25")

    assert (said["openinference.span.kind"], said["llm.model_name"], said["llm.cost.total"]) == ("LLM", "m", 0.25)
    assert (said["llm.token_count.prompt"], said["llm.token_count.completion"]) == (100, 20)
    assert said["llm.token_count.prompt_details.cache_read"] == 60
    assert exported(ROOT, "openinference")["openinference.span.kind"] == "AGENT"
    assert exported(TOOL, "openinference")["tool.name"] == "pay"


def test_langfuse_counts_each_token_once_and_has_the_session():
    said = exported(CHAT, "langfuse", cost_usd="0.25")
    root = exported(ROOT, "langfuse")

    used = orjson.loads(said["langfuse.observation.usage_details"])
    assert used.pop("total") == sum(used.values()) == 120
    assert orjson.loads(said["langfuse.observation.cost_details"]) == {"total": 0.25}
    assert said["langfuse.observation.type"] == "generation"
    assert (root["langfuse.session.id"], root["langfuse.user.id"]) == ("s-1", "u-1")


def test_mlflow_gets_the_cost_of_calls_and_none_of_the_job():
    said = exported(CHAT, "mlflow", cost_usd="0.25")
    root = exported(ROOT, "mlflow")

    assert said["mlflow.llm.cost"] == {"total_cost": 0.25}
    assert said["mlflow.chat.tokenUsage"]["total_tokens"] == 120
    assert "mlflow.llm.cost" not in root
    assert (root["mlflow.trace.session"], root["mlflow.spanType"]) == ("s-1", "AGENT")


def test_an_unknown_dialect_is_a_wrong_setting():
    assert dialects_of(Settings(dialects=" MLflow, langfuse")) == ("langfuse", "mlflow")
    with pytest.raises(WrongSetting, match="WAYLINE_TRACING_DIALECTS"):
        dialects_of(Settings(dialects="klingon"))
