"""What is checked in of the catalogue is what the price list and the overrides say."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "make_catalogue.py"


def test_the_prices_of_the_bundled_models_are_those_of_the_list_and_the_overrides():
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
