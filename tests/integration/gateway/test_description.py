"""The OpenAPI description is complete, and the gateway keeps to it under requests nobody thought of."""

from __future__ import annotations

from .conftest import Running

STATUSES = {"401", "403", "422", "500", "503"}


async def test_every_operation_names_its_problems_and_has_an_example(gateway: Running):
    said = (await gateway.client.get("/openapi.json")).json()

    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in said["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/")
    }
    assert len(operations) >= 22
    for name, operation in operations.items():
        assert operation["responses"].keys() >= STATUSES, name
        problem = operation["responses"]["422"]["content"]
        assert problem == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/HttpProblem"}}}, name
        assert operation["security"] == [{"HTTPBearer": []}], name
        assert operation["description"], name
    assert said["components"]["schemas"]["SubmitBody"]["examples"]
    assert "HTTPValidationError" not in str(said)


async def test_the_docs_page_needs_no_other_server(gateway: Running):
    page = await gateway.client.get("/docs")

    assert page.headers["content-type"].startswith("text/html")
    assert "<script>" in page.text
    assert "<script src" not in page.text
    assert "<link" not in page.text
