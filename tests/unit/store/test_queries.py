"""A queries.sql is read by name, and its mistakes by line."""

import copy
import pickle

import pytest

from wayline.store import Queries, QueriesInvalid, UnknownQuery

TEXT = """-- What the service asks of its tables.

-- name: insert_chunk
-- Twice is once.
INSERT INTO chunks VALUES ($1)
ON CONFLICT DO NOTHING;

--name: count_chunks
SELECT count(*) FROM chunks;
"""


def load(text: str) -> Queries:
    return Queries.parse(text, source="queries.sql")


def test_each_query_is_an_attribute_by_its_name():
    sql = load(TEXT)

    assert sql.insert_chunk == "-- Twice is once.\nINSERT INTO chunks VALUES ($1)\nON CONFLICT DO NOTHING"
    assert sql.count_chunks == "SELECT count(*) FROM chunks"
    assert dir(sql) == ["count_chunks", "insert_chunk"]


def test_an_unknown_query_raises_attribute_error_with_the_known_ones():
    with pytest.raises(UnknownQuery, match=r"queries.sql has no query 'delete'; it has: count_chunks, insert_chunk"):
        load(TEXT).delete  # noqa: B018
    assert not hasattr(load(TEXT), "delete")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "-- name: one\nSELECT 1;\n\n-- name: one\nSELECT 2;",
            "queries.sql:4: query 'one' was defined on line 1 already",
        ),
        ("-- name: Not A Name\nSELECT 1;", "queries.sql:1: 'Not A Name' is no query name"),
        ("-- name:\nSELECT 1;", "queries.sql:1: '' is no query name"),
        ("-- header\nSELECT 1;", "queries.sql:2: a statement before the first `-- name:`"),
        ("-- name: one\n-- nothing\n-- name: two\nSELECT 2;", "queries.sql:1: query 'one' is empty"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, problem: str):
    with pytest.raises(QueriesInvalid) as mistake:
        load(text)

    assert str(mistake.value).startswith(problem)


def test_queries_can_be_copied_and_pickled():
    assert copy.copy(load(TEXT)).count_chunks == load(TEXT).count_chunks
    assert pickle.loads(pickle.dumps(load(TEXT))).count_chunks == load(TEXT).count_chunks  # noqa: S301
