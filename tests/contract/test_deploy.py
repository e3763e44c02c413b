"""What can be known about the containers without running them: nothing here needs Docker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import nats
import nats.errors
import pytest
import yaml
from opentelemetry.sdk import environment_variables as sdk_variables

from wayline.chassis import Bus, BusSettings
from wayline.chassis.access.permissions import IDENTITIES
from wayline.embedded import NatsServer, binaries
from wayline.gateway.adapters.keys import Keys
from wayline.gateway.app import migrations
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.standalone.services import MEMBERS
from wayline.standalone.settings import STAYS, Settings
from wayline.store import Store, migrate

BIN = Path(sys.executable).parent
SERVICES = {member.name for member in MEMBERS}


@pytest.fixture(scope="module")
def compose(repository: Path) -> dict[str, Any]:
    return yaml.safe_load((repository / "docker-compose.yml").read_text())["services"]


def script(repository: Path, name: str) -> ModuleType:
    spec = spec_from_file_location(name, repository / "deploy" / "docker" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environment(service: dict[str, Any]) -> dict[str, str]:
    return service.get("environment", {})


def seconds(text: str) -> int:
    """Return a duration, or the one that stands where a variable is not set."""
    return int(re.sub(r"\$\{\w+:-(.*)\}", r"\1", text).removesuffix("s"))


@pytest.mark.parametrize(
    "command",
    [
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        ["hadolint", "deploy/docker/Dockerfile"],
    ],
    ids=["compose", "dockerfile"],
)
def test_the_files_follow_their_formats(command: list[str], repository: Path):
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=repository, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_image_is_pinned_and_none_is_latest(compose: dict[str, Any], repository: Path):
    images = {service["image"] for service in compose.values()}
    images |= set(re.findall(r"^FROM (\S+)", (repository / "deploy/docker/Dockerfile").read_text(), re.MULTILINE))

    assert [image for image in images if not re.search(r":v?\d+\.\d+(\.\d+)?", image)] == []


def test_the_container_and_the_tests_use_one_nats_version(compose: dict[str, Any]):
    version = subprocess.run([binaries.nats_server(), "--version"], capture_output=True, text=True, check=True).stdout

    assert compose["nats"]["image"].startswith(f"nats:{version.strip().rpartition('v')[2]}-")


def test_no_container_can_gain_rights_or_write_to_itself(compose: dict[str, Any]):
    for name, service in compose.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service.get("privileged") is None and service.get("pid") is None, name
        assert name == "postgres" or "cap_add" not in service, name


def test_the_image_runs_unprivileged_and_holds_no_build_tools(repository: Path):
    final = (repository / "deploy/docker/Dockerfile").read_text().rpartition("\nFROM ")[2]

    assert re.findall(r"^USER (\d+)", final, re.MULTILINE) == ["10001"]
    assert not re.search(r"apt-get|pip install|uv pip", final)
    assert "HEALTHCHECK" in final and "STOPSIGNAL SIGTERM" in final


def test_each_service_has_a_container_of_its_own(compose: dict[str, Any]):
    serving = {name: s["command"][1:] for name, s in compose.items() if s.get("command", [""])[0] == "serve"}

    assert serving == {name: [name] for name in SERVICES}


def test_each_container_sees_its_own_credentials_and_no_others(compose: dict[str, Any]):
    seen = {
        name: [v["volume"]["subpath"] for v in service.get("volumes", []) if isinstance(v, dict)]
        for name, service in compose.items()
    }

    administering = {"migrate": ["admin"], "first-key": ["admin"], "bus-credentials": ["admin", "nats"]}
    servers = {name: [name] for name in ("nats", "postgres", "grafana")}
    services = {member.name: [member.identity] for member in MEMBERS}
    assert {name: paths for name, paths in seen.items() if paths} == administering | servers | services
    assert all(v["read_only"] for name in SERVICES for v in compose[name]["volumes"] if isinstance(v, dict))


def test_gateway_and_console_are_reachable_only_from_this_machine(compose: dict[str, Any]):
    published = {name: service["ports"] for name, service in compose.items() if "ports" in service}

    assert published.keys() == {"gateway", "console", "grafana"}
    assert published["console"] == ["${WAYLINE_BIND:-127.0.0.1}:${WAYLINE_CONSOLE_PORT:-8081}:8081"]
    assert published["gateway"] == ["${WAYLINE_BIND:-127.0.0.1}:${WAYLINE_HTTP_PORT:-8080}:8080"]
    assert published["grafana"][0].startswith("127.0.0.1:")
    assert compose["grafana"]["profiles"] == ["observability"]


@pytest.mark.parametrize(("password", "status"), [("", 2), ("secret", 0)])
def test_grafana_without_a_password_refuses_to_start(compose: dict[str, Any], password: str, status: int):
    variable = "GF_SECURITY_ADMIN_PASSWORD"
    shell, flag, script = compose["grafana"]["entrypoint"]
    # What Compose makes of `$$`, and a program that exists here in place of the image's own.
    script = script.replace("$$", "$").replace("/run.sh", "true")

    done = subprocess.run([shell, flag, script], env={variable: password}, capture_output=True, text=True, check=False)

    assert compose["grafana"]["environment"][variable] == "${GRAFANA_ADMIN_PASSWORD:-}"
    assert (done.returncode, "set GRAFANA_ADMIN_PASSWORD" in done.stderr) == (status, status != 0)


def test_every_service_gets_the_sampler_and_the_span_limits(compose: dict[str, Any]):
    limits = {name for name in vars(sdk_variables) if re.fullmatch(r"OTEL_(?!LOGRECORD).*_LIMIT", name)}
    wanted = {"OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", *limits}

    assert len(limits) == 8
    for name in SERVICES:
        # Without a value, Compose passes a variable on only where it is set.
        assert {key: environment(compose[name]).get(key, "missing") for key in wanted} == dict.fromkeys(wanted), name


def test_a_container_may_drain_before_it_is_killed(compose: dict[str, Any]):
    grace = BusSettings.model_fields["drain_grace_s"].default

    assert all(seconds(compose[name]["stop_grace_period"]) > grace for name in SERVICES)


def test_services_start_when_the_servers_are_healthy_and_migrated(compose: dict[str, Any]):
    wanted = {"nats": "service_healthy", "postgres": "service_healthy", "migrate": "service_completed_successfully"}

    for name in SERVICES:
        conditions = {on: how["condition"] for on, how in compose[name]["depends_on"].items()}
        assert wanted.items() <= conditions.items(), name
    assert all("healthcheck" in compose[name] for name in ("nats", "postgres"))


def test_every_command_of_a_container_is_one_of_ours(compose: dict[str, Any]):
    from typer.main import get_command

    known = get_command(import_module("wayline.standalone.cli").app).commands  # type: ignore[attr-defined]

    ours = [s for s in compose.values() if s["image"].startswith("wayline:") and "entrypoint" not in s]
    assert {service["command"][0] for service in ours} <= known.keys()


def test_every_variable_of_a_container_is_a_setting(compose: dict[str, Any], settings: dict[str, Any]):
    variables = {name for service in compose.values() for name in environment(service) if name.startswith("WAYLINE_")}

    assert variables <= settings.keys()


def test_every_setting_of_a_service_reaches_its_container(compose: dict[str, Any], settings: dict[str, Any]):
    for member in MEMBERS:
        own = {name for name in settings if name.startswith(member.variable(""))}

        assert own <= environment(compose[member.name]).keys(), member.name


IN_THE_IMAGE = {"WAYLINE_HEALTH_PORT", "WAYLINE_HEALTH_HOST"}
IN_ITS_CREDENTIALS = {"WAYLINE_NATS_URL", "WAYLINE_NATS_SEED", "WAYLINE_NATS_ACCOUNTS", "WAYLINE_POSTGRES_DSN"}


def test_settings_of_every_service_and_of_migrate_reach_them(compose: dict[str, Any]):
    everywhere = {f"WAYLINE_{name.upper()}" for name in BusSettings.model_fields} - IN_THE_IMAGE - IN_ITS_CREDENTIALS
    kept = {name for name, field in Settings.model_fields.items() if STAYS in (field.description or "")}

    assert len(kept) == 7
    assert {f"WAYLINE_{name.upper()}" for name in kept} <= environment(compose["migrate"]).keys()
    for name in SERVICES:
        assert everywhere | {"WAYLINE_LOG", "WAYLINE_LOG_LEVEL"} <= environment(compose[name]).keys(), name


def test_every_container_has_limits_of_memory_processes_and_files(compose: dict[str, Any]):
    for name, service in compose.items():
        files = service["ulimits"]["nofile"]
        assert service["mem_limit"] and service["pids_limit"], name
        # Without a hard one a process raises it for itself; what the gateway serves at most needs one each.
        assert files["soft"] == files["hard"] > GatewaySettings.model_fields["connections_max"].default, name


def test_every_container_is_in_the_networks_that_it_needs(compose: dict[str, Any]):
    networks = {name: set(service.get("networks") or {service["network_mode"]}) for name, service in compose.items()}
    inner = {"migrate", "first-key", "bus-credentials", "router", "executor", "retrieval", "tracing", "notifier"}

    assert networks.pop("credentials") == {"none"}
    assert {name for name, joined in networks.items() if joined == {"core"}} == inner | {"tempo", "grafana"}
    assert {name for name, joined in networks.items() if joined == {"core", "tools"}} == {
        "nats",
        "postgres",
        "prometheus",
    }
    assert (networks["gateway"], networks["console"]) == ({"core", "pages"}, {"pages"})
    assert networks["tool-registry"] == {"tools"}


def test_tenants_programs_share_no_network_with_other_services(compose: dict[str, Any], repository: Path):
    beside = {name for name, service in compose.items() if "tools" in (service.get("networks") or ())}

    assert beside == {"tool-registry", "nats", "postgres", "prometheus"}
    assert compose["tool-registry"]["networks"] == ["tools"]
    assert 'http: "127.0.0.1:8222"' in (repository / "deploy/nats/nats.conf.template").read_text()


def test_the_console_reaches_the_gateway_and_holds_no_credentials(compose: dict[str, Any]):
    beside = {name for name, service in compose.items() if "pages" in (service.get("networks") or ())}

    assert beside == {"console", "gateway"}
    assert compose["console"]["networks"] == ["pages"]
    assert "volumes" not in compose["console"]


def test_every_file_that_a_container_mounts_is_there(compose: dict[str, Any], repository: Path):
    mounted = [v.split(":")[0] for s in compose.values() for v in s.get("volumes", []) if isinstance(v, str)]
    missing = [path for path in mounted if path.startswith("./") and not (repository / path).exists()]

    assert missing == []


@pytest.fixture
def credentials(tmp_path: Path, repository: Path) -> Path:
    """A whole set, made twice: the second time changes nothing."""
    made, template = script(repository, "credentials"), repository / "deploy/nats/nats.conf.template"
    made.main(tmp_path, template)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    made.main(tmp_path, template)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    return tmp_path


def test_service_credentials_are_only_in_its_own_and_the_admin_directory(credentials: Path):
    keys = json.loads((credentials / "admin/credentials/keys.json").read_text())

    for name, secret in [*keys["seeds"].items(), *keys["passwords"].items()]:
        holders = {p.relative_to(credentials).parts[0] for p in credentials.rglob("*") if _holds(p, secret)}
        assert holders == {"admin", name} - {"system"}


def _holds(path: Path, secret: str) -> bool:
    return path.is_file() and secret in path.read_text()


async def test_the_bus_admits_each_service_by_its_seed_and_no_stranger(credentials: Path, tmp_path: Path):
    accounts = (credentials / "nats/accounts.conf").read_text()
    conf = (credentials / "nats/nats.conf").read_text().replace("include ./accounts.conf", accounts)
    ours = re.sub(r"^(listen|http):.*$", "", conf, flags=re.MULTILINE).replace('"/data"', f'"{tmp_path}/js"')
    async with NatsServer(tmp_path / "server", config=ours) as server:
        for name in IDENTITIES:
            env = (credentials / name / "credentials" / f"{name}.env").read_text()
            seed = dict(line.split("=", 1) for line in env.splitlines())["WAYLINE_NATS_SEED"]
            settings = BusSettings(nats_url=server.url, nats_seed=seed, connect_wait_s=30)
            bus = await Bus.connect(settings, service=name, exit_when_closed=False)
            await bus.close()
        with pytest.raises(nats.errors.Error, match="Authorization"):
            await nats.connect(server.url, allow_reconnect=False, error_cb=_quiet)


async def _quiet(_: Exception) -> None:
    return None


async def test_the_first_key_is_made_once_for_its_owner_only(
    empty_database: Any, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    role, password = "wayline_gateway", "test"
    await migrate(empty_database.dsn, schema="gateway", role=role, password=password, directory=migrations())
    dsn = empty_database.as_role(role, password)
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials/gateway.env").write_text(f"WAYLINE_POSTGRES_DSN={dsn}\n")
    first_key = script(repository, "first_key")

    await first_key.main(tmp_path)
    made = (tmp_path / "first-key").read_text().strip()
    await first_key.main(tmp_path)
    await first_key.main(tmp_path, shown=True)

    store = await Store.connect(dsn, schema="gateway", queries=migrations().parent / "queries.sql")
    caller = await Keys(store).caller(made)
    await store.close()
    assert (caller.tenant, (tmp_path / "first-key").read_text().strip()) == ("default", made)
    assert os.stat(tmp_path / "first-key").st_mode & 0o077 == 0
    assert capsys.readouterr().out == ""


async def test_the_first_key_is_shown_instead_where_that_is_asked(
    empty_database: Any, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    role, password = "wayline_gateway", "test"
    await migrate(empty_database.dsn, schema="gateway", role=role, password=password, directory=migrations())
    (tmp_path / "credentials").mkdir()
    dsn = empty_database.as_role(role, password)
    (tmp_path / "credentials/gateway.env").write_text(f"WAYLINE_POSTGRES_DSN={dsn}\n")

    await script(repository, "first_key").main(tmp_path, shown=True)

    store = await Store.connect(dsn, schema="gateway", queries=migrations().parent / "queries.sql")
    caller = await Keys(store).caller(capsys.readouterr().out.strip())
    await store.close()
    assert (caller.tenant, (tmp_path / "first-key").exists()) == ("default", False)
