"""What is checked in of the catalogue is what the price list and the overrides say."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "make_catalogue.py"


def test_bundled_prices_equal_the_price_list_with_overrides():
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
