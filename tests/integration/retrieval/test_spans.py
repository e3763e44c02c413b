"""What retrieval does is seen in spans, and what was asked is not."""

from typing import Any

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.chassis import Service
from wayline.testkit import until


async def test_a_searchs_retrieval_span_has_children_and_no_content(service: Service, client: Any):
    exporter = InMemorySpanExporter()
    service.telemetry.add_processor(SimpleSpanProcessor(exporter))
    await client.ingest("d1", "The tortoise wins.", name="Fables")
    await client.search("which tortoise", top_k=7)

    def ended() -> dict[str, Any]:
        spans: dict[str, Any] = {span.name: span for span in exporter.get_finished_spans()}
        return spans if "process retrieval.search.{tenant}" in spans else {}

    spans = await until(ended, why="the search's span has ended")
    retrieval = spans["retrieval knowledge"]
    assert retrieval.kind.name == "CLIENT"
    assert retrieval.parent.span_id == spans["process retrieval.search.{tenant}"].context.span_id
    assert dict(retrieval.attributes) == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "knowledge",
        "gen_ai.retrieval.top_k": 7,
    }
    embedding = spans["embeddings lexical-hash-384"]
    assert dict(embedding.attributes) == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "wayline",
        "gen_ai.request.model": "lexical-hash-384",
        "gen_ai.embeddings.dimension.count": 384,
    }
    for leaf in (embedding, spans["SELECT retrieval.chunks"]):
        assert leaf.parent.span_id == retrieval.context.span_id
    assert "tortoise" not in "".join(repr(vars(span)) for span in exporter.get_finished_spans())
