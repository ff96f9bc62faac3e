"""How arrays are spread over devices."""

from xjit import Sharding, SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]
