"""Write deploy/grafana/dashboards: `python tools/make_dashboards.py` writes, `--check` lists stale files and fails."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dashboards.bus import BUS
from dashboards.cost import COST
from dashboards.models import MODELS
from dashboards.overview import OVERVIEW
from dashboards.quality import QUALITY
from dashboards.runtime import RUNTIME
from dashboards.tool_calls import TOOLS
from dashboards.traces import TRACES

PAGES = (OVERVIEW, TRACES, COST, MODELS, TOOLS, QUALITY, BUS, RUNTIME)

ROOT = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards"


def files() -> dict[Path, str]:
    """Return every generated file with the text it must have."""
    return {
        ROOT / f"{page.uid.removeprefix('wayline-')}.json": json.dumps(page.json(), indent=1) + "\n" for page in PAGES
    }


def stale() -> list[str]:
    """Return the names of files that are missing, differ, or should not exist."""
    wanted = files()
    stale_names = [path.name for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    return stale_names + [
        f"{path.name} (nothing makes it any more)" for path in set(ROOT.glob("*.json")) - wanted.keys()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a dashboard is stale")
    if parser.parse_args().check:
        if found := stale():
            sys.exit("deploy/grafana is stale; run `make dashboards` and look at the difference: " + ", ".join(found))
        return
    wanted = files()
    ROOT.mkdir(parents=True, exist_ok=True)
    for path in set(ROOT.glob("*.json")) - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
