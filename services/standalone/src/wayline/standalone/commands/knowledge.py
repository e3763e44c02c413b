"""Documents in, passages out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json, progress_console

if TYPE_CHECKING:
    from wayline.standalone.client import Api
    from wayline.standalone.ingesting import File

app = typer.Typer(help="The documents that agents answer from.", no_args_is_help=True)

DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT", help="The document's id.")]


def ingest(
    paths: Annotated[list[Path], typer.Argument(exists=True, help="Files, or folders with .md .txt .rst .html .pdf.")],
    name: Annotated[str | None, typer.Option(help="What citations will call it; for one file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add files to the knowledge, replacing those of the same name. Exit code 1: one of them failed."""
    from wayline.standalone.ingesting import File, find_files

    files = list(find_files(paths))
    if name is not None:
        if len(files) != 1:
            print(f"wayline: --name is for one file; {len(files)} were found", file=sys.stderr)
            raise typer.Exit(1)
        files = [File(files[0].path, name)]
    if not files:
        print(
            f"wayline: nothing to ingest in {', '.join(map(str, paths))}: no .md .txt .rst .html .pdf", file=sys.stderr
        )
        raise typer.Exit(1)
    outcome = [document for _, document in conversation(lambda api: _ingest(api, files, as_json), as_json=as_json)]
    failed = [document for document in outcome if document["status"] == "failed"]
    if as_json:
        print_json({"documents": outcome})
    else:
        chunks = sum(document["chunks_done"] for document in outcome)
        console().print(f"{len(outcome) - len(failed)} documents ready, {chunks} chunks, {len(failed)} failed")
    raise typer.Exit(1 if failed else 0)


async def _ingest(api: Api, files: list[File], quiet: bool) -> Any:
    from rich.progress import Progress

    from wayline.standalone.ingesting import ingest as send

    with Progress(console=progress_console(), disable=quiet, transient=True) as bar:
        task = bar.add_task("Ingesting", total=len(files))

        def done(file: File, document: dict[str, Any]) -> None:
            bar.advance(task)
            if document["status"] == "failed":
                bar.console.print(f"[red]failed[/red] {file.name}: {document['error']}", soft_wrap=True)

        return await send(api, files, done=done)


def search(
    query: Annotated[str, typer.Argument()],
    mode: Annotated[str, typer.Option(help="hybrid, keyword or vector")] = "hybrid",
    top_k: Annotated[int, typer.Option(min=1, max=200)] = 10,
    as_json: AsJson = False,
) -> None:
    """Find passages."""
    from wayline.standalone.drawing import hits

    answer(
        lambda api: api.post("/v1/search", {"query": query, "mode": mode, "top_k": top_k}), as_json=as_json, draw=hits
    )


@app.command("list")
def list_documents(
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """The documents there are."""
    from wayline.standalone.drawing import documents_table

    answer(lambda api: api.get("/v1/documents", limit=limit, cursor=cursor), as_json=as_json, draw=documents_table)


@app.command()
def show(document: DocumentId, as_json: AsJson = False) -> None:
    """One document and how far its ingestion is."""
    from wayline.standalone.drawing import documents_table

    answer(
        lambda api: api.get(f"/v1/documents/{document}"),
        as_json=as_json,
        draw=lambda said: documents_table({"documents": [said]}),
    )


@app.command()
def delete(document: DocumentId, as_json: AsJson = False) -> None:
    """Delete a document and its passages."""
    answer(
        lambda api: api.delete(f"/v1/documents/{document}"),
        as_json=as_json,
        draw=lambda said: f"{said['document_id']} is deleted, with {said['chunks_deleted']} chunks",
    )
