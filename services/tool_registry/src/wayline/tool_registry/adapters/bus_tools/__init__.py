"""Tools of tenants' own services, announced and called on the bus."""

from wayline.tool_registry.adapters.bus_tools.bus_service import BusService
from wayline.tool_registry.adapters.bus_tools.bus_services import BusServices
from wayline.tool_registry.adapters.bus_tools.service_pins import ServicePins

__all__ = ["BusService", "BusServices", "ServicePins"]
