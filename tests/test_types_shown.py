"""What `help` and editors show: each argument and each result has a type that says what it is.

`Any` says nothing. It stays where a function hands on whatever its caller gives (`*args` and
`**kwargs` of a function that is called, fields of a message), and where these tables say why.
What checkers know of results that depend on an option is held by `tests/typing/results.py`.
"""

import inspect

import xstack
from tests.public_names import kept, resolve
from xprim.array_interface import ArrayInterface

_IMPLEMENTATION = "a name, or an object that implements a kind of random keys"
_DIMENSIONS = "tuples of several forms, which the docstring lists"
_OTHERS = "an object of another library"

# path -> argument -> why it shows no type
UNTYPED = {
    "Shard": {"device": "jaxlib's class of devices"},
    "sharding.Mesh": {"devices": "an array of objects"},
    "stages.ArgInfo": {"dtype": "numpy's, or an extended one"},
    "dlpack.from_dlpack": {"external_array": _OTHERS},
    "debug.breakpoint": {"backend": "takes no effect", "token": "takes no effect"},
    "random.key": {"impl": _IMPLEMENTATION},
    "random.PRNGKey": {"impl": _IMPLEMENTATION},
    "random.key_dtype": {"impl_spec": _IMPLEMENTATION},
    "experimental.random.stateful_rng": {"impl": _IMPLEMENTATION},
    "random.wrap_key_data": {"impl": _IMPLEMENTATION},
    "lax.conv_dimension_numbers": {"dimension_numbers": _DIMENSIONS},
    "lax.scaled_dot": {"dimension_numbers": _DIMENSIONS},
    "nn.scaled_dot_general": {"dimension_numbers": _DIMENSIONS},
    **{f"experimental.sparse.{name}": {"dimension_numbers": _DIMENSIONS}
       for name in ("bcoo_dot_general", "bcoo_dot_general_sampled", "bcsr_dot_general")},
    "experimental.sparse.bcoo_conv_general_dilated": {
        "dimension_numbers": _DIMENSIONS, "padding": "a name, or pairs",
    },
    "experimental.sparse.bcoo_gather": {
        "fill_value": "a number, or None", "mode": "a name, or a member of an enumeration, or None",
    },
    **{f"experimental.sparse.{name}": {"sharding": "None alone"}
       for name in ("bcoo_broadcast_in_dim", "bcsr_broadcast_in_dim")},
    "export.symbolic_dim_bounds": {"dimension": "an expression of sizes"},
    "experimental.multihost_utils.ProcessFailureError": {"failed_devices": "the runtime's list"},
    "experimental.serialize_executable.deserialize_and_load": {"backend": "the runtime's client"},
    "testing.pytest_configure": {"config": _OTHERS},
    "testing.pytest_pyfunc_call": {"pyfuncitem": _OTHERS},
    **{f"ops.segment_{name}": {"mode": "a name, or a member of an enumeration, or None"}
       for name in ("max", "min", "prod", "sum")},
}  # fmt: skip

_ONE_OR_A_FUNCTION = "None, or without an argument the function that takes it"

# path -> why it shows no type of its result
UNTYPED_RESULTS = {
    "Array.item": "a Python number of the kind of the dtype",
    "config.read": "of the type that the option has",
    **{f"debug.{name}": _ONE_OR_A_FUNCTION for name in ("callback", "log", "print")},
    "debug.breakpoint": "the tree that it is given as `token`",
    "experimental.sparse.bcoo_dot_general": "dense, or sparse where both operands are",
    "experimental.sparse.bcsr_dot_general": "dense, or sparse where both operands are",
    "numpy.load": "what the file holds",
    "tree.static": "the default of a field of any type, as `dataclasses.field` has it",
}  # fmt: skip

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _signatures():
    """Yield (path, signature) of every public callable that Python knows one of, once each."""
    seen = set()
    for holder in kept():
        try:
            found = resolve(holder)
        except (ImportError, AttributeError):  # of an optional distribution
            continue
        for name in sorted(set(dir(found))):
            value = getattr(found, name, None)
            if name.startswith("_") or not callable(value) or id(value) in seen:
                continue
            seen.add(id(value))
            is_error = isinstance(value, type) and issubclass(value, Exception)
            try:
                if not (is_error and holder == "xstack.errors"):
                    yield f"{holder}.{name}".removeprefix("xstack."), inspect.signature(value)
            except (TypeError, ValueError):  # a class of C code
                continue


def _shows_any(annotation):
    return str(annotation).strip("'").removeprefix("typing.") == "Any"


def _untyped():
    found = {}
    for path, signature in _signatures():
        for p in signature.parameters.values():
            if p.kind in _VARIADIC or p.name == "self" or p.name.startswith("_"):
                continue
            if _shows_any(p.annotation):
                found.setdefault(path, {})[p.name] = ""
    return found


def test_every_argument_of_a_public_function_shows_its_type():
    expected = {path: sorted(reasons) for path, reasons in UNTYPED.items()}
    assert {path: sorted(names) for path, names in _untyped().items()} == expected


def test_every_public_function_shows_the_type_of_its_result():
    shown = {path for path, found in _signatures() if _shows_any(found.return_annotation)}
    assert shown == {*UNTYPED_RESULTS}


def test_operators_and_methods_of_arrays_show_arrays():
    for name in ("__add__", "__rsub__", "__lt__", "astype", "reshape", "transpose", "clip"):
        assert str(inspect.signature(getattr(xstack.Array, name)).return_annotation) == "Array"


def test_checkers_see_each_attribute_of_arrays():
    of_the_class = {"aval", "shape", "dtype", "ndim", "size", "itemsize", "nbytes", "weak_type"}
    inside = {"buffer", "first_use", "host", "to_host", "to_stored"}  # below what users see
    attributes = {name for name in dir(xstack.numpy.zeros(3)) if not name.startswith("_")}
    assert attributes - set(vars(ArrayInterface)) == of_the_class | inside
