"""Replace the passwords of the roles in the database.

Postgres keeps one password a role, so that each service has two roles of the same rights and logs in by one of them. A
rotation gives the other one a new password; when nobody is logged in by the first any more, that may not log in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import asyncpg

from wayline.standalone.errors import CannotRotate
from wayline.standalone.rotation.rotated_installation import RotatedInstallation, named
from wayline.standalone.rotation.rotation_step import RotationOutcome, RotationStep
from wayline.standalone.services import MEMBERS
from wayline.standalone.setup.credentials import SECOND_ROLE, Phase, new_password
from wayline.standalone.setup.installation import GRAFANA, GRAFANA_ROLE
from wayline.standalone.setup.migrations import create_grafana, sql
from wayline.store import create_login

PASSWORDS = "passwords"
ROLES = {**{member.identity: member.role for member in MEMBERS if member.schema}, GRAFANA: GRAFANA_ROLE}
RESTART = (
    "restart every service, one after the other, or `wayline up`, and what else reads `credentials/*.env`; then "
    "`wayline rotate passwords` again"
)
REFUSED_WITHIN_S = 10


async def rotate_passwords(rotated: RotatedInstallation) -> RotationStep:
    """Do what is due. Raises CannotRotate, PostgresUnavailable."""
    if rotated.phase(PASSWORDS) is None:
        passwords = {name: new_password() for name in rotated.credentials.passwords}
        rotated.save(PASSWORDS, Phase.OFFERED, other_passwords=passwords)
    async with rotated.database() as conn:
        stored = rotated.credentials
        if rotated.phase(PASSWORDS) is Phase.OFFERED:
            await _create(conn, second=not stored.second_roles, passwords=stored.other_passwords)
            rotated.save(
                PASSWORDS,
                Phase.TAKEN,
                passwords=stored.other_passwords,
                other_passwords=stored.passwords,
                second_roles=not stored.second_roles,
            )
            rotated.write_environments()
            return RotationStep(
                PASSWORDS, RotationOutcome.RESTART, "each service has a second role with a new password", RESTART
            )
        if rotated.phase(PASSWORDS) is Phase.TAKEN:
            rotated.write_environments()
            if not rotated.restarted and not rotated.access.own_bus:
                told = "this bus does not say which processes have the old password and ask nothing just now"
                return RotationStep(PASSWORDS, RotationOutcome.WAITING, told, f"{RESTART}, with `--restarted`")
            if not rotated.restarted and (users := await users_of_former(rotated, conn)):
                told = f"still logged in with an old password, or about to: {named(users)}"
                return RotationStep(PASSWORDS, RotationOutcome.WAITING, told, RESTART)
            rotated.save(PASSWORDS, Phase.CLOSING)
        former = former_roles(rotated)
        for role in former:
            if statement := await conn.fetchval(sql.no_login, role):
                await conn.execute(statement)
        await conn.execute(sql.end_sessions, former)
    await _require_refused(rotated)
    rotated.save(PASSWORDS, None, other_passwords={})
    return RotationStep(PASSWORDS, RotationOutcome.FINISHED, "the database refuses the old passwords")


def former_roles(rotated: RotatedInstallation) -> list[str]:
    """Return the roles by which nobody is to log in any more."""
    stored = rotated.credentials
    return [stored.role_of(role, second=not stored.second_roles) for role in ROLES.values()]


async def users_of_former(rotated: RotatedInstallation, conn: Any) -> Counter[str]:
    """Return the former roles that are logged in, each with how many sessions, or else processes that would use it.

    A process that has asked nothing for minutes has no session; its connection to the bus tells its role. One that does
    not tell it is of an older version, which was started before there was another role.
    """
    former = former_roles(rotated)
    sessions = Counter({row["role"]: row["sessions"] for row in await conn.fetch(sql.sessions_of, former)})
    role_of = dict(zip(ROLES, former, strict=True))
    connected = [one for one in await rotated.connections() or () if one.service in role_of]
    idle = Counter(role_of[one.service] for one in connected if one.role in ("", role_of[one.service]))
    return sessions | idle


async def _create(conn: Any, *, second: bool, passwords: Any) -> None:
    """Let every service log in by the other one of its two roles as well."""
    for name, role in ROLES.items():
        login = f"{role}{SECOND_ROLE}" if second else role
        if name == GRAFANA:
            await create_grafana(conn, login=login, password=passwords[name])
        else:
            await create_login(conn, role=role, login=login, password=passwords[name])


async def _require_refused(rotated: RotatedInstallation) -> None:
    """Check that the database refuses an old password. Raises CannotRotate."""
    # Of the server itself: a pooler between has its own list of who may log in.
    direct, stored = replace(rotated.access, pooler_dsn=None), rotated.credentials
    for name, login in zip(ROLES, former_roles(rotated), strict=True):
        if name not in stored.other_passwords:
            continue
        try:
            dsn = direct.dsn_for(login, stored.other_passwords[name])
            conn = await asyncpg.connect(dsn, timeout=REFUSED_WITHIN_S)
        except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidPasswordError):
            continue
        await conn.close()
        raise CannotRotate(f"the database still lets {login} log in: see its rights, then run this again")
