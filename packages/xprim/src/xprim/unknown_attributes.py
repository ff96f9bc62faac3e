"""What arrays answer to the attributes of other libraries' arrays: the words that do it here.

`x.backward()`, `x.unsqueeze(0)`, `x.fill(0)` are no attributes of arrays: `hasattr` says so, and
`dir` does not list them. The error names the way here, from the table below.

Concrete arrays have a descriptor for each of these names, which raises the error. A `__getattr__`
would do it in one place, but with one in its class reading a property takes twice as long, and on
Python 3.11 reading any attribute three times. Tracers, which are slower anyhow, have it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from xtree.boundaries import leave

__all__ = ["HINTS", "UnknownAttribute", "attribute_error"]

__dir__ = __all__.copy

_GRADIENTS = "derivatives are of functions, not in arrays: slopes = xstack.grad(loss)(params)"
_NEVER_IN_PLACE = "arrays do not change in place: "
_BY_NAME = {
    "backward": _GRADIENTS, "grad": _GRADIENTS, "grad_fn": _GRADIENTS, "is_leaf": _GRADIENTS,
    "requires_grad": _GRADIENTS, "requires_grad_": _GRADIENTS, "retain_grad": _GRADIENTS,
    "detach": "lax.stop_gradient(x) lets no derivative through",
    "numpy": "np.asarray(x)", "to_numpy": "np.asarray(x)", "values": "np.asarray(x)",
    "cpu": "xstack.device_put(x, xstack.devices('cpu')[0]), or np.asarray(x)",
    "cuda": "xstack.device_put(x, xstack.devices('gpu')[0])",
    "to": "xstack.device_put(x, device) for another device, x.astype(dtype) for another dtype",
    "is_cuda": "x.device says where it is",
    "contiguous": "nothing to do: memory is in order always",
    "is_contiguous": "nothing to do: memory is in order always",
    "float": "x.astype('float32')", "double": "x.astype('float64'), with xstack.enable_x64",
    "half": "x.astype('float16')", "bfloat16": "x.astype('bfloat16')",
    "int": "x.astype('int32')", "long": "x.astype('int64'), with xstack.enable_x64",
    "short": "x.astype('int16')", "byte": "x.astype('uint8')", "bool": "x.astype(bool)",
    "type": "x.dtype, and x.astype(dtype) for another", "type_as": "x.astype(y.dtype)",
    "unsqueeze": "x[:, None], or xnp.expand_dims(x, axis)",
    "permute": "x.transpose(1, 0)", "t": "x.T",
    "expand": "xnp.broadcast_to(x, shape)", "expand_as": "xnp.broadcast_to(x, y.shape)",
    "view_as": "x.reshape(y.shape)", "reshape_as": "x.reshape(y.shape)",
    "numel": "x.size", "dim": "x.ndim", "ndimension": "x.ndim", "get_shape": "x.shape",
    "mm": "x @ y", "bmm": "x @ y", "matmul": "x @ y", "mv": "x @ y",
    "pow": "x ** y", "mul": "x * y", "add": "x + y", "sub": "x - y", "div": "x / y",
    "norm": "xnp.linalg.norm(x)", "det": "xnp.linalg.det(x)", "inverse": "xnp.linalg.inv(x)",
    "masked_fill": "xnp.where(mask, value, x)", "masked_select": "x[mask]",
    "index_select": "xnp.take(x, indices, axis=0)",
    "gather": "xnp.take_along_axis(x, indices, axis=0)",
    "index_add": "x.at[indices].add(y)", "scatter": "x.at[indices].set(y)",
    "scatter_add": "x.at[indices].add(y)", "clamp": "x.clip(low, high)",
    "topk": "xstack.lax.top_k(x, k)", "unbind": "list(x)",
    "chunk": "xnp.array_split(x, parts)", "split": "xnp.split(x, parts)",
    "append": "xnp.append(x, y) makes a new, longer array; in a loop, a list and xnp.stack once",
    "extend": "xnp.concatenate([x, y]) makes a new, longer array",
    "apply": "a function of arrays as it is, or xstack.vmap(f)(x) of one of elements",
    "map": "a function of arrays as it is, or xstack.vmap(f)(x) of one of elements",
    "assign": _NEVER_IN_PLACE + "x = value",
    "fill": _NEVER_IN_PLACE + "x = xnp.full_like(x, value)",
    "put": _NEVER_IN_PLACE + "x = xnp.put(x, indices, values, inplace=False)",
    "resize": _NEVER_IN_PLACE + "x = xnp.resize(x, shape)",
    "itemset": _NEVER_IN_PLACE + "x = x.at[index].set(value)",
    "partition": _NEVER_IN_PLACE + "x = xnp.partition(x, kth)",
    "setflags": _NEVER_IN_PLACE + "np.array(x) is a copy that does",
    "tofile": "np.asarray(x).tofile(file), or xnp.save(file, x)",
    "dump": "xnp.save(file, x), or pickle.dump(x, file)",
}  # fmt: skip
_FUNCTIONS = {
    "xnp": "abs exp log log2 sqrt square sin cos tan tanh sign floor ceil median diff flip roll "
           "tril triu outer unique isnan allclose nansum where minimum maximum cross tile",
    "xstack.nn": "relu sigmoid softmax log_softmax logsumexp gelu silu softplus one_hot",
}  # fmt: skip
_CHANGES = {
    "zero": "xnp.zeros_like(x)", "fill": "xnp.full_like(x, value)", "copy": "y",
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "pow": "x ** y",
    "clamp": "x.clip(low, high)", "relu": "xstack.nn.relu(x)", "exp": "xnp.exp(x)",
    "neg": "-x", "sqrt": "xnp.sqrt(x)", "normal": "xstack.random.normal(key, x.shape)",
    "uniform": "xstack.random.uniform(key, x.shape)", "unsqueeze": "x[:, None]",
    "masked_fill": "xnp.where(mask, value, x)", "scatter": "x.at[indices].set(y)",
    "scatter_add": "x.at[indices].add(y)", "index_add": "x.at[indices].add(y)",
    "index_fill": "x.at[indices].set(value)",
}  # fmt: skip

HINTS: dict[str, str] = {
    **{name: f"{home}.{name}(x)" for home, names in _FUNCTIONS.items() for name in names.split()},
    **{f"{name}_": f"{_NEVER_IN_PLACE}x = {text}" for name, text in _CHANGES.items()},
    **_BY_NAME,
}
"""The names, and how to do here what they mean."""


class UnknownAttribute:
    """A descriptor that an object does not have, and says so."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        try:
            raise attribute_error(owner if instance is None else instance, self._name)
        except AttributeError as error:
            leave(error)
            raise

    def __repr__(self) -> str:
        return f"<not here: {HINTS[self._name]}>"


def attribute_error(value: Any, name: str) -> AttributeError:
    """Return the error of an array that has no attribute of a name.

    Where there is no hint Python looks itself for a name that is spelt alike, in a traceback.

    Example:
      >>> print(attribute_error(0, "numel"))
      'int' object has no attribute 'numel'.
        hint      x.size
    """
    text = f"{type(value).__name__!r} object has no attribute {name!r}"
    hint = HINTS.get(name)
    if hint is None:
        return AttributeError(text, name=name, obj=value)
    return AttributeError(f"{text}.\n  hint      {hint}", name=name, obj=None)
