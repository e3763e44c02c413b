"""Tools and answers as JSON in plain text, for models that have no native tools."""

from wayline.llm.json_protocol.ladder import needs_correction, read
from wayline.llm.json_protocol.protocol import JsonProtocol
from wayline.llm.json_protocol.wording import instruction, rendered

__all__ = ["JsonProtocol", "instruction", "needs_correction", "read", "rendered"]
