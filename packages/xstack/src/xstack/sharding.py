"""How arrays are spread over devices."""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xjit import (
        Sharding as Sharding,
        SingleDeviceSharding as SingleDeviceSharding,
    )
