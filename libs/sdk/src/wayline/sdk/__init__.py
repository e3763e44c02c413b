"""For your own services on Wayline's bus: offer functions as tools, submit jobs, await their results."""

from wayline.contracts.bus_tools import InvokeResult as Result
from wayline.sdk.call import Call, ToolFailed, ToolsRefused
from wayline.sdk.connection import bus_broker
from wayline.sdk.jobs import Jobs
from wayline.sdk.tools import Tools

__all__ = ["Call", "Jobs", "Result", "ToolFailed", "Tools", "ToolsRefused", "bus_broker"]
