"""The commands `wayline webhooks`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from wayline.standalone.commands.output import AsJson, answer

app = typer.Typer(help="Where is told what happens.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="What the webhook is called.")]


@app.command("list")
def list_webhooks(
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the webhooks: where each sends, whether it is enabled, what waits."""
    from wayline.standalone.terminal.webhook_views import webhooks_table

    answer(lambda client: client.get("/v1/webhooks", limit=limit, cursor=cursor), as_json=as_json, draw=webhooks_table)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a webhook, and why it was disabled where it was."""
    from wayline.standalone.terminal.webhook_views import webhook_details

    answer(lambda client: client.get(f"/v1/webhooks/{name}"), as_json=as_json, draw=webhook_details)


@app.command()
def create(
    name: Name,
    url: Annotated[str, typer.Argument(help="A public address.")],
    *,
    event: Annotated[list[str] | None, typer.Option(help="Only these events. Can be repeated.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only of jobs of these agents. Can be repeated.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="KEY:VALUE", help="Only of jobs with one of these. Can be repeated.")
    ] = None,
    content: Annotated[bool, typer.Option("--content", help="Send the words of answers and errors as well.")] = False,
    description: Annotated[str, typer.Option(help="What it is for.")] = "",
    disabled: Annotated[bool, typer.Option("--disabled", help="Keep it; send nothing yet.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Change the one of this name, or enable it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a webhook, and print its secret: it is shown this once."""
    from wayline.standalone.terminal.webhook_views import webhook_details

    chosen = {"events": event, "agents": agent, "tags": tag, "description": description, "content": content}
    body: dict[str, Any] = {"url": url, "enabled": not disabled, **{key: one for key, one in chosen.items() if one}}
    answer(lambda client: client.put_webhook(name, body, create=not replace), as_json=as_json, draw=webhook_details)


@app.command()
def test(name: Name, as_json: AsJson = False) -> None:
    """Send a test event once, and print what was answered."""
    from wayline.standalone.terminal.webhook_views import delivery_line

    answer(lambda client: client.test_webhook(name), as_json=as_json, draw=delivery_line)


@app.command()
def rotate(name: Name, as_json: AsJson = False) -> None:
    """Make a new secret and print it: for a day the one before signs as well."""
    from wayline.standalone.terminal.webhook_views import webhook_details

    answer(lambda client: client.post(f"/v1/webhooks/{name}/rotate"), as_json=as_json, draw=webhook_details)


@app.command()
def deliveries(
    name: Name,
    *,
    state: Annotated[Literal["pending", "delivered", "failed"] | None, typer.Option(help="Only these.")] = None,
    job: Annotated[str | None, typer.Option(help="Only of this job.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=50)] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what was sent, newest first, and what came back."""
    from wayline.standalone.terminal.webhook_views import deliveries_table

    answer(
        lambda client: client.webhook_deliveries(name, status=state, job_id=job, limit=limit, cursor=cursor),
        as_json=as_json,
        draw=deliveries_table,
    )


@app.command()
def redeliver(
    name: Name,
    delivery: Annotated[str | None, typer.Argument(help="One; unless given, those that were given up.")] = None,
    as_json: AsJson = False,
) -> None:
    """Send deliveries again, under the ids that they had."""
    answer(
        lambda client: client.redeliver(name, delivery),
        as_json=as_json,
        draw=lambda sent: f"{sent['deliveries']} sent again{', and there are more' if sent['more'] else ''}",
    )


@app.command()
def delete(name: Name, as_json: AsJson = False) -> None:
    """Delete a webhook with its secret and its deliveries."""
    answer(lambda client: client.delete(f"/v1/webhooks/{name}"), as_json=as_json, draw=lambda _: f"{name} is deleted")
