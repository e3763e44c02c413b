"""The commands `wayline ingest`, `wayline search` and `wayline documents`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json, progress_console

if TYPE_CHECKING:
    from wayline.client import Client, File, Skipped
    from wayline.contracts.knowledge import Trust

SKIPPED = 3
"""The exit code when every file sent is ready, and some were skipped."""
SKIPPED_SHOWN_MAX = 20

app = typer.Typer(help="The documents that agents answer from.", no_args_is_help=True)

DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT", help="The document's name or id.")]


def ingest(
    paths: Annotated[
        list[Path] | None, typer.Argument(exists=True, help="Files, or folders with text, PDFs, Office files …")
    ] = None,
    *,
    name: Annotated[str | None, typer.Option(help="What citations will call it; for one file.")] = None,
    url: Annotated[
        list[str] | None, typer.Option(help="An address that the document is fetched from; repeatable.")
    ] = None,
    urls: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file with one address a line; # begins a comment."),
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Of folders only files like this, such as '*.md' or 'docs/*'; repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Of folders no files or folders like this; repeatable.")
    ] = None,
    untrusted: Annotated[
        bool | None,
        typer.Option("--untrusted/--trusted", help="Strangers wrote them: what they say taints the jobs that read it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add files and pages of the web to the knowledge, replacing those of the same name.

    Exit code 1: one of them failed. 3: some files of a folder were skipped, and all others are ready.
    """
    from wayline.client import File, find_files

    found = find_files(paths or (), include=include or (), exclude=exclude or ())
    files, addresses = found.files, [*(url or ()), *_addresses(urls)]
    if name is not None:
        if len(files) != 1 or addresses:
            print(f"wayline: --name is for one file; {len(files) + len(addresses)} were found", file=sys.stderr)
            raise typer.Exit(1)
        files = [File(files[0].path, name)]
    if not files and not addresses:
        _print_skipped(found.skipped)
        where = f" in {', '.join(map(str, paths))}: nothing that can be read" if paths else ""
        print(f"wayline: nothing to ingest{where}", file=sys.stderr)
        raise typer.Exit(1)
    trust: Trust | None = None if untrusted is None else "untrusted" if untrusted else "trusted"
    outcome = conversation(
        lambda client: _ingest(client, files, addresses, trust=trust, quiet=as_json), as_json=as_json
    )
    if as_json:
        skipped = [{"name": one.name, "reason": one.reason} for one in found.skipped]
        print_json({"documents": outcome, "skipped": skipped})
    else:
        _print_skipped(found.skipped)
        console().print(_summary(outcome, skipped=len(found.skipped)))
    failed = any(document["status"] == "failed" for document in outcome)
    raise typer.Exit(1 if failed else SKIPPED if found.skipped else 0)


def _addresses(file: Path | None) -> list[str]:
    """Return the addresses in a file, one on each line."""
    lines = [] if file is None else file.read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _summary(outcome: list[dict[str, Any]], *, skipped: int) -> str:
    failed = sum(document["status"] == "failed" for document in outcome)
    unchanged = sum(document.get("unchanged", False) for document in outcome)
    same = f" ({unchanged} unchanged)" if unchanged else ""
    chunks = sum(document["chunks_done"] for document in outcome)
    left = f", {skipped} skipped" if skipped else ""
    return f"{len(outcome) - failed} documents ready{same}, {chunks} chunks, {failed} failed{left}"


def _print_skipped(skipped: list[Skipped]) -> None:
    for one in skipped[:SKIPPED_SHOWN_MAX]:
        print(f"skipped {one.name}: {one.reason}", file=sys.stderr)
    if len(skipped) > SKIPPED_SHOWN_MAX:
        print(f"skipped {len(skipped) - SKIPPED_SHOWN_MAX} more; --json names them all", file=sys.stderr)


async def _ingest(
    client: Client, files: list[File], addresses: list[str], *, trust: Trust | None, quiet: bool
) -> list[dict[str, Any]]:
    from rich.progress import Progress

    from wayline.client import add_urls, upload_documents

    with Progress(console=progress_console(), disable=quiet, transient=True) as bar:
        task = bar.add_task("Ingesting", total=len(files) + len(addresses))

        def done(file: File | str, document: dict[str, Any]) -> None:
            bar.advance(task)
            if document["status"] == "failed":
                name = file if isinstance(file, str) else file.name
                bar.console.print(f"[red]failed[/red] {name}: {document['error']}", soft_wrap=True)

            elif document.get("near_duplicate_of"):
                share = f"{document['near_duplicate_share']:.0%}"
                bar.console.print(f"{document['name']}: {share} like {document['near_duplicate_of']}", soft_wrap=True)

        uploaded = await upload_documents(client, files, done=done, trust=trust)
        return [*(document for _, document in uploaded), *await add_urls(client, addresses, done=done, trust=trust)]


