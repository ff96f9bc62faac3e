"""Pictures of how arrays lie: which device has which piece, printed or shown.

`visualize_array_sharding` shows an array, `visualize_sharding` a sharding for a shape, and
`inspect_array_sharding` hands the sharding to a function. An array of one dimension is a row of
pieces, one of two a table; of more, the first two dimensions that are cut are shown. Of a traced
value it is known when its program is compiled, and shown then.

Neighbours: `sharding_cells` draws, `sharding_svg` has the picture that notebooks show.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from xjit.named_shardings import resolved
from xjit.sharding_inspection import inspected
from xjit.shardings import Sharding
from xpar.sharding_cells import cells_of, drawn
from xpar.sharding_svg import BACKGROUNDS, ShardingPicture
from xprim import as_array
from xprim.callables import check_function
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, ShardingLike

__all__ = [
    "cells_of", "drawn", "inspect_array_sharding", "visualize_array_sharding",
    "visualize_sharding",
]  # fmt: skip

__dir__ = __all__.copy


def visualize_array_sharding(arr: ArrayLike, **kwargs: Any) -> None:
    """Show which device has which piece of an array.

    Args:
      arr: an array. Of a traced value the picture appears when its program has been compiled.
      **kwargs: as for `visualize_sharding`.

    Example:
      >>> import numpy as np
      >>> from xjit import device_put, devices
      >>> visualize_array_sharding(device_put(np.ones(4), devices("cpu")[0]))
      ┌─────────┐
      │  CPU 0  │
      └─────────┘
    """
    x = as_array(arr, what="visualize_array_sharding")
    inspected(x, lambda sharding: visualize_sharding(x.shape, sharding, **kwargs))


def visualize_sharding(
    shape: Sequence[int], sharding: ShardingLike, *, use_color: bool = True, scale: float = 1.0,
    min_width: int = 9, max_width: int = 80,
) -> None:  # fmt: skip
    """Show which device would have which piece of an array of a shape.

    A notebook shows a drawing. Elsewhere it is text, in a terminal with colours: by the library
    `rich` where it is installed (`pip install rich`), which knows what the
    terminal can.

    Args:
      shape: of the array.
      sharding: how it would lie.
      use_color: whether pieces have colours, where the output is a terminal.
      scale: the number of lines of a piece, at least one.
      min_width: the least number of characters of a piece.
      max_width: of the whole picture; names of devices that do not fit in a piece are cut.

    Raises:
      ValueError: such an array cannot be cut so.
      TypeError: this is no sharding.

    Example:
      >>> from xpar import NamedSharding, P, make_mesh
      >>> visualize_sharding((4, 2), NamedSharding(make_mesh((1,), ("x",)), P("x")), min_width=11)
      ┌───────────┐
      │   CPU 0   │
      └───────────┘
    """
    found = resolved(sharding, "visualize_sharding")
    if not isinstance(found, Sharding):
        raise TypeError(message("visualize_sharding", "this is no sharding.", got=repr(sharding)))
    found.check_shape(tuple(shape), "visualize_sharding")
    cells = cells_of(found, len(shape))
    if _shown_in_notebook(cells):
        return
    room = max(1, (max_width - 1) // len(cells[0]) - 1)
    width = min(max(*[len(label) + 2 for row in cells for label in row], min_width), room)
    _print(cells, width, max(1, round(scale)), use_color and sys.stdout.isatty())


def _shown_in_notebook(cells: list[list[str]]) -> bool:
    """Show a drawing where the program runs in a notebook, whose library is loaded then."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if ipython is None or not hasattr(shell, "kernel"):
        return False
    ipython.display.display(ShardingPicture(cells))
    return True


def _print(cells: list[list[str]], width: int, height: int, in_colour: bool) -> None:
    if in_colour:
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            lines = drawn(cells, width, height, in_colour=True, paint=_marked)
            Console().print("\n".join(lines), highlight=False, soft_wrap=True)
            return
    sys.stdout.write("\n".join(drawn(cells, width, height, in_colour)) + "\n")


def _marked(text: str, number: int) -> str:
    """Return a text on the background of a piece, in the words of `rich`."""
    return f"[black on {BACKGROUNDS[number % len(BACKGROUNDS)]}]{text}[/]"


def inspect_array_sharding(value: ArrayLike, *, callback: Callable[[Sharding], Any]) -> None:
    """Call a function with the sharding of an array.

    How a value inside a compiled program lies is decided when it is compiled: the function is
    called once then, not when the program runs again. Inside `shard_map` it gets the sharding of
    what a member has, which is whole along the axes of the members.

    Args:
      value: an array, or a traced value.
      callback: takes its sharding. Under `vmap` that is of the whole batch.

    Raises:
      TypeError: `callback` is no function.
      ValueError: in a `shard_map` over some of the axes of a mesh, which leaves several others to
        the compiler.

    Example:
      >>> import numpy as np
      >>> from xjit import device_put, jit
      >>> from xpar import NamedSharding, P, make_mesh
      >>> @jit
      ... def f(x):
      ...     y = x.T
      ...     inspect_array_sharding(y, callback=lambda sharding: print(sharding.num_devices))
      ...     return y
      >>> x = device_put(np.ones((2, 3)), NamedSharding(make_mesh((1,), ("x",)), P("x")))
      >>> _ = f(x), f(x)
      1
    """
    check_function(callback, "inspect_array_sharding", "it takes the sharding")
    inspected(as_array(value, what="inspect_array_sharding"), callback)


boundaries(globals())
