"""Names that e3nn-jax, and by it JAX MD, imports from `jax._src.api_util`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.api_util import *  # noqa: F403 - the names of that module


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:  # fmt: skip
    """Return positions and names of parameters, where one of both is given.

    Args:
      sig: of the function.
      argnums: positions; None for those of `argnames`.
      argnames: names; None for those of the parameters at `argnums`.

    Example:
      >>> infer_argnums_and_argnames(inspect.signature(lambda x, y: x), None, "y")
      ((1,), ('y',))
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    by_either = [(i, name) for i, (name, parameter) in enumerate(sig.parameters.items())
                 if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]  # fmt: skip
    if argnums is None:
        numbers = tuple([i for i, name in by_either if name in names])
    elif argnames is None:
        at = {i % len(sig.parameters) for i in numbers}
        names = tuple([name for i, name in by_either if i in at])
    return numbers, names
