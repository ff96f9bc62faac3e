"""Every argument that JAX's public functions take is taken by ours, in its place, by its name, and
with its default, but for those that are listed here with the reason."""

import inspect

import pytest

import xstack
from tests.signatures import differences, members, objects, pairs, parameters

jax = pytest.importorskip("jax")

# What the signatures are compared with. Older releases lack arguments that ours take.
NEWEST = (0, 12)

_PRIVATE = "objects of this class are made by the library alone"
_SENTINEL = "None says that nothing was given"
_OUR_MESSAGE = "the message is made of an operation, a problem and a hint"
_EXPERIMENT = "an experiment of JAX's, without documentation"
_REFERENCES = "a reference has the type of its value"
_MESHES = "shardings are not part of types"
_UNREDUCED = "what is in parts is a sum, never an extremum"
_SPARSE = "a sparse array lies where its parts do, which device_put says"
_PROGRAMS = "programs are made by tracing; the name is for asking what a value is"
_SLICES = "slices are groups of TPUs"

# path -> argument -> why ours has none such, or another
DELIBERATE = {
    "core.AbstractValue": _PROGRAMS,
    "core.ShapedArray": _PROGRAMS,
    "core.eval_jaxpr": {"propagate_source_info": "equations always keep their source"},
    **{f"extend.core.{name}": _PROGRAMS
       for name in ("ClosedJaxpr", "Effect", "Jaxpr", "JaxprEqn", "Literal")},
    "experimental.sparse.bcoo_conv_general_dilated": {"out_sharding": _SPARSE},
    "experimental.sparse.bcoo_dot_general": {"out_sharding": _SPARSE},
    "experimental.sparse.bcoo_reshape": {"sharding": _SPARSE},
    "experimental.sparse.JAXSparse": "it is abstract",
    "experimental.sparse.bcsr_dot_general": {"out_sharding": _SPARSE},
    "ShapeDtypeStruct": {"manual_axis_type": _MESHES, "is_ref": _REFERENCES},
    "checkify.Error": "checkify makes it, nobody else",
    "checkify.checkify": {"errors": "its kinds of checks are names, not classes"},
    "export.Exported": "export and deserialize make it, nobody else",
    "distributed.initialize": {
        "slice_index": _SLICES, "partition_index": _SLICES,
        **dict.fromkeys((
            "mtls_cert_file", "mtls_key_file", "mtls_ca_file", "mtls_peer_uri_prefix",
            "verify_secure_credentials",
        ), "the oldest jaxlib has none of it"),
    },
    "ds": {"size": _SENTINEL},
    "experimental.random.StatefulPRNG": _PRIVATE,
    "jit": {"fun": _SENTINEL, "in_shardings": _SENTINEL, "out_shardings": _SENTINEL},
    "P": {"unreduced_kind": _UNREDUCED},
    "standardize": {"algorithm": "the default is the one that is right far from 0"},
    "sharding.PartitionSpec": {
        "unreduced_kind": _UNREDUCED,
    },
    "sharding.ManualAxisType": {"unreduced_kind": _UNREDUCED},
    "sharding.no_collectives": {"new_val": "the axes are to be named"},
    "Ref": _PRIVATE,
    "debug.visualize_sharding": {"color_map": "the colours are the terminal's own"},
    "dtypes.canonicalize_dtype": {"allow_extended_dtype": "extended dtypes are always allowed"},
    "stages.ArgInfo": _PRIVATE,
    "stages.Compiled": _PRIVATE,
    "stages.Lowered": _PRIVATE,
    "stages.Traced": _PRIVATE,
    "errors.ConcretizationTypeError": _OUR_MESSAGE,
    "errors.NonConcreteBooleanIndexError": _OUR_MESSAGE,
    "errors.TracerArrayConversionError": _OUR_MESSAGE,
    "errors.TracerBoolConversionError": _OUR_MESSAGE,
    "errors.TracerIntegerConversionError": _OUR_MESSAGE,
    "errors.UnexpectedTracerError": _OUR_MESSAGE,
    "test_util.check_jvp": "the derivative is taken by xad, so none is given",
    "test_util.check_vjp": "the derivative is taken by xad, so none is given",
    "jit(f).trace(x).lower().compile": {"device_assignment": _MESHES},
    "custom_vjp(f).defvjp": {"generic_batching": _EXPERIMENT},
    "custom_vjp(f).defvjp_with_accums": {"generic_batching": _EXPERIMENT},
    "custom_vjp(f).defvjp_with_logs": {"generic_batching": _EXPERIMENT},
    "custom_vjp(f).defremat": {"generic_batching": _EXPERIMENT},
}  # fmt: skip


