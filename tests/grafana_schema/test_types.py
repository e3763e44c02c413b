"""Every dashboard has the types that the pinned Grafana's own library declares, panel options included."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ..npm import installed, node

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))
PANELS = {"timeseries": "TimeSeries", "stat": "Stat", "bargauge": "BarGauge", "table": "Table"}
"""The kinds of panels whose options the library declares. What it declares for `traces` is that there are none."""
# The library writes words as enums, which no JSON has; what is left out has a default in Grafana.
OF_PROMETHEUS = {"expr", "step", "titleFormat", "tagKeys"}
"""What its datasource reads of an annotation; the library declares the datasource's part of none."""
TYPES = "./node_modules/@grafana/schema/dist/types/raw"
HEADER = """
import type { Dashboard } from './node_modules/@grafana/schema/dist/types/raw/dashboard/x/dashboard_types.gen';
type Plain<T> = T extends string ? `${T}`
    : T extends number | boolean | null | undefined ? T
    : T extends Array<infer U> ? Array<Plain<U>>
    : T extends object ? { [K in keyof T]?: Plain<T[K]> } : T;
"""


def checked(dashboard: dict[str, Any]) -> str:
    """Return a module that compiles where a dashboard has Grafana's types."""
    kinds = {panel["type"] for panel in dashboard["panels"]} & PANELS.keys()
    lines = [HEADER]
    for kind in sorted(kinds):
        place = f"{TYPES}/composable/{kind}/panelcfg/x/{PANELS[kind]}PanelCfg_types.gen"
        lines.append(f"import type * as {kind} from '{place}';")
    annotations = [
        {key: value for key, value in one.items() if key not in OF_PROMETHEUS}
        for one in dashboard["annotations"]["list"]
    ]
    page = {**dashboard, "annotations": {"list": annotations}}
    lines.append(f"export const page = {json.dumps(page)} satisfies Plain<Dashboard>;")
    for panel in dashboard["panels"]:
        if panel["type"] in PANELS:
            number, kind, custom = panel["id"], panel["type"], panel["fieldConfig"]["defaults"]["custom"]
            options = json.dumps(panel["options"])
            lines.append(f"export const options{number} = {options} satisfies Plain<{kind}.Options>;")
            if custom:
                lines.append(f"export const field{number} = {json.dumps(custom)} satisfies Plain<{kind}.FieldConfig>;")
    return "\n".join(lines)


def compiled(folder: Path, pages: dict[str, dict[str, Any]]) -> str:
    """Compile dashboards, and return what the compiler says."""
    modules = installed("grafana_schema", "node_modules")
    (folder / "node_modules").symlink_to(modules)
    files = [folder / f"{name}.ts" for name in pages]
    for file in files:
        file.write_text(checked(pages[file.stem]))
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler"]
    command = [node(), modules / "typescript" / "bin" / "tsc", *options, "--target", "es2022", *files]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False).stdout


def test_every_dashboard_has_the_types_of_the_pinned_grafana(tmp_path: Path):
    assert compiled(tmp_path, {path.stem: json.loads(path.read_text()) for path in DASHBOARDS}) == ""


@pytest.mark.parametrize(
    "spoil",
    [
        lambda page: page.update(refresh=30),
        lambda page: page["panels"][1].update(gridPos="left"),
        lambda page: page["panels"][1]["options"]["legend"].update(displayMode="lists"),
        lambda page: page["panels"][1]["fieldConfig"]["defaults"]["custom"].update(drawStyle="dots"),
        lambda page: page["panels"][1]["fieldConfig"]["defaults"].update(noValues="none"),
    ],
)
def test_what_grafana_does_not_know_is_refused(tmp_path: Path, spoil: Any):
    page = json.loads((ROOT / "deploy/grafana/dashboards/overview.json").read_text())
    spoil(page)

    assert "error TS" in compiled(tmp_path, {"overview": page})


def test_the_types_are_those_of_the_grafana_that_is_started():
    [version] = re.findall(r"grafana/grafana:([\d.]+)", (ROOT / "docker-compose.yml").read_text())
    asked = json.loads((Path(__file__).parent / "package.json").read_text())

    assert asked["dependencies"]["@grafana/schema"] == version
