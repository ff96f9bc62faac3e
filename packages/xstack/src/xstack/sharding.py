"""How arrays are spread over devices: meshes, partition specs, shardings."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=ABSENCES):
    from xpar import (
        AbstractMesh as AbstractMesh,
        AxisType as AxisType,
        Mesh as Mesh,
        NamedSharding as NamedSharding,
        PartitionSpec as PartitionSpec,
        Sharding as Sharding,
        SingleDeviceSharding as SingleDeviceSharding,
        get_abstract_mesh as get_abstract_mesh,
        get_mesh as get_mesh,
        reshard as reshard,
        set_mesh as set_mesh,
        use_mesh as use_mesh,
    )
