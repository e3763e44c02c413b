"""The command `wayline credentials`: credentials for clients of the bus."""

from __future__ import annotations

from typing import Annotated

import typer

from wayline.standalone.commands.output import AsJson, print_json

credentials = typer.Typer(help="Who may connect to the bus, as which tenant, and do what.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Yours to choose: lower-case letters, digits, - and _.")]


@credentials.command("create")
def create_credential(
    name: Name,
    tenant: Annotated[str, typer.Option(help="Whose jobs it is for.")],
    scopes: Annotated[
        str,
        typer.Option(
            help="Comma-separated: submit (jobs), signal (cancel, answer), approve (tool calls), follow (events, "
            "ends), tools (offer tools of a service)."
        ),
    ] = "submit,follow",
    as_json: AsJson = False,
) -> None:
    """Create a credential and print its seed, once; the bus accepts it at once."""
    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.bus import manage_clients

        wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
        made, seed, reload = manage_clients.create(name, tenant=tenant, scopes=wanted)
    if as_json:
        print_json({**made.as_json(), "seed": seed, "servers_told": reload.servers})
        return
    print(seed)
    typer.echo(f"{name} may {', '.join(made.scopes)} as tenant {tenant}. Its seed is shown only now.", err=True)
    typer.echo(reload.message, err=True)


@credentials.command("write")
def write_accounts(as_json: AsJson = False) -> None:
    """Write the accounts of services and credentials for a bus of your own, and have it read them if it runs."""
    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.bus import manage_clients

        reload = manage_clients.write()
    if as_json:
        print_json({"file": str(reload.file), "servers_told": reload.servers})
        return
    print(reload.file)
    typer.echo(reload.message, err=True)


@credentials.command("list")
def list_credentials(as_json: AsJson = False) -> None:
    """List every credential, without its seed."""
    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.bus import manage_clients
        from wayline.standalone.terminal.list_views import credentials_table

        credentials = [one.as_json() for one in manage_clients.clients()]
    if as_json:
        print_json({"credentials": credentials})
    else:
        from wayline.standalone.commands.output import console

        console().print(credentials_table(credentials), soft_wrap=True)


@credentials.command("revoke")
def revoke_credential(name: Name, as_json: AsJson = False) -> None:
    """Revoke a credential; clients connected with it are disconnected."""
    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.bus import manage_clients

        gone, reload = manage_clients.revoke(name)
    if as_json:
        print_json({**gone.as_json(), "servers_told": reload.servers})
        return
    print(f"{name} is revoked")
    typer.echo(reload.message, err=True)
