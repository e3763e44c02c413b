"""The first run on an empty data directory: ingest sample documents, and show one job."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from wayline.client import Address, Client, File, upload_documents, whole_trace
from wayline.standalone.setup.installation import Installation
from wayline.standalone.terminal import job_views
from wayline.standalone.terminal.job_progress import JobProgress

QUESTION = "What is a job in Wayline, and what happens to it when a process is killed?"
# Not README.md: it shows this very run, and the answer would quote its own output.
NEAR = ("CONTRIBUTING.md",)
FOLDERS = ("docs", "libs", "services")
REPOSITORY_MARK = "requirements.lock"
FIRST_JOB_WAIT_S = 60.0


async def show_sample(installation: Installation, *, gateway: str, console: Console) -> None:
    """Ingest the sample and run the first job, once for each data directory."""
    if installation.sampled.exists():
        return
    async with Client(Address(gateway)) as client:
        # A user with documents of their own needs no sample.
        if (await client.get("/v1/documents", limit=1))["documents"]:
            installation.sampled.touch()
            return
        console.print("[bold]First run[/bold]: sample knowledge, then one job.\n")
        await _ingest(client, sample_files(Path.cwd()), console)
        await _first_job(client, console)
    installation.sampled.touch()
    console.print("\nThat was the first job. `wayline ingest PATH` adds documents of yours; the next job is below.")


def sample_files(here: Path) -> list[File]:
    """Return the Markdown files of Wayline's repository when run in it, otherwise the bundled text."""
    if not ((here / REPOSITORY_MARK).exists() and (here / "services" / "standalone").is_dir()):
        bundled = Path(str(files("wayline.standalone") / "sample.md"))
        return [File(bundled, "wayline.md")]
    found = [here / name for name in NEAR if (here / name).exists()]
    for folder in FOLDERS:
        pattern = "**/*.md" if folder == "docs" else "*/README.md"
        found += sorted((here / folder).glob(pattern))
    return [File(path, path.relative_to(here).as_posix()) for path in found]


async def _ingest(client: Client, sample: list[File], console: Console) -> None:
    columns = (TextColumn("  ingesting"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[name]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(sample), name="")

        def done(file: File, document: dict[str, Any]) -> None:
            bar.update(task, advance=1, name=file.name)
            if document["status"] == "failed":
                console.print(f"  [red]failed[/red] {escape(file.name)}: {escape(document['error'])}")

        outcome = await upload_documents(client, sample, done=done)
    ready = [document for _, document in outcome if document["status"] == "ready"]
    console.print(f"  documents: {len(ready)}, passages: {sum(document['chunks_done'] for document in ready)}\n")


async def _first_job(client: Client, console: Console) -> None:
    console.print(f'[bold]wayline run "{QUESTION}"[/bold]', soft_wrap=True)
    accepted = await client.submit({"agent": "assistant", "input": QUESTION})
    with JobProgress(console) as progress:
        async with asyncio.timeout(FIRST_JOB_WAIT_S):
            job = await client.follow(accepted["job_id"], on_event=progress.show)
    console.print(job_views.job_end(job), soft_wrap=True)
    console.print(f"\n[bold]wayline trace {job['job_id']}[/bold]")
    console.print(job_views.trace_tree(await whole_trace(client, job["job_id"])), soft_wrap=True)
