"""Transfer guards: log or refuse copies between the host's memory and that of devices.

The options `transfer_guard_host_to_device`, `..._device_to_host` and `..._device_to_device` (and
`transfer_guard`, which sets all three) say what is allowed. A transfer is explicit inside
`device_put`, `device_get` and `copy_to_host_async`, else implicit.

    allow               every transfer
    log, disallow       log or refuse implicit transfers
    log_explicit, disallow_explicit    and explicit ones, too

CPU devices compute in the host's memory, so between host and CPU nothing is ever transferred.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from xprim import config
from xprim.errors import message

__all__ = ()

logger = logging.getLogger("xjit")

to_device = config.transfer_guard_host_to_device
to_host = config.transfer_guard_device_to_host
between_devices = config.transfer_guard_device_to_device

_TEXT_BY_OPTION = {
    to_device: ("from the host to a device", "device_put"),
    to_host: ("from a device to the host", "device_get"),
    between_devices: ("from one device to another", "device_put"),
}


class TransferError(RuntimeError):
    """A transfer that a transfer guard does not allow."""


class _Thread(threading.local):
    explicit = False


_thread = _Thread()


class Explicit:
    """A block of code whose transfers somebody asked for."""

    __slots__ = ("_previous",)

    def __enter__(self) -> None:
        self._previous = _thread.explicit
        _thread.explicit = True

    def __exit__(self, *exception: object) -> None:
        _thread.explicit = self._previous


def check(option: config.Option[str], kind: Any, source: Any, destination: Any) -> None:
    """Log or refuse a transfer as an option says.

    Args:
      option: that of the direction.
      kind: the type of what is moved, as messages show it.
      source: a device, or the text `the host`.
      destination: likewise.

    Raises:
      TransferError: the transfer is not allowed.
    """
    level = option.value
    explicit = _thread.explicit
    if level == "allow" or (explicit and not level.endswith("_explicit")):
        return
    direction, function = _TEXT_BY_OPTION[option]
    what = f"an {'explicit' if explicit else 'implicit'} transfer {direction}"
    if level.startswith("log"):
        logger.warning("%s: %s goes from %s to %s", what, kind, source, destination)
        return
    raise TransferError(message(
        option.name, f"{what} is not allowed here.",
        got=f"{kind} from {source} to {destination}, where the option is {level!r}",
        hint="" if explicit else f"{function} makes a transfer explicit",
    ))  # fmt: skip
