"""The commands `wayline tenants` and `wayline keys`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from wayline.standalone.commands.arguments import fail
from wayline.standalone.commands.output import AsJson, answer
from wayline.standalone.commands.rates import rate_of, read_place, read_rate
from wayline.standalone.commands.times import future_time

tenants = typer.Typer(help="Whose jobs, agents, documents and money are kept apart.", no_args_is_help=True)
keys = typer.Typer(help="API keys: who may call, as which tenant, and do what.", no_args_is_help=True)

KeyId = Annotated[str, typer.Argument(metavar="ID", help="As `wayline keys list` shows it.")]
KeyRate = Annotated[
    str | None,
    typer.Option(metavar="RATE", help="How many a minute, with :BURST how many at once, or none; left out: as it was."),
]
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


@tenants.command("weight")
def set_tenant_weight(
    tenant: TenantName,
    weight: Annotated[int, typer.Argument(min=1, max=100, help="1 for most, 5 for five times as many jobs.")],
    as_json: AsJson = False,
) -> None:
    """Set how much of a lane a tenant gets while others wait there too: jobs begin in proportion to the weights."""
    _show(lambda client: client.post(f"/v1/tenants/{tenant}/weight", {"weight": weight}), as_json=as_json)


@tenants.command("limits")
def tenant_limits(
    tenant: TenantName,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="WHOSE.WHAT=RATE",
            help="tenant, key or user; requests or jobs; a minute's number, with :BURST how many at once, or none. For "
            "instance tenant.requests=6000:1000.",
        ),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="WHOSE.WHAT", help="As the installation's settings say.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="All as the installation's settings say.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or set how many requests and jobs a tenant, each of its keys and each of its users may send."""
    from wayline.standalone.terminal.limit_views import limits_table

    path = f"/v1/tenants/{tenant}/limits"
    wanted = [*map(read_rate, changes or ()), *((*read_place(place), None) for place in unset or ())]

    async def change(client: Any) -> Any:
        shown = await client.get(path)
        if reset and shown["limits"] is not None:
            await client.delete(path)
            shown = await client.get(path)
        if not wanted:
            return shown
        limits = {whose: dict(meters) for whose, meters in (shown["limits"] or {}).items()}
        for whose, meter, rate in wanted:
            limits.setdefault(whose, {})[meter] = rate
        return await client.put(path, limits)

    answer(change, as_json=as_json, draw=limits_table)


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
            metavar="SCOPES",
            help="Comma-separated: read, write, tools, approve, memory:release, webhooks, admin, operator.",
        ),
    ] = "read,write",
    user: Annotated[
        str | None, typer.Option(help="For whom it acts, and for nobody else; left out: for any user.")
    ] = None,
    requests: KeyRate = None,
    jobs: KeyRate = None,
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
        "limits": _key_limits(requests=requests, jobs=jobs),
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


@keys.command("limits")
def key_limits(
    key: KeyId,
    requests: KeyRate = None,
    jobs: KeyRate = None,
    reset: Annotated[bool, typer.Option("--reset", help="As its tenant's keys.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or set how many requests and jobs a key may send."""
    from wayline.standalone.terminal.limit_views import key_limits_text

    path = f"/v1/keys/{_key_id(key)}"

    async def change(client: Any) -> Any:
        if reset:
            return await client.patch(path, {"limits": None})
        shown = await client.get(path)
        changed = _key_limits(requests=requests, jobs=jobs)
        return (
            shown if changed is None else await client.patch(path, {"limits": {**(shown["limits"] or {}), **changed}})
        )

    answer(change, as_json=as_json, draw=key_limits_text)


@keys.command("revoke")
def revoke_key(key: KeyId, as_json: AsJson = False) -> None:
    """Revoke an API key: every gateway refuses it within seconds."""
    wanted = _key_id(key)
    answer(
        lambda client: client.delete(f"/v1/keys/{wanted}"),
        as_json=as_json,
        draw=lambda reply: f"key {wanted} is revoked" if reply["revoked"] else f"key {wanted} was revoked already",
    )


def _key_id(key: str) -> str:
    wanted = key.removeprefix("wl_").split("_")[0]
    if not re.fullmatch(r"[0-9a-f]{16}", wanted):
        fail(f"{key!r} is no id of a key: `wayline keys list` shows them, sixteen digits and letters each")
    return wanted


def _key_limits(*, requests: str | None, jobs: str | None) -> dict[str, Any] | None:
    given = {"requests": requests, "jobs": jobs}
    limits = {meter: rate_of(text) for meter, text in given.items() if text is not None}
    return limits or None


def _expiry(text: str) -> datetime:
    try:
        return future_time(text, datetime.now(UTC))
    except ValueError as error:
        fail(f"--expires: {error}")
