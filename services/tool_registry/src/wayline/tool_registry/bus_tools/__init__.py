"""Tools of tenants' own services, announced and called on the bus."""

from wayline.tool_registry.bus_tools.bus_service import BusService
from wayline.tool_registry.bus_tools.bus_services import BusServices

__all__ = ["BusService", "BusServices"]
