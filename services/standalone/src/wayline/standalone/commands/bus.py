"""Credentials for clients of the bus."""

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
        str, typer.Option(help="Comma-separated: submit (jobs), signal (cancel, answer), follow (events, text).")
    ] = "submit,follow",
    as_json: AsJson = False,
) -> None:
    """Make a credential and print its seed, once; the bus knows it at once."""
    from wayline.standalone.commands.error_exit import plainly

    with plainly():
        from wayline.standalone import bus_access

        wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
        made, seed, told = bus_access.create(name, tenant=tenant, scopes=wanted)
    if as_json:
        print_json({**made.as_json(), "seed": seed, "servers_told": told.servers})
        return
    print(seed)
    typer.echo(f"{name} may {', '.join(made.scopes)} as tenant {tenant}. Its seed is shown only now.", err=True)
    typer.echo(told.words, err=True)


@credentials.command("write")
def write_accounts(as_json: AsJson = False) -> None:
    """Write the accounts of services and credentials for a bus of your own, and have it read them if it runs."""
    from wayline.standalone.commands.error_exit import plainly

    with plainly():
        from wayline.standalone import bus_access

        told = bus_access.write()
    if as_json:
        print_json({"file": str(told.file), "servers_told": told.servers})
        return
    print(told.file)
    typer.echo(told.words, err=True)


@credentials.command("list")
def list_credentials(as_json: AsJson = False) -> None:
    """List every credential, without its seed."""
    from wayline.standalone.commands.error_exit import plainly

    with plainly():
        from wayline.standalone import bus_access
        from wayline.standalone.terminal.views import credentials_table

        kept = [one.as_json() for one in bus_access.kept()]
    if as_json:
        print_json({"credentials": kept})
    else:
        from wayline.standalone.commands.output import console

        console().print(credentials_table(kept), soft_wrap=True)


@credentials.command("revoke")
def revoke_credential(name: Name, as_json: AsJson = False) -> None:
    """Take a credential away; whoever is connected with it is cut off."""
    from wayline.standalone.commands.error_exit import plainly

    with plainly():
        from wayline.standalone import bus_access

        gone, told = bus_access.revoke(name)
    if as_json:
        print_json({**gone.as_json(), "servers_told": told.servers})
        return
    print(f"{name} may connect no more")
    typer.echo(told.words, err=True)
