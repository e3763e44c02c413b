"""Render deploy/kubernetes with throw-away credentials, and check every object against the schemas of Kubernetes.

`make kubernetes-check` runs it. It needs `kubectl` (for `kubectl kustomize`, which asks no cluster) and `uv`, which
fetches the schemas; nothing is applied anywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VALIDATOR = "kubernetes-validate==1.37.0"
VERSION = "1.34"
"""Of Kubernetes."""
OVERLAYS = ("small", "production", "autoscaled")
UNKNOWN = "ScaledObject"
"""Of KEDA, whose schema the validator does not have: tests/contract/test_kubernetes.py reads these."""


def prepare(into: Path) -> Path:
    """Copy deploy/kubernetes, make credentials as docs/kubernetes.md says, and return the folder of the overlays."""
    copied = into / "kubernetes"
    shutil.copytree(ROOT / "deploy/kubernetes", copied, ignore=shutil.ignore_patterns("credentials"))
    credentials = copied / "overlays/production/credentials"
    script = ROOT / "deploy/docker/credentials.py"
    variables = {**os.environ, "WAYLINE_POSTGRES_ADDRESS": "postgres-rw:5432"}
    subprocess.run([sys.executable, script, credentials], env=variables, check=True)
    (credentials / "console.env").write_text("WAYLINE_CONSOLE_COOKIE_KEY=of-no-installation\n")
    return copied / "overlays"


def render(overlay: Path) -> str:
    """Return every object of an overlay as YAML. Ends with what `kubectl` wrote where it cannot."""
    done = subprocess.run(["kubectl", "kustomize", overlay], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{overlay.name}: {done.stderr}")
    return done.stdout


def main() -> None:
    """Check every overlay, and print how many objects each has."""
    if shutil.which("kubectl") is None:
        sys.exit("make kubernetes-check needs kubectl: https://kubernetes.io/docs/tasks/tools/")
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as made:
        overlays = prepare(Path(made))
        for name in OVERLAYS:
            objects = [one for one in render(overlays / name).split("\n---\n") if f"kind: {UNKNOWN}" not in one]
            file = Path(made) / f"{name}.yaml"
            file.write_text("\n---\n".join(objects))
            command = [uv, "tool", "run", "--from", VALIDATOR, "kubernetes-validate", "--strict", "-k", VERSION, file]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{name}: {done.stdout}{done.stderr}")
            print(f"{name}: {len(objects)} objects fit Kubernetes {VERSION}")


if __name__ == "__main__":
    main()
