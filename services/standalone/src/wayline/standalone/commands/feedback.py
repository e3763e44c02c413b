"""The command `wayline feedback`."""

from __future__ import annotations

from typing import Annotated

import typer

from wayline.standalone.commands.jobs import JobId
from wayline.standalone.commands.output import AsJson, answer


def feedback(
    *,
    job: JobId,
    up: Annotated[bool, typer.Option("--up", help="It was good.")] = False,
    down: Annotated[bool, typer.Option("--down", help="It was not.")] = False,
    score: Annotated[float | None, typer.Option(min=0, max=1, help="How good: 0 is the worst, 1 the best.")] = None,
    label: Annotated[str | None, typer.Option(help="A word of yours.")] = None,
    comment: Annotated[str, typer.Option(help="Why.")] = "",
    key: Annotated[str, typer.Option(help="What is judged, such as helpful.")] = "feedback",
    by: Annotated[str | None, typer.Option(help="Who thinks so; otherwise the API key's user, or its name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a job, or list what was said of it. Who judges the same key again replaces what they said."""
    from wayline.standalone.terminal.job_views import feedback_table

    if up + down + (label is not None) > 1:
        raise typer.BadParameter("give one of --up, --down and --label")
    label = "up" if up else "down" if down else label
    if label is None and score is None:
        if comment or by:
            raise typer.BadParameter("say what you think: --up, --down, --score or --label")
        answer(lambda client: client.get(f"/v1/jobs/{job}/feedback"), as_json=as_json, draw=feedback_table)
        return
    body = {"label": label, "score": score, "comment": comment, "key": key, "by": by}
    answer(lambda client: client.post(f"/v1/jobs/{job}/feedback", body), as_json=as_json, draw=feedback_table)
