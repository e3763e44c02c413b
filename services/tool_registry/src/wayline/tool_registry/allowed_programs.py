"""Which programs a tenant's server may be, and which variables each may be given."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import ServerConfig

VARIABLE = "WAYLINE_TOOL_REGISTRY_COMMANDS"
COMMAND_SHOWN_MAX = 300
"""Characters of a command line in an error."""

DECIDING_VARIABLES = frozenset(
    """
    PATH PATHEXT COMSPEC PSMODULEPATH SHELL HOME USERPROFILE APPDATA LOCALAPPDATA ENV IFS CDPATH PS4 SHELLOPTS
    PROMPT_COMMAND ZDOTDIR BROWSER EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE SSH_ASKPASS SUDO_ASKPASS
    VIRTUAL_ENV CLASSPATH JAVA_HOME JAVA_OPTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
    GOFLAGS GOENV GOPATH GOROOT GOPROXY GOSUMDB GONOSUMDB GOINSECURE GOTOOLCHAIN RUSTFLAGS RUSTC RUSTC_WRAPPER
    PHPRC PHP_INI_SCAN_DIR TCLLIBPATH R_HOME R_PROFILE R_ENVIRON R_LIBS KUBECONFIG
    OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SSLKEYLOGFILE SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
    CURL_CA_BUNDLE HOSTALIASES LOCALDOMAIN RES_OPTIONS GCONV_PATH LOCPATH NLSPATH GLIBC_TUNABLES ELECTRON_RUN_AS_NODE
    """.split()
)
DECIDING_PREFIXES = tuple(
    """
    LD_ DYLD_ BASH GIT_ XDG_ NODE_ NPM_ YARN_ PNPM_ COREPACK_ BUN_ DENO_ PYTHON PIP_ PIPX_ UV_ POETRY_ CONDA_
    PERL RUBY GEM_ BUNDLE_ MAVEN_ GRADLE_ DOTNET_ CORECLR_ COR_ COMPLUS_ CARGO_ RUSTUP_ LUA_ JULIA_ ERL_ ELIXIR_
    GUILE_ DOCKER_ CONTAINERS_ MALLOC_
    """.split()
)
"""Names, in capitals, of variables that loaders, interpreters, shells and package runners read: they decide which code
runs, or where it comes from. No such list is ever complete, so an entry of the operator's may name those allowed."""
HARMLESS_VARIABLES = frozenset(
    "NODE_ENV NODE_NO_WARNINGS PYTHONUNBUFFERED PYTHONUTF8 PYTHONIOENCODING PYTHONDONTWRITEBYTECODE".split()
)


class AllowedCommand(BaseModel):
    """A command that tenants' servers may be, and all variables that it may be given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str = Field(min_length=1, description="A name or path, or how the whole command line begins.")
    env: tuple[str, ...] = Field(description="Names of the variables; no other one can be set.")

    def __str__(self) -> str:
        return f"{self.command} (variables: {', '.join(self.env) or 'none'})"


AllowedCommands: TypeAlias = Sequence[str | AllowedCommand]


def require_program(config: ServerConfig, allowed: AllowedCommands) -> None:
    """Refuse a program, or a variable of it, that no entry allows. Raises Reject, saying who can allow it."""
    argv = (config.command or "", *config.args)
    entries = [entry for entry in allowed if _allows(entry, argv)]
    if not entries:
        raise _command_refused(argv, allowed)
    refused = [(entry, [name for name in config.env if not _allows_variable(entry, name)]) for entry in entries]
    if all(names for _, names in refused):
        raise _variables_refused(*min(refused, key=lambda one: len(one[1])))


def not_allowed(why: str) -> Reject:
    """Return the error of what a tenant may not save here."""
    return Reject(why, code="server_not_allowed", status=422)


def decides_what_runs(name: str) -> bool:
    """Return whether a variable may decide which code runs; not every program tells small letters from capitals."""
    name = name.upper()
    return name not in HARMLESS_VARIABLES and (name in DECIDING_VARIABLES or name.startswith(DECIDING_PREFIXES))


def _allows_variable(entry: str | AllowedCommand, name: str) -> bool:
    return not decides_what_runs(name) if isinstance(entry, str) else name in entry.env


def _allows(entry: str | AllowedCommand, argv: tuple[str, ...]) -> bool:
    """Return whether an entry of the list allows a program: by its command, or by how its whole command line begins."""
    line = entry if isinstance(entry, str) else entry.command
    if line == argv[0]:
        return True
    try:
        words = tuple(shlex.split(line))
    except ValueError:
        return False
    return len(words) > 1 and argv[: len(words)] == words


def _command_refused(argv: tuple[str, ...], allowed: AllowedCommands) -> Reject:
    if not allowed:
        return not_allowed(
            f"programs of tenants do not run on this installation: name them in {VARIABLE} where the tool-registry "
            "runs, or give a `url`"
        )
    return not_allowed(
        f"the command {shlex.join(argv)[:COMMAND_SHOWN_MAX]} is not allowed here; "
        f"{VARIABLE} allows {', '.join(map(str, allowed))}"
    )


def _variables_refused(entry: str | AllowedCommand, names: Sequence[str]) -> Reject:
    listed = ", ".join(names)
    if isinstance(entry, AllowedCommand):
        return not_allowed(
            f"{listed} in `env`: {VARIABLE} allows {entry}; leave it out, or have the operator add it there"
        )
    return not_allowed(
        f"{listed} in `env` may decide which code runs: leave it out, or have the operator allow the command with its "
        f'variables, as {{"command": "…", "env": ["{names[0]}"]}} in {VARIABLE}'
    )