def search(
    query: Annotated[str, typer.Argument()],
    mode: Annotated[str, typer.Option(help="hybrid, keyword or vector")] = "hybrid",
    *,
    top_k: Annotated[int, typer.Option(min=1, max=200)] = 10,
    document_ids: Annotated[
        list[str] | None, typer.Option("--document-id", help="Only in this document; may be repeated.")
    ] = None,
    collections: Annotated[
        list[str] | None, typer.Option("--collection", help="Only in documents of this collection; may be repeated.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help='Conditions on the documents\' metadata, as JSON: {"year": {"gte": 2020}}.')
    ] = None,
    join_neighbours: Annotated[
        bool, typer.Option("--join-neighbours", help="Make one hit of passages that stand side by side.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find passages."""
    from wayline.standalone.terminal.list_views import passages

    asked: dict[str, Any] = {"query": query, "mode": mode, "top_k": top_k}
    named = {"document_ids": document_ids, "collections": collections}
    # An empty list would ask for none of them.
    chosen: dict[str, Any] = {field: names for field, names in named.items() if names}
    if where is not None:
        chosen["where"] = _json_object(where, option="--where")
    asked |= {"filter": chosen} if chosen else {}
    asked |= {"join_neighbours": True} if join_neighbours else {}
    answer(lambda client: client.post("/v1/search", asked), as_json=as_json, draw=passages)


@app.command("list")
def list_documents(
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    name: Annotated[str | None, typer.Option(help="Only documents of this name; * stands for anything.")] = None,
    status: Annotated[str | None, typer.Option(help="Only those that are queued, indexing, ready or failed.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the documents, newest first."""
    from wayline.standalone.terminal.list_views import documents_table

    page = answer(
        lambda client: client.get("/v1/documents", limit=limit, cursor=cursor, name=name, status=status),
        as_json=as_json,
        draw=documents_table,
    )
    if page["next_cursor"] and not as_json:
        print(f"there are more: wayline documents list {_filter_options(name, status)}--cursor {page['next_cursor']}")


def _filter_options(name: str | None, status: str | None) -> str:
    """Return the filters of a list as command-line options."""
    options = [f"--name {shlex.quote(name)} "] if name else []
    return "".join([*options, f"--status {status} "] if status else options)


@app.command()
def show(document: DocumentId, as_json: AsJson = False) -> None:
    """Show one document and how far its ingestion is."""
    from wayline.client import find_document
    from wayline.standalone.terminal.list_views import documents_table

    answer(
        lambda client: find_document(client, document),
        as_json=as_json,
        draw=lambda shown: documents_table({"documents": [shown]}),
    )


@app.command()
def delete(document: DocumentId, as_json: AsJson = False) -> None:
    """Delete a document and its passages, by its name or its id."""

    async def delete_found(client: Client) -> Any:
        from wayline.client import document_path, find_document

        return await client.delete(document_path((await find_document(client, document))["document_id"]))

    answer(
        delete_found,
        as_json=as_json,
        draw=lambda deleted: f"{deleted['document_id']} is deleted, with {deleted['chunks_deleted']} chunks",
    )


@app.command()
def change(
    document: DocumentId,
    *,
    name: Annotated[str | None, typer.Option(help="What citations will call it.")] = None,
    metadata: Annotated[str | None, typer.Option(help="A JSON object, in place of all that it has.")] = None,
    collection: Annotated[str | None, typer.Option(help="Where it belongs; empty: nowhere.")] = None,
    audience: Annotated[
        list[str] | None, typer.Option(help="Who may find it: a user id or a group; repeatable.")
    ] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Everybody may find it.")] = False,
    valid_until: Annotated[
        str | None, typer.Option(help="From then on no search finds it, as in 2027-01-31T00:00:00Z; empty: always.")
    ] = None,
    untrusted: Annotated[bool | None, typer.Option("--untrusted/--trusted", help="Whether strangers wrote it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change what describes a document, without indexing it again."""
    from wayline.client import change_document
    from wayline.standalone.terminal.list_views import documents_table

    options = {"name": name, "collection": collection, "valid_until": valid_until, "audience": audience or None}
    body: dict[str, Any] = {field: value for field, value in options.items() if value is not None}
    body |= {field: None for field in ("collection", "valid_until") if body.get(field) == ""}
    if metadata is not None:
        body["metadata"] = _json_object(metadata)
    if everybody:
        body["audience"] = None
    if untrusted is not None:
        body["trust"] = "untrusted" if untrusted else "trusted"
    if not body:
        print("wayline: say what is to be changed, see `wayline documents change --help`", file=sys.stderr)
        raise typer.Exit(2)
    answer(
        lambda client: change_document(client, document, body),
        as_json=as_json,
        draw=lambda shown: documents_table({"documents": [shown]}),
    )


def _json_object(text: str, *, option: str = "--metadata") -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        print(f"wayline: {option} {text[:100]!r} is no JSON object", file=sys.stderr)
        raise typer.Exit(2)
    return value


@app.command()
def reindex(document: DocumentId, as_json: AsJson = False) -> None:
    """Read, cut and embed a document once more, from the bytes that are kept of it."""
    from wayline.client import reindex_document
    from wayline.standalone.terminal.list_views import documents_table

    answer(
        lambda client: reindex_document(client, document),
        as_json=as_json,
        draw=lambda shown: documents_table({"documents": [shown]}),
    )


@app.command()
def chunks(
    document: DocumentId,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the passages of a document, and whether searches by meaning find each."""
    from wayline.standalone.terminal.list_views import chunks_table

    async def page_of(client: Client) -> Any:
        from wayline.client import document_path, find_document

        path = document_path((await find_document(client, document))["document_id"])
        return await client.get(f"{path}/chunks", limit=limit, cursor=cursor)

    page = answer(page_of, as_json=as_json, draw=chunks_table)
    if page["next_cursor"] and not as_json:
        print(f"there are more: wayline documents chunks {shlex.quote(document)} --cursor {page['next_cursor']}")
