"""The commands `wayline tenants` and `wayline keys`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from wayline.standalone.commands.arguments import fail
from wayline.standalone.commands.output import AsJson, answer
from wayline.standalone.commands.times import future_time

tenants = typer.Typer(help="Whose jobs, agents, documents and money are kept apart.", no_args_is_help=True)
keys = typer.Typer(help="API keys: who may call, as which tenant, and do what.", no_args_is_help=True)

TenantName = Annotated[str, typer.Argument(metavar="TENANT", help="A lower-case name, for instance acme.")]


@tenants.command("create")
def create_tenant(tenant: TenantName, as_json: AsJson = False) -> None:
    """Create a tenant with the bundled agents; its first key is made with `wayline keys create --tenant`."""
    answer(
        lambda client: client.post("/v1/tenants", {"tenant": tenant}),
        as_json=as_json,
        draw=lambda created: (
            f"tenant {created['tenant']} exists now; make a key for it with "
            f"`wayline keys create --tenant {created['tenant']} --name NAME`"
        ),
    )


@tenants.command("list")
def list_tenants(
    limit: Annotated[int, typer.Option(min=1, max=500)] = 100,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List all tenants, by name."""
    from wayline.standalone.terminal.list_views import tenants_table

    answer(lambda client: client.get("/v1/tenants", limit=limit, cursor=cursor), as_json=as_json, draw=tenants_table)


@tenants.command("show")
def show_tenant(tenant: TenantName, as_json: AsJson = False) -> None:
    """Show one tenant."""
    _show(lambda client: client.get(f"/v1/tenants/{tenant}"), as_json=as_json)


@tenants.command("disable")
def disable_tenant(
    tenant: TenantName,
    reason: Annotated[str, typer.Option(help="Its callers are told.")] = "",
    as_json: AsJson = False,
) -> None:
    """Refuse a tenant's API keys and its new jobs; jobs that run go on."""
    _show(lambda client: client.post(f"/v1/tenants/{tenant}/disable", {"reason": reason}), as_json=as_json)


@tenants.command("enable")
def enable_tenant(tenant: TenantName, as_json: AsJson = False) -> None:
    """Accept a disabled tenant's API keys and jobs again."""
    _show(lambda client: client.post(f"/v1/tenants/{tenant}/enable"), as_json=as_json)


def _show(work: Any, *, as_json: bool) -> None:
    from wayline.standalone.terminal.list_views import tenants_table

    answer(work, as_json=as_json, draw=lambda shown: tenants_table({"tenants": [shown]}))


@keys.command("create")
def create_key(
    *,
    name: Annotated[str, typer.Option(help="Whose or what it is for; jobs and signals say it.")],
    tenant: Annotated[str | None, typer.Option(help="Left out: the tenant of the key that you use.")] = None,
    scopes: Annotated[
        str,
        typer.Option(
            metavar="SCOPES", help="Comma-separated: read, write, tools, approve, memory:release, admin, operator."
        ),
    ] = "read,write",
    user: Annotated[
        str | None, typer.Option(help="For whom it acts, and for nobody else; left out: for any user.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="30d, 12h, or a date (UTC); left out: never.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key and show it, once."""
    from wayline.standalone.terminal.list_views import new_key

    body: dict[str, Any] = {
        "name": name,
        "tenant": tenant,
        "scopes": [scope.strip() for scope in scopes.split(",") if scope.strip()],
        "user_id": user,
        "expires_at": None if expires is None else _expiry(expires).isoformat(),
    }
    answer(lambda client: client.post("/v1/keys", body), as_json=as_json, draw=new_key)


@keys.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Left out: the tenant of the key that you use.")] = None,
    revoked: Annotated[bool, typer.Option("--all", help="Also those that were revoked or have expired.")] = False,
    as_json: AsJson = False,
) -> None:
    """List a tenant's API keys, newest first, without their secrets."""
    from wayline.standalone.terminal.list_views import keys_table

    answer(
        lambda client: client.whole("/v1/keys", "keys", tenant=tenant, revoked=str(revoked).lower()),
        as_json=as_json,
        draw=keys_table,
    )


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(metavar="ID", help="As `wayline keys list` shows it.")], as_json: AsJson = False
) -> None:
    """Revoke an API key: every gateway refuses it within seconds."""
    wanted = key.removeprefix("wl_").split("_")[0]
    if not re.fullmatch(r"[0-9a-f]{16}", wanted):
        fail(f"{key!r} is no id of a key: `wayline keys list` shows them, sixteen digits and letters each")
    answer(
        lambda client: client.delete(f"/v1/keys/{wanted}"),
        as_json=as_json,
        draw=lambda reply: f"key {wanted} is revoked" if reply["revoked"] else f"key {wanted} was revoked already",
    )


def _expiry(text: str) -> datetime:
    try:
        return future_time(text, datetime.now(UTC))
    except ValueError as error:
        fail(f"--expires: {error}")
