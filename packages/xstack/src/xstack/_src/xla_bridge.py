"""Names that chex imports from `jax._src.xla_bridge`."""

from collections.abc import Iterator, Mapping
from typing import Any

from xjit.cache.clearing import backends_in_use
from xtree.namespaces import namespace

with namespace(globals()):
    from xstack import (
        default_backend as default_backend,
        device_count as device_count,
        devices as devices,
        local_device_count as local_device_count,
        local_devices as local_devices,
        process_count as process_count,
        process_index as process_index,
    )
    from xstack.extend.backend import backends as backends, get_backend as get_backend


class _BackendsInUse(Mapping[str, Any]):
    """The clients by platform, as they are when it is read; empty before devices are used."""

    def __getitem__(self, platform: str) -> Any:
        return backends_in_use()[platform]

    def __iter__(self) -> Iterator[str]:
        return iter(backends_in_use())

    def __len__(self) -> int:
        return len(backends_in_use())


_backends = _BackendsInUse()
