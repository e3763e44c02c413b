"""One address that names several hosts of a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from wayline.contracts.errors import WrongSetting
from wayline.standalone.servers.embedded import started_servers
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import Credentials
from wayline.standalone.setup.installation import Installation, ServerAccess
from wayline.store.connecting import address
from wayline.store.pooler import read_pool_mode

SEVERAL = "postgresql://us%40er:se%2Fcret@a.example:5432,b.example,[::1]:5433/wayline?target_session_attrs=read-write"


def access(dsn: str) -> ServerAccess:
    return ServerAccess("nats://a", dsn, Credentials({}, {"router": "p@ss"}), own_bus=False)


def test_an_address_of_several_hosts_is_kept_for_each_role():
    settings = Settings.model_validate({"postgres_dsn": SEVERAL})

    assert settings.admin_dsn == SEVERAL
    assert access(SEVERAL).postgres_hosts == [("a.example", 5432), ("b.example", 5432), ("::1", 5433)]
    assert access(SEVERAL).dsn_of("wayline_router", "router") == (
        "postgresql://wayline_router:p%40ss@a.example:5432,b.example,[::1]:5433/wayline?target_session_attrs=read-write"
    )


def test_services_are_given_the_pooler_where_one_is_named():
    pooler = "postgresql://x@pooler:6432/wayline?pool_mode=transaction"
    access = ServerAccess(
        "nats://a", SEVERAL, Credentials({}, {"router": "pw"}, second_roles=True), own_bus=False, pooler_dsn=pooler
    )

    assert access.dsn_of("wayline_router", "router") == (
        "postgresql://wayline_router_second:pw@pooler:6432/wayline?pool_mode=transaction"
    )
    assert read_pool_mode(f"{SEVERAL}&pool_mode=transaction") == (SEVERAL, True)


async def test_a_restore_leaves_services_behind_their_pooler(tmp_path: Path):
    pooler = "postgresql://x@pooler:6432/wayline?pool_mode=transaction"
    settings = Settings.model_validate(
        {"nats_url": "nats://a", "postgres_dsn": pooler, "postgres_admin_dsn": SEVERAL, "data_dir": tmp_path}
    )

    async with started_servers(settings, Installation(tmp_path), Credentials({}, {"router": "pw"})) as access:
        assert access.admin_dsn == SEVERAL
        assert access.dsn_of("wayline_router", "router") == (
            "postgresql://wayline_router:pw@pooler:6432/wayline?pool_mode=transaction"
        )


@pytest.mark.parametrize("hosts", ["a:x,b", "a,b:99999", "a:0,b"])
def test_one_wrong_host_of_several_is_refused_without_the_password(hosts: str):
    with pytest.raises(WrongSetting, match="not of the form postgresql") as refused:
        Settings.model_validate({"postgres_dsn": f"postgresql://user:secret@{hosts}/wayline"})

    assert "secret" not in str(refused.value)


def test_an_address_is_shown_with_its_hosts_and_no_password():
    assert address(SEVERAL) == "a.example:5432,b.example:5432,[::1]:5433/wayline"
    assert address("postgresql://u:p@/wayline?host=/run") == "the local socket:5432/wayline"
