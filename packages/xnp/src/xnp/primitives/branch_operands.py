"""branch_operands: the operands of one branch of a `cond` whose index has batch dimensions.

    outs = branch_operands[branch=k leading=(...)] index operands...

There every branch runs for all examples, and `select_n` drops what was not asked for. What it drops
must not reach a derivative: 0 times the infinite slope of the branch that an example did not take
is NaN. Evaluated, this primitive is the identity and costs nothing. Differentiated, an example that
does not take the branch gets the operands of one that does, so that every slope is one that the
user's program has, and its tangents are zero. (Where no example takes the branch, no tangent is
left to be multiplied, and the zeros are selected after the product in reverse mode.)

`index` has the batch dimensions; operand i has the first `leading[i]` of them in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xnp.primitives.along_axis import take_along
from xnp.primitives.operations import bind, broadcasted, converted, filled, reshaped, selected
from xprim import (
    Equation,
    Linear,
    Primitive,
    Zero,
    dimension_names,
    dtypes,
    not_mapped,
    scalar_array,
)
from xprim.calls import where_true
from xprim.contracts import BatchAxis

__all__ = ()


def _masks(index: Any, branch: int) -> list[Any]:
    """Return who takes the branch: by the number of batch dimensions, in those that follow any."""
    masks = [bind("eq", index, broadcasted(scalar_array(branch, index.aval.dtype),
                                           index.aval.shape))]  # fmt: skip
    for axis in reversed(range(index.aval.ndim)):
        masks.insert(0, bind("reduce_or", masks[0], axes=(axis,)))
    return masks


def _kept(mask: Any, x: Any, otherwise: Any) -> Any:
    """Return x where a mask of its leading dimensions holds."""
    return selected(broadcasted(mask, x.aval.shape, tuple(range(mask.aval.ndim))), x, otherwise)


def _zeroed(mask: Any, x: Any) -> Any:
    if type(x) is Zero:
        return x
    return _kept(mask, x, filled(x.aval.shape, 0, x.aval.dtype))


def _from_takers(masks: Sequence[Any], operands: Sequence[Any], leading: Sequence[int]) -> Any:
    """Return the operands with those of the first that takes the branch in place of the others'."""
    xs = list(operands)
    for axis in reversed(range(len(masks) - 1)):
        mask = masks[axis + 1]
        first = bind("argmax", converted(mask, dtypes.int32), axes=(axis,),
                     index_dtype=dtypes.int32)  # fmt: skip
        for i, x in enumerate(xs):
            if leading[i] > axis and x.aval.size:
                xs[i] = _kept(mask, x, bind("stop_gradient", _repeated(x, first, axis)))
    return xs


def _repeated(x: Any, place: Any, axis: int) -> Any:
    """Return x with its element at a place along an axis in all of them."""
    shape = x.aval.shape
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    found = take_along(x, broadcasted(place, one, tuple(range(axis))), axis)
    rest = (*shape[:axis], *shape[axis + 1 :])
    kept = tuple([d for d in range(len(shape)) if d != axis])
    return broadcasted(reshaped(found, rest), shape, kept)


def _jvp(primals: Any, tangents: Any, *, branch: int, leading: tuple[int, ...]) -> Any:
    (index, *xs), (_, *dots) = primals, tangents
    if all(type(dot) is Zero for dot in dots):
        outs = branch_operands_p.bind(index, *xs, branch=branch, leading=leading)
        return outs, tuple(dots)
    masks = _masks(index, branch)
    outs = tuple(_from_takers(masks, xs, leading))
    return outs, tuple([_zeroed(masks[n], dot) for n, dot in zip(leading, dots, strict=True)])


def _transpose(cts: Any, index: Any, *xs: Any, branch: int, leading: tuple[int, ...]) -> Any:
    masks = _masks(index, branch)
    bars = [
        _zeroed(masks[n], ct) if type(x) is Linear else Zero(x.aval)
        for ct, x, n in zip(cts, xs, leading, strict=True)
    ]
    return (Zero(index.aval), *bars)


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, branch: int, leading: tuple[int, ...]
) -> Any:
    (index, *xs), (index_dim, *xs_dims) = operands, dims
    index = axis.to_front(index, index_dim)
    fronts, depths = [], []
    for x, d, n in zip(xs, xs_dims, leading, strict=True):
        shared = d is not_mapped and not n
        fronts.append(x if shared else axis.to_front(x, d))
        depths.append(0 if shared else n + 1)
    outs = branch_operands_p.bind(index, *fronts, branch=branch, leading=tuple(depths))
    return outs, tuple([0 if n else not_mapped for n in depths])


def _dce(used: Sequence[bool], eqn: Equation) -> Equation:
    """Keep the operands that are asked for: each result is one of them."""
    index, *xs = eqn.inputs
    leading = tuple(where_true(eqn.params["leading"], used))
    return eqn.replace(
        inputs=[index, *where_true(xs, used)],
        outputs=where_true(eqn.outputs, used),
        params=eqn.params | {"leading": leading},
    )


def _physical(_trailing: int, *operands: Any, **params: Any) -> Any:
    # Each result is the operand itself. The dimensions of an element come last: to map over them
    # would give the index, and the operands that hold numbers, batch dimensions that are not there.
    return branch_operands_p.bind(*operands, **params)


branch_operands_p: Primitive = Primitive(
    "branch_operands",
    shape=lambda index, *avals, **_: avals,
    numpy=lambda index, *xs, **_: xs,
    stablehlo=lambda b, operands, avals_in, avals_out, **_: list(operands[1:]),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    dce=_dce,
    physical=_physical,
    dimensions=dimension_names.AS_SAID,
)
