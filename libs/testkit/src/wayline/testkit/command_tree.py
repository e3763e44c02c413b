"""The tree of the `wayline` command, for all processes that a fork server forks: half of what a short one computes."""

from __future__ import annotations

from importlib import import_module

# By its name: a library imports no service.
import_module("wayline.standalone.cli").command()
