"""Runs the executor's decisions and prompts again over a recorded log: no network, no tool, no clock."""

from wayline.executor.replay.changes import with_config, with_model, with_prompt
from wayline.executor.replay.run import Cost, Divergence, Replay, replay

__all__ = ["Cost", "Divergence", "Replay", "replay", "with_config", "with_model", "with_prompt"]