def compared():
    """Yield (path, our parameters, JAX's) of every public callable of both."""
    found = [
        (path, a, b, path.startswith("xstack.Array.")) for path, a, b in pairs("xstack", "jax")
    ]
    ours, theirs = dict(objects(xstack)), dict(objects(jax))
    for name, instance in theirs.items():
        found += [(path, a, b, False) for path, a, b in members(name, ours[name], instance)]
    for path, a, b, is_method in found:
        mine, expected = parameters(a, is_method), parameters(b, is_method)
        if expected is not None and not (mine is None and _is_error(a)):
            yield path.removeprefix("xstack."), mine, expected


def _is_error(value):
    """Whether a value is a class of errors; Python's own take any arguments."""
    return isinstance(value, type) and issubclass(value, Exception)


@pytest.fixture(scope="module")
def found():
    if jax.__version_info__ < NEWEST:
        pytest.skip(f"compared with JAX {NEWEST}, here is {jax.__version__}")
    return {
        path: {"": "has no signature"} if ours is None else differences(ours, theirs)
        for path, ours, theirs in compared()
    }


def _excused(path):
    """Return what is deliberate of a callable, which may be reached by several paths."""
    for name, reasons in DELIBERATE.items():
        if path == name or path.endswith(f".{name}"):
            return reasons
    return {}


def test_every_argument_of_jax_is_taken_in_its_place_by_its_name_and_with_its_default(found):
    print(f"{len(found)} signatures")
    assert len(found) > 1000
    wrong = []
    for path, problems in found.items():
        excused = _excused(path)
        if isinstance(excused, str):
            continue
        wrong += [f"{path}: {name} {problem}" for name, problem in problems.items()
                  if name not in excused]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def test_each_deliberate_difference_is_one(found):
    met = {path: problems for path, problems in found.items() if problems}
    for name, reasons in DELIBERATE.items():
        problems = [p for path, p in met.items() if path == name or path.endswith(f".{name}")]
        assert problems, f"{name} no longer differs"
        if not isinstance(reasons, str):
            stale = [a for a in reasons if not any(a in p for p in problems)]
            assert not stale, f"{name} no longer differs in {stale}"


def _parameters(function):
    return list(inspect.signature(function).parameters.values())


@pytest.mark.parametrize(
    ("ours", "problem"),
    [
        (lambda a: 0, {"b": "is not taken"}),
        (lambda b, a=1: 0, {"a": "is 'b' in position 0"}),
        (lambda a, b=2: 0, {"b": "has the default 2, not 1"}),
        (lambda a, b: 0, {"b": "has the default"}),
        (lambda a, b=1, *, c: 0, {"c": "must be given"}),
        (lambda a, b=1, /: 0, {"a": "is not taken by name"}),
        (lambda a, b=True: 0, {"b": "has the default True, not 1"}),
        (lambda a, b=1, c=3: 0, {}),
        (lambda *args, **kwargs: 0, {}),
    ],
)
def test_a_call_that_would_mean_something_else_is_a_difference(ours, problem):
    differs = differences(_parameters(ours), _parameters(lambda a, b=1: 0))
    for name, text in problem.items():
        assert text in differs[name]
    assert bool(differs) == bool(problem)
