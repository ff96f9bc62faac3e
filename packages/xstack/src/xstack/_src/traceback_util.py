"""Names that equinox and flax import from `jax._src.traceback_util`."""

from types import FrameType
from typing import Any

from xprim.source import hide as register_exclusion, is_hidden

__all__ = ["api_boundary", "include_frame", "register_exclusion"]

__dir__ = __all__.copy

_exclude_paths: list[str] = []


def api_boundary(fun: Any = None, **_options: Any) -> Any:
    """Return a function as it is: errors leave out the frames of every registered library."""
    return fun if fun is not None else api_boundary


def include_frame(frame: FrameType) -> bool:
    """Return whether errors show a frame."""
    return not is_hidden(frame.f_code.co_filename)
