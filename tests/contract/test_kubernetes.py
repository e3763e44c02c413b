"""What can be known about deploy/kubernetes without a cluster: who may reach whom, and what every pod may do."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml

from wayline.chassis import BusSettings
from wayline.chassis.access.identity import STREAMS_ACCOUNT
from wayline.chassis.access.permissions import IDENTITIES
from wayline.chassis.topology import CONSUMERS
from wayline.embedded import binaries
from wayline.standalone.services import MEMBERS
from wayline.testkit.nats_cluster import CLIENTS, ROUTES

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, for `kubectl kustomize`")

SERVICES = {member.name for member in MEMBERS}
ADMIN = "migrate"
"""The Job that works with the administrator's credentials."""
SPEAKS_HTTP_OUTWARDS = {"executor", "retrieval", "tool-registry", "notifier", "tracing"}
"""Those whose settings name an address of somebody else's."""
OVERLAYS = ("small", "production", "autoscaled")


@pytest.fixture(scope="module")
def rendered(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The objects of each overlay, as `kubectl kustomize` makes them with credentials of the documented command."""
    spec = spec_from_file_location("check_kubernetes", repository / "tools/check_kubernetes.py")
    assert spec is not None and spec.loader is not None
    check = module_from_spec(spec)
    spec.loader.exec_module(check)
    overlays = check.prepare(tmp_path_factory.mktemp("kubernetes"))
    return {name: list(yaml.safe_load_all(check.render(overlays / name))) for name in OVERLAYS}


@pytest.fixture(scope="module")
def objects(rendered: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return rendered["production"]


def of(objects: Iterable[dict[str, Any]], *kinds: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] in kinds}


def pods(objects: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: one["spec"]["template"] for name, one in of(objects, "Deployment", "Job").items()}


def labelled(objects: Iterable[dict[str, Any]], label: str) -> set[str]:
    return {name for name, pod in pods(objects).items() if label in pod["metadata"]["labels"]}


def selected(objects: list[dict[str, Any]], selector: dict[str, Any]) -> set[str]:
    """Return the pods that a policy's selector means."""
    wanted = selector.get("matchLabels", {}).items()
    return {name for name, pod in pods(objects).items() if wanted <= pod["metadata"]["labels"].items()}


def policies(objects: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: one["spec"] for name, one in of(objects, "NetworkPolicy").items()}


@pytest.mark.slow
def test_every_service_has_its_pods_and_starts_as_itself(objects: list[dict[str, Any]]):
    commands = {name: pod["spec"]["containers"][0].get("args") for name, pod in pods(objects).items()}

    assert {name: args for name, args in commands.items() if name in SERVICES} == {n: ["serve", n] for n in SERVICES}
    assert commands.keys() - SERVICES == {"console", ADMIN}


def test_the_pods_that_reach_the_bus_are_those_of_its_permissions(objects: list[dict[str, Any]]):
    known = {identity.replace("_", "-") for identity in IDENTITIES}

    assert labelled(objects, "wayline.dev/reaches-bus") == known | {ADMIN}
    assert selected(objects, policies(objects)["to-bus"]["podSelector"]) == known | {ADMIN}
    [let_in, *_] = policies(objects)["bus"]["ingress"]
    assert selected(objects, let_in["from"][0]["podSelector"]) == known | {ADMIN}


def test_the_pods_that_reach_the_database_own_tables_in_it(objects: list[dict[str, Any]]):
    owners = {member.name for member in MEMBERS if member.schema}

    assert selected(objects, policies(objects)["to-database"]["podSelector"]) == owners | {ADMIN}
    [let_in, *_] = policies(objects)["database"]["ingress"]
    assert selected(objects, let_in["from"][0]["podSelector"]) == owners | {ADMIN}


def test_nothing_is_allowed_that_no_policy_names(objects: list[dict[str, Any]]):
    nothing = policies(objects)["nothing"]

    assert (nothing["podSelector"], sorted(nothing["policyTypes"])) == ({}, ["Egress", "Ingress"])
    assert not nothing.keys() & {"ingress", "egress"}


def test_services_that_ask_others_reach_public_addresses_only(objects: list[dict[str, Any]]):
    outside = policies(objects)["to-outside"]
    [rule] = outside["egress"]
    excepted = {block for one in rule["to"] for block in one["ipBlock"]["except"]}

    assert selected(objects, outside["podSelector"]) == SPEAKS_HTTP_OUTWARDS
    assert {"10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fe80::/10"} <= excepted


def test_the_console_reaches_the_gateway_and_nothing_else(objects: list[dict[str, Any]]):
    reaching = {
        name: policy["egress"]
        for name, policy in policies(objects).items()
        if "egress" in policy and "console" in selected(objects, policy["podSelector"])
    }

    assert reaching.keys() == {"names", "to-gateway"}
    [rule] = reaching["to-gateway"]
    assert [selected(objects, one["podSelector"]) for one in rule["to"]] == [{"gateway"}]


def test_each_pod_sees_its_own_credentials_and_no_others(objects: list[dict[str, Any]]):
    seen = {
        name: [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]
        for name, pod in pods(objects).items()
    }
    secrets = of(objects, "Secret")

    for name in SERVICES:
        [secret] = seen.pop(name)
        assert secret.startswith(f"{name}-credentials-")
        assert list(secrets[secret]["data"]) == [f"{name.replace('-', '_')}.env"]
    assert seen.pop("console") == []
    assert [name.rpartition("-")[0] for name in seen[ADMIN]] == ["admin-credentials"]


def test_no_pod_can_gain_rights_or_write_to_itself(objects: list[dict[str, Any]]):
    for name, pod in pods(objects).items():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False), name
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]["cpu"], name
            assert re.search(r":\d+\.\d+\.\d+(\.dev\d+)?$", container["image"]), name
    namespace = of(objects, "Namespace")["wayline"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_every_service_is_probed_spread_and_drained(objects: list[dict[str, Any]]):
    grace = BusSettings.model_fields["drain_grace_s"].default
    for name, deployment in of(objects, "Deployment").items():
        spec = deployment["spec"]["template"]["spec"]
        [container] = spec["containers"]
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys(), name
        ready = container["readinessProbe"]["httpGet"]["path"]
        assert ready == ("/health/live" if name == "console" else "/health/ready"), name
        # A service without its bus waits for it: a restart would only lose what it holds.
        assert container["livenessProbe"]["httpGet"]["path"] == "/health/live", name
        spread = {one["topologyKey"]: one["labelSelector"]["matchLabels"] for one in spec["topologySpreadConstraints"]}
        own = deployment["spec"]["selector"]["matchLabels"]
        assert spread == {"kubernetes.io/hostname": own, "topology.kubernetes.io/zone": own}, name
        assert spec["terminationGracePeriodSeconds"] > grace, name
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}, name
        assert of(objects, "PodDisruptionBudget")[name]["spec"]["selector"]["matchLabels"] == own, name


