"""How arrays are placed on devices: meshes, partition specs, shardings."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xpar import (
        AbstractDevice as AbstractDevice, AbstractMesh as AbstractMesh, AxisType as AxisType,
        Mesh as Mesh, NamedSharding as NamedSharding, PartitionSpec as PartitionSpec,
        Sharding as Sharding, SingleDeviceSharding as SingleDeviceSharding, auto_axes as auto_axes,
        explicit_axes as explicit_axes, get_abstract_mesh as get_abstract_mesh,
        get_mesh as get_mesh, make_single_device_sharding as make_single_device_sharding,
        no_collectives as no_collectives, reshard as reshard, set_mesh as set_mesh,
        use_abstract_mesh as use_abstract_mesh, use_mesh as use_mesh,
    )  # fmt: skip
    from xprim import ManualAxisType as ManualAxisType