def test_replicas_and_copies_of_streams_are_as_each_overlay_says(rendered: dict[str, list[dict[str, Any]]]):
    for overlay, replicas, copies in (("small", 1, "1"), ("production", 3, "3")):
        deployments = of(rendered[overlay], "Deployment")
        [container] = of(rendered[overlay], "Job")["migrate"]["spec"]["template"]["spec"]["containers"]
        assert {one["spec"]["replicas"] for one in deployments.values()} == {replicas}, overlay
        assert container["env"] == [{"name": "WAYLINE_REPLICAS", "value": copies}], overlay


def test_replicas_follow_the_lag_of_consumers_that_exist(rendered: dict[str, list[dict[str, Any]]]):
    scaled = of(rendered["autoscaled"], "ScaledObject")
    # What waits for its tenant's turn is the router's to move, and executors' work.
    consumers = {
        (one.stream, one.name): "executor" if one.stream == "RUN" else one.service.replace("_", "-")
        for one in CONSUMERS
    }
    deployments = of(rendered["autoscaled"], "Deployment")

    assert scaled.keys() == {"executor", "retrieval", "tracing"}
    for name, one in scaled.items():
        assert one["spec"]["scaleTargetRef"] == {"name": name}
        # What is set in both places is taken back by the next `apply`.
        assert "replicas" not in deployments[name]["spec"]
        for trigger in one["spec"]["triggers"]:
            about = trigger["metadata"]
            assert (trigger["type"], about["account"]) == ("nats-jetstream", STREAMS_ACCOUNT)
            assert consumers[about["stream"], about["consumer"]] == name
            assert int(about["lagThreshold"]) > 0
    lanes = {trigger["metadata"]["consumer"] for trigger in scaled["executor"]["spec"]["triggers"]}
    assert lanes == {one.name for one in CONSUMERS if one.stream == "RUN"}


def test_every_variable_in_the_files_is_a_setting(rendered: dict[str, list[dict[str, Any]]], settings: dict[str, Any]):
    named = {
        one["name"]
        for objects in rendered.values()
        for pod in pods(objects).values()
        for container in pod["spec"]["containers"]
        for one in container.get("env", [])
    }

    assert {name for name in named if name.startswith("WAYLINE_")} <= settings.keys()


def test_the_bus_and_the_database_are_those_that_the_tests_use(repository: Path):
    values = yaml.safe_load((repository / "deploy/kubernetes/values/nats.yaml").read_text())
    version = subprocess.run([binaries.nats_server(), "--version"], capture_output=True, text=True, check=True).stdout

    assert values["container"]["image"]["tag"].startswith(f"{version.strip().rpartition('v')[2]}-")
    assert values["config"]["jetstream"]["merge"] == {"sync_interval": "always"}
    assert values["config"]["cluster"] == {"enabled": True, "replicas": 3, "merge": ROUTES}
    assert values["config"]["merge"].items() >= CLIENTS.items()
    database = yaml.safe_load((repository / "deploy/kubernetes/values/postgres.yaml").read_text())["spec"]
    assert database["superuserSecret"]["name"] == "postgres-superuser"
    assert database["bootstrap"]["initdb"]["database"] == "wayline"
    assert database["postgresql"]["synchronous"] == {"method": "any", "number": 1}


def test_no_credentials_can_be_committed(repository: Path):
    path = "deploy/kubernetes/overlays/production/credentials/admin/credentials/keys.json"

    ignored = subprocess.run(["git", "check-ignore", "-q", path], cwd=repository, check=False)

    assert ignored.returncode == 0 or not (repository / ".git").exists()
