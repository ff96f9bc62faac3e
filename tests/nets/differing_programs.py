"""Programs that two libraries run differently, each with what is seen in both.

A program takes a library, `jax` or `xstack`, and its `numpy`. What is seen is the result as plain
Python values, or the name of the error's class. `SEEN` has them by the row of the page "coming from
JAX" that they belong to: the row's first words, the program, what the oracle shows, what ours does.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import inspect
import io
from collections.abc import Callable
from typing import Any

import numpy as np

inf, nan = np.inf, np.nan
Program = Callable[[Any, Any], Any]

Point = collections.namedtuple("Point", "a")


class Metadata:
    """A pytree whose metadata is a dict."""

    def __init__(self, x: Any, data: dict[str, float]) -> None:
        self.x, self.data = x, data


class Lends:
    """An object that becomes an array when it is asked."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.float32([0, 2])


class LendsArrays:
    """An object that becomes an array of the library when that asks for one."""

    shape, ndim, dtype = (2,), 1, np.dtype(np.float32)

    def __init__(self, n: Any) -> None:
        self.numpy = n

    def __jax_array__(self) -> Any:
        return self.numpy.arange(2.0)


def scipy_of(j: Any, name: str) -> Any:
    return importlib.import_module(f"{j.__name__}.scipy.{name}")


def error_of_expm(j: Any, n: Any) -> bool:
    """Whether a symmetric exponential is a thousandth off, by its eigenvalues in float64."""
    a = np.random.RandomState(1).randn(3, 3).astype(np.float32)
    a = a @ a.T + 3 * np.eye(3, dtype=np.float32)
    values, vectors = np.linalg.eigh(a.astype(np.float64))
    exact = vectors * np.exp(values) @ vectors.T
    return bool(np.max(abs(np.asarray(scipy_of(j, "linalg").expm(a)) / exact - 1)) > 1e-3)


def of_a_nondiff_argument(j: Any, n: Any) -> Any:
    times = j.custom_jvp(lambda x, y: x * y, nondiff_argnums=(0,))
    times.defjvp(lambda x, primals, tangents: (x * primals[0], x * tangents[0]))
    return j.jvp(lambda x: times(x, 3.0), (2.0,), (1.0,))[1]


def donated_by_device_put(j: Any, n: Any) -> bool:
    x = j.device_put(n.ones(2), j.devices()[0])
    j.device_put(x, j.devices()[-1], donate=True)
    return bool(x.is_deleted())


def deleted(n: Any) -> Any:
    x = n.ones(2) + 1
    x.delete()
    return x


def counted_by_checkpoint(j: Any, n: Any) -> Any:
    """How often a checkpointed function writes, where it is differentiated."""
    ref = j.new_ref(n.float32(0.0))

    def f(x: Any) -> Any:
        ref[...] += 1.0
        return n.sin(x)

    j.grad(j.checkpoint(f))(1.0)
    return ref[...]


def entropy_of_one_rank(j: Any, n: Any) -> Any:
    """A function of one vector that makes a matrix of it."""
    with j.numpy_rank_promotion("raise"):
        return importlib.import_module(f"{j.__name__}.scipy.stats").poisson.entropy(n.ones(2)).shape


async def asynchronous(x: Any) -> Any:
    return x


def generator(x: Any) -> Any:
    yield x


def of_one_shape(j: Any, n: Any) -> Any:
    """Return a function of three results for an example, whose rule has three for a batch."""
    pair = j.custom_batching.custom_vmap(lambda x: x + n.ones(3))
    pair.def_vmap(lambda size, mapped, x: (x + n.ones(3), True))
    return pair


def pushed_through_a_reverse_rule(j: Any, n: Any) -> Any:
    square = j.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
    return j.jvp(square, (3.0,), (1.0,))[1]


def solved_and_pushed_forward(j: Any, n: Any) -> Any:
    ode = importlib.import_module(f"{j.__name__}.experimental.ode")

    def last(a: Any) -> Any:
        return ode.odeint(lambda y, t, a: -a * y, 1.0, n.array([0.0, 1.0]), a, rtol=1e-4)[1]

    return float(j.jvp(j.grad(last), (1.0,), (1.0,))[1].round(2))


def norm_of_factors(j: Any, n: Any) -> Any:
    def norm(a: Any) -> Any:
        u, s, vh = n.linalg.svd(a)
        return n.linalg.norm((u * s) @ vh)

    return j.grad(norm)(n.eye(4)).diagonal()


def with_batch_rule(library: Any, seen: list[Any]) -> Any:
    """Return a function whose rule for batches notes what is of the batch."""

    @library.custom_batching.custom_vmap
    def square(x: Any) -> Any:
        return x * x

    @square.def_vmap
    def _(size: int, in_batched: list[bool], x: Any) -> Any:
        seen.append(in_batched)
        return x * x, in_batched[0]

    return square


def batches_of_tangents_alone(library: Any, numpy: Any) -> list[Any]:
    seen: list[Any] = []
    f = with_batch_rule(library, seen)
    library.vmap(lambda t: library.jvp(f, (1.0,), (t,)))(numpy.ones(3))
    return seen


def traces_by_keyword(library: Any, _: Any) -> int:
    traced = []
    f = library.jit(lambda x, y: traced.append(1) or x + y)
    f(1, 2)
    f(1, y=2)
    return len(traced)


def traces_of_equal_lambdas(j: Any, n: Any) -> int:
    """Count the traces of equal lambdas by what they print: a count would be a changing object."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for _ in range(3):
            j.jit(lambda x: [print("traced"), x][1])(1.0)
    return out.getvalue().count("traced")


def traces_of_static_kinds(j: Any, n: Any) -> int:
    traces: list[int] = []

    def function(x: Any, point: Any) -> Any:
        traces.append(1)
        return x

    compiled = j.jit(function, static_argnums=1)
    for point in (Point(1), Point(1.0), Point(True)):
        compiled(1.0, point)
    return len(traces)


def after_metadata_changed(j: Any, n: Any) -> float:
    kind = type("Kind", (Metadata,), {})
    j.tree_util.register_pytree_node(
        kind, lambda t: ((t.x,), t.data), lambda data, children: kind(children[0], data)
    )
    data = {"scale": 2.0}
    scaled = j.jit(lambda t: t.x * t.data["scale"])
    scaled(kind(1.0, data))
    data["scale"] = 3.0
    return float(scaled(kind(1.0, data)))


def after_a_global_changed(j: Any, n: Any) -> tuple[float, float, float]:
    space = {"scale": 1.0}
    exec("def scaled(x):\n  return x * scale", space)
    scaled = j.jit(space["scaled"])
    before = float(scaled(1.0))
    space["scale"] = 2.0
    other_shape = float(scaled(n.ones(1))[0])
    return before, other_shape, float(scaled(1.0))


def odd_counts(sampler: str, parameter: float) -> Program:
    """Return a program that says whether about half of some counts are odd."""

    def program(j: Any, n: Any) -> bool:
        counts = getattr(j.random, sampler)(j.random.key(0), parameter, (1000,))
        return 0.4 < (counts % 2).mean() < 0.6

    return program


def complex_weights(j: Any, n: Any) -> float:
    """Return the deviation of weights that should be one, to 0.1%: there are four million."""
    make = j.nn.initializers.he_normal()
    weights = make(j.random.key(0), (2000, 2000), "complex64")
    return round(float((n.abs(weights) ** 2).mean() * 1000) ** 0.5, 3)


def draws_of_two_keys_of_rbg(j: Any, n: Any) -> bool:
    """Return whether the second example of mapped draws is not that of its own key."""
    keys = j.random.split(j.random.key(0, impl="rbg"), 2)
    drawn = j.vmap(lambda k: j.random.normal(k, (3,)))(keys)
    return not n.allclose(drawn[1], j.random.normal(keys[1], (3,)))


def integers_of_unsafe_rbg(j: Any, n: Any) -> list[int]:
    drawn = j.random.randint(j.random.key(0, impl="unsafe_rbg"), (3,), 0, 99)
    return [int(v) for v in drawn]


def lowered_by_objects(j: Any, n: Any) -> Any:
    names = ("extend.core", "interpreters.mlir")
    core, mlir = [importlib.import_module(f"{j.__name__}.{name}") for name in names]
    same_p = core.Primitive("same")
    same_p.def_abstract_eval(lambda x: x)
    negate = importlib.import_module("jaxlib.mlir.dialects.stablehlo").negate
    mlir.register_lowering(same_p, lambda context, x: [negate(negate(x))])
    return float(j.jit(same_p.bind)(1.0))


def donated_while_checked(j: Any, n: Any) -> Any:
    x = n.ones(3)
    with j.debug_nans(True):
        j.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x.is_deleted()


def donated_number(j: Any, n: Any) -> Any:
    x = n.array(2.0)
    j.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x.is_deleted()


def written_strictly(j: Any, method: str, value: Any) -> Any:
    x, value = j.numpy.ones(2), value if type(value) is bool else j.numpy.array(value)
    with j.numpy_dtype_promotion("strict"):
        return getattr(x.at[:1], method)(value)


def keys(j: Any, count: int = 3) -> Any:
    return j.random.split(j.random.key(0), count)


def mapped(j: Any, collective: Program, values: Any) -> Any:
    return j.pmap(lambda k: collective(j.lax, k), axis_name="i")(values).shape


def written(j: Any, value: Any) -> Any:
    ref = j.new_ref(j.numpy.zeros(3))
    ref[...] = value
    return ref[...]


def weak(x: Any) -> bool:
    return bool(x.weak_type)


def transposed_cond(j: Any, n: Any) -> Any:
    def mapped_cond(x: Any) -> Any:
        choose = lambda p, x: j.lax.cond(p, lambda x: 2 * x, lambda x: 3 * x, x)  # noqa: E731
        return j.vmap(choose)(np.array([True, False]), x)

    return j.linear_transpose(mapped_cond, np.ones(2, np.float32))(n.ones(2))[0]


def batches_of_sparse(j: Any, n: Any) -> Any:
    matrices = np.stack([np.eye(2), 2 * np.eye(2)]).astype(np.float32)
    sparse = j.experimental.sparse.BCOO.fromdense(matrices, n_batch=1)
    return j.vmap(lambda s: s.todense().sum())(sparse)


def on_two_members(j: Any, n: Any, member: Callable[[Any], Any]) -> Any:
    mesh, cut = j.sharding.Mesh(np.array(j.devices()[:2]), ("i",)), j.P("i")
    return j.jit(j.shard_map(member, mesh=mesh, in_specs=cut, out_specs=cut))(n.ones(2))


def carried_sum(j: Any, n: Any) -> Any:
    """Begin a loop with what members share, and add what each has of its own."""
    return on_two_members(j, n, lambda x: j.lax.fori_loop(0, 1, lambda _, c: c + x, n.zeros(1)))


def gradient_by_branch(j: Any, n: Any) -> Any:
    """Differentiate by what members share, where each takes a branch of its own."""

    def member(x: Any) -> Any:
        def loss(w: Any) -> Any:
            return j.lax.cond(j.lax.axis_index("i") > 0, lambda w: 2 * w, lambda w: w, w)

        return j.grad(loss)(1.0) * x

    return on_two_members(j, n, member)


def explicit(j: Any, sizes: Any = (2,), names: Any = ("a",)) -> Any:
    return j.make_mesh(sizes, names, axis_types=(j.sharding.AxisType.Explicit,) * len(names))


def asked_otherwise(j: Any, n: Any) -> list[float]:
    mesh, spec = j.sharding.Mesh(np.array(j.devices()[:2]), ("a",)), j.sharding.PartitionSpec
    x = j.device_put(n.arange(4.0), j.NamedSharding(mesh, spec("a")))
    return j.jit(lambda x: x + 1, in_shardings=j.NamedSharding(mesh, spec()))(x)


def of_parts(fun: Any, is_added: bool = True) -> Program:
    """Return a program that does something to `arange(2)` in parts of a sum, and adds it up."""

    def program(j: Any, n: Any) -> Any:
        P = j.sharding.PartitionSpec
        mesh = j.make_mesh((2,), ("x",), axis_types=(j.sharding.AxisType.Explicit,))
        with j.set_mesh(mesh):

            def run() -> Any:
                u = j.reshard(n.arange(2.0), P(unreduced={"x"}))
                found = fun(j, n, u)
                return j.reshard(found, P()) if is_added else found

            return np.asarray(j.jit(run)()).tolist()

    return program


def product_in_parts(j: Any, n: Any, u: Any) -> Any:
    spec = j.sharding.PartitionSpec(unreduced={"x"})
    return n.einsum("ij,j->i", np.eye(2, dtype="f4"), np.ones(2, "f4"), out_sharding=spec)


def constrained(j: Any, n: Any) -> str:
    mesh, spec = explicit(j), j.sharding.PartitionSpec
    with j.set_mesh(mesh):
        x = j.device_put(n.arange(4.0), j.NamedSharding(mesh, spec()))
        turn = j.jit(lambda x: j.lax.with_sharding_constraint(x, spec("a")))
        return str(turn(x).sharding.spec)


def along_another_axis(member: Callable[[Any, Any], Any]) -> Program:
    """Return what members along one axis give, of values that another, explicit axis cuts."""

    def run(j: Any, n: Any) -> Any:
        spec = j.sharding.PartitionSpec
        with j.set_mesh(explicit(j, (1, 2), ("a", "b"))):
            x = j.device_put(n.arange(4.0).reshape(1, 4), spec(None, "b"))
            axes = {"a", "b"} if member is closed_over else {"a"}
            mapped = j.shard_map(
                lambda y: member(j, x + y), in_specs=spec("a"), out_specs=spec("a"),
                axis_names=axes,
            )  # fmt: skip
            return mapped(j.device_put(n.zeros((1, 1)), spec("a")))

    return run


def closed_over(j: Any, x: Any) -> Any:
    return x + 1


def scattered_sum(j: Any, x: Any) -> Any:
    return j.lax.psum_scatter(x, "a", tiled=True)


def cut_otherwise(j: Any, n: Any) -> Any:
    spec = j.sharding.PartitionSpec("a")
    with j.set_mesh(explicit(j)):
        return j.shard_map(lambda x: x, in_specs=spec, out_specs=spec)(n.arange(2.0))


def sharded_and_not(j: Any, n: Any) -> str:
    mesh = explicit(j)
    with j.set_mesh(mesh):
        x = j.device_put(n.arange(4.0), j.NamedSharding(mesh, j.sharding.PartitionSpec("a")))
        return str(n.where(x > 1, x, n.arange(4.0)).sharding.spec)


def logged_by_members(j: Any, n: Any) -> Any:
    @j.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp_with_logs(lambda x: (x * x, x), lambda x, ct: ((2 * x * ct,), {"ct": ct}))
    spec = j.sharding.PartitionSpec()
    run = j.shard_map(square, mesh=explicit(j), in_specs=spec, out_specs=spec, check_vma=False)
    return j.vjp(run, n.ones(1))[1].with_logs(2 * n.ones(1))[1]["ct"]


def printed_by_members(j: Any, n: Any) -> list[str]:
    def member(x: Any) -> Any:
        j.debug.print("{}", x.sum())
        return x

    spec, out = j.sharding.PartitionSpec(), io.StringIO()
    with contextlib.redirect_stdout(out):
        run = j.shard_map(member, mesh=explicit(j), in_specs=spec, out_specs=spec)
        j.block_until_ready(j.jit(run)(n.ones(2)))
        j.effects_barrier()
    return sorted(out.getvalue().splitlines())


def gradient_to_another_mesh(j: Any, n: Any) -> Any:
    there = j.NamedSharding(explicit(j), j.sharding.PartitionSpec("a"))
    return j.grad(lambda x: (j.device_put(x, there) ** 2).sum())(n.arange(4.0))


def effects_of_a_reference(j: Any, n: Any) -> int:
    def through_a_reference(x: Any) -> Any:
        ref = j.new_ref(x)
        ref[...] = ref[...] + 1
        return ref[...]

    return len(j.make_jaxpr(through_a_reference)(n.zeros(3)).jaxpr.effects)


def under_a_guard(j: Any, n: Any) -> Any:
    """Give a NumPy array to a compiled function where transfers are refused."""
    with j.transfer_guard("disallow"):
        return float(np.asarray(j.jit(lambda x: x.sum())(np.ones(3, np.float32))))


def out_of_device(j: Any, n: Any) -> Any:
    place = j.sharding.SingleDeviceSharding(j.devices()[0])
    return j.jit(lambda x: n.reshape(x, (2, 2), out_sharding=place))(n.ones(4))


Row = tuple[str, Program, Any, Any]


def two_in_a_row(j: Any) -> Any:
    """Return a mesh of two devices, split along `x`."""
    return j.sharding.Mesh(np.array(j.devices()[:2]), ("x",))


def named_in_a_mesh(j: Any, n: Any) -> Any:
    with two_in_a_row(j):
        return j.jit(lambda x: x + 1, in_shardings=j.P("x"))(n.arange(4.0))


def devices_under_set_mesh(j: Any, n: Any) -> int:
    with j.set_mesh(two_in_a_row(j)):
        return (n.ones(2) + 1).sharding.num_devices


def is_put_in_jit(j: Any, n: Any) -> bool:
    """Whether `device_put` says a sharding in a program whose argument has none."""
    mesh = two_in_a_row(j)
    x = j.device_put(n.arange(4.0), j.NamedSharding(mesh, j.P()))
    split = j.jit(lambda x: j.device_put(x, j.NamedSharding(mesh, j.P("x"))) * 2)
    return "sharding" in split.lower(x).as_text().split("func.func", 1)[1].split("\n", 1)[1]


def calls_for_pieces(j: Any, n: Any) -> int:
    calls = []
    mesh = j.sharding.Mesh(np.array(j.devices()[:4]).reshape(2, 2), ("x", "y"))

    def piece(index: Any) -> Any:
        calls.append(index)
        return np.ones(1, np.float32)

    j.make_array_from_callback((2,), j.NamedSharding(mesh, j.P("x")), piece)
    return len(calls)


def half_along_an_explicit_axis(j: Any, n: Any) -> Any:
    mesh = explicit(j)
    with j.set_mesh(mesh):
        return j.device_put(n.arange(4.0), j.NamedSharding(mesh, j.P("a")))[:2]


def error_of_a_clipped_read(j: Any, n: Any) -> bool:
    checkify = importlib.import_module(f"{j.__name__}.experimental.checkify")
    read = checkify.checkify(lambda x, i: x.at[i].get(mode="clip"), errors=checkify.index_checks)
    return read(n.arange(3.0), 5)[0].get() is not None


def at_times(*times: float) -> Program:
    """Return a program that solves y' = -y from 1 at the first time."""
    return lambda j, n: importlib.import_module(f"{j.__name__}.experimental.ode").odeint(
        lambda y, t: -y, 1.0, np.float32(times)
    )


def series(function: Callable[[Any, Any], Any]) -> Program:
    return lambda j, n: importlib.import_module(f"{j.__name__}.experimental.jet").jet(
        function(j, n), (1.0,), ((1.0, 0.0),)
    )


def read_when_frozen(j: Any, n: Any) -> Any:
    ref = j.new_ref(n.arange(2.0))
    j.freeze(ref)
    return ref[...]


INDICES: list[Row] = [
    ("starts of a Python number", lambda j, n: j.lax.dynamic_slice(
        n.arange(4.0).reshape(2, 2), (0, np.uint8(1)), (1, 1)), "TypeError", [[1.0]]),
    ("operands that differ inside", entropy_of_one_rank, "ValueError", (2,)),
    ("an int index", lambda j, n: n.arange(3)[5], 2, "IndexError"),
    ("an int index", lambda j, n: n.arange(3)[n.array([5])], [2], "IndexCheckError"),
    ("an int index", lambda j, n: j.jit(lambda x, i: x[i])(n.arange(3), 5), 2, 2),
    ("`x[ds(1, 3, 2)]`", lambda j, n: n.arange(9)[j.ds(1, 3, 2)], [1, 3], [1, 3, 5]),
    ("`x.at[ds(i, 3)].set(v)`", lambda j, n: j.jit(
        lambda i: n.arange(4).at[j.ds(i, 3)].set(0))(-3), [0, 1, 2, 3], [0, 0, 0, 0]),
    ("`einsum_path(...)[0]`", lambda j, n: n.einsum_path("i,i", n.ones(2), n.ones(2))[0],
     [(0, 1)], ["einsum_path", (0, 1)]),
    ("`einsum_path(...)[0]`", lambda j, n: type(n.ogrid[:2, :3]).__name__, "list", "tuple"),
    ("`scipy.signal.convolve`", lambda j, n: j.scipy.signal.convolve(
        n.arange(2), n.arange(3)).dtype.name, "float32", "int32"),
    *[("`scipy.ndimage.map_coordinates`", lambda j, n, mode=mode: j.scipy.ndimage.map_coordinates(
        n.array([1.0, 2.0, 3.0]), [n.array([2.5])], 1, mode=mode), theirs, ours)
      for mode, theirs, ours in [("constant", [1.5], [0.0]), ("wrap", [2.0], [1.5])]],
    ("`sort`, `argsort` of complex numbers", lambda j, n: n.argsort(
        n.array([complex(0, nan), 1 + 0j])), [0, 1], [1, 0]),
    ("a list as index", lambda j, n: n.arange(3)[[0, 2]], "TypeError", [0, 2]),
    ("`x.at[0].set(1.5)`", lambda j, n: n.arange(3).at[0].set(1.5), [1, 1, 2], "TypeError"),
    *[("`x.at[0].set(1.5)`", f, theirs, "TypeError") for f, theirs in (
        (lambda j, n: n.place(
            n.arange(3), n.arange(3) < 1, 1.5, inplace=False), [1, 1, 2]),
        (lambda j, n: n.put(n.arange(3), 0, 1.5, inplace=False), [1, 1, 2]),
        (lambda j, n: n.fill_diagonal(
            n.zeros((2, 2), int), 1.5, inplace=False), [[1, 0], [0, 1]]))],
    ("a mask as positions", lambda j, n: n.take(n.arange(3), n.array([True, False])), [1, 0],
     "TypeError"),
    ("`x[:]`, `x.T`", lambda j, n: [y is x for x in [n.ones(3)] for y in
     (x[:], x.T, n.broadcast_to(x, x.shape))], [True] * 3, [False] * 3),
    ("a derivative of `x.at[i].apply(f)`", lambda j, n: j.grad(
        lambda x: x.at[n.array([0, 0])].apply(lambda v: v**2).sum())(n.array([3.0, 1.0])),
     "NotImplementedError", [108.0, 1.0]),
]  # fmt: skip
DTYPES: list[Row] = [
    ("an integer that does not fit", lambda j, n: n.uint8(1) + 300, 45, "OverflowError"),
    ("an integer that does not fit", lambda j, n: n.asarray(np.int64(2**40)), 0, "OverflowError"),
    ("a comparison with an integer that does not fit", lambda j, n: n.uint8(100) < 300, False,
     True),
    ("a `fill_value` that", lambda j, n: n.take(
        n.arange(3), n.array([9]), mode="fill", fill_value=1.5), [1], "TypeError"),
    ("a `fill_value` that", lambda j, n: n.unique(n.arange(3), size=4, fill_value=1.5),
     [0, 1, 2, 1], "TypeError"),
    ("a `fill_value` that", lambda j, n: n.take(
        n.arange(3), n.array([9]), mode="fill", fill_value=2.0), [2], [2]),
    ("the derivative of `lax.clamp(low", lambda j, n: j.grad(
        j.lax.clamp, (0, 1, 2))(1.5, 0.7, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    ("bounds beyond the dtype", lambda j, n: ((x := j.random.randint(
        j.random.key(0), (9,), -(2**40), 2**40)).min() < 0, x.max() > 0),
     "OverflowError", (True, True)),
    ("bounds beyond the dtype", lambda j, n: j.random.key(2**63).shape, "OverflowError", ()),
    ("an explicit 64-bit dtype", lambda j, n: n.zeros(3, "float64").dtype.name,
     "float32", "float64"),
    ("`var(x, dtype=int)`", lambda j, n: n.var(n.arange(4.0), dtype=int), 1.0, "ValueError"),
    ("`bool` results of Python numbers", lambda j, n: weak(n.isnan(2.5)), True, False),
    ("sums and extremes of Python numbers", lambda j, n: weak(n.sum(2.5)), False, True),
    ("sums and extremes of Python numbers", lambda j, n: weak(n.max(2.5)), False, True),
    ("the pulled back cotangent", lambda j, n: weak(j.vjp(n.sin, 3.0)[1](n.float32(1))[0]),
     False, True),
    ("the carry of `scan`", lambda j, n: weak(
        j.lax.scan(lambda c, x: (c + x, c), 0.0, n.ones(3))[1]), True, False),
    ("subnormal numbers", lambda j, n: float(n.float32(1e-40) + n.float32(0)) > 0, False, True),
    ("`asarray(x, copy=False)`", lambda j, n: n.asarray(np.arange(3.0), copy=False).dtype.name,
     "float32", "ValueError"),
    ("`asarray(x, copy=False)`",
     lambda j, n: n.asarray(n.arange(3), "float32", copy=False).dtype.name,
     "float32", "ValueError"),
    ("`asarray(x, copy=False)`", lambda j, n: n.array(np.arange(3.0), copy=False).dtype.name,
     "float32", "float32"),
    ("complex weights", complex_weights, 1.009, 1.0),
    ("`random.poisson`", odd_counts("poisson", 1e8), False, True),
    ("`random.poisson`", odd_counts("geometric", 1e-9), False, True),
]  # fmt: skip
PROGRAMS: list[Row] = [
    ("times of `odeint`", at_times(0, -1, -2), [1.0, inf, inf], [1.0, 2.71828, 7.38905]),
    ("times of `odeint`", lambda j, n: n.isnan(at_times(0, 1, 0.5)(j, n)[2]), False, True),
    ("`with mesh: jit(f", named_in_a_mesh, "RuntimeError", [1.0, 2.0, 3.0, 4.0]),
    ("results of operations outside of `jit` under", devices_under_set_mesh, 2, 1),
    ("one `AxisType` for several axes", lambda j, n: len(j.make_mesh(
        (4, 2), ("x", "y"), axis_types=j.sharding.AxisType.Auto).axis_types), "ValueError", 2),
    ("`device_put(x, s)` in `jit`", is_put_in_jit, False, True),
    ("`make_array_from_callback(shape, s, f)`", calls_for_pieces, 4, 2),
    ("`pmap` in `pmap`", lambda j, n: j.pmap(j.pmap(lambda x: x + 1))(n.ones((2, 2))).shape,
     "ValueError", (2, 2)),
    ("`x[:2]`, `concatenate`", half_along_an_explicit_axis, "ShardingTypeError", [0.0, 1.0]),
    ('`P("x", unreduced={"y"}) + (None,)`', lambda j, n: len(
        j.P("x", unreduced={"y"}) + (None,)), "TypeError", 2),
    ('reads that name `mode="clip"`', error_of_a_clipped_read, False, True),
    ("`transpose` of trees", lambda j, n: j.tree.transpose(
        j.tree.structure([0, 0]), j.tree.structure((0, 0)), [(1, 2), [3, 4]]),
     ([1, 3], [2, 4]), "TypeError"),
    ("`jet` of loops", series(lambda j, n: lambda x: j.lax.fori_loop(0, 2, lambda i, y: y * x, x)),
     "KeyError", (1.0, [3.0, 6.0])),
    ("`ref[None]`", lambda j, n: j.new_ref(n.arange(3.0))[None].shape, (3,), (1, 3)),
    ("`ref[None]`", lambda j, n: j.jit(lambda x: j.new_ref(x)[5])(n.arange(3.0)), 2.0,
     "IndexError"),
    ("`ref[...]` after `freeze(ref)`", read_when_frozen, [0.0, 1.0], "ValueError"),
    ("`jit` of a new but equal lambda", traces_of_equal_lambdas, 3, 1),
    ("an argument given by keyword", traces_by_keyword, 2, 1),
    ("`lax.sin_p.bind(x)`", lambda j, n: (type(j.lax.neg_p.bind(n.ones(1))) is tuple,
                                          j.lax.neg_p.multiple_results),
     (False, False), (True, True)),
    ("`grad` of a `custom_vmap` function", lambda j, n: j.grad(with_batch_rule(j, []))(2.0),
     "ValueError", 4.0),
    ("forward mode through a `custom_vjp`", pushed_through_a_reverse_rule, "TypeError", 6.0),
    ("forward derivatives of `odeint`", solved_and_pushed_forward, "TypeError", 0.37),
    ("gradients through `eigh` and `svd`", norm_of_factors, [nan] * 4, [0.5] * 4),
    ("memory of `vmap`", lambda j, n: j.vmap(n.sin, chunk_size=2)(n.zeros(3)).shape, "TypeError",
     (3,)),
    ("`vmap` over one part of an argument",
     lambda j, n: j.vmap(lambda p, x: p["w"] * x, in_axes={"p['w']": 0})({"w": n.ones(3)}, 2).shape,
     "TypeError", (3,)),
    ("`jacobian`", lambda j, n: j.jacobian(n.sin, mode="forward")(1.0).shape, "TypeError", ()),
    ("forward derivatives of a `custom_vmap`", batches_of_tangents_alone, [[False]], [[True]]),
    ("a dict in the metadata", after_metadata_changed, 2.0, 3.0),
    ("a global that a compiled function reads", after_a_global_changed, (1.0, 2.0, 1.0),
     (1.0, 2.0, 2.0)),
    ("static `P(1)`", traces_of_static_kinds, 1, 3),
    ("an async function", lambda j, n: [j.jit(asynchronous), 0][1], 0, "TypeError"),
    ("an async function", lambda j, n: [j.vmap(asynchronous), 0][1], 0, "TypeError"),
    ("an async function", lambda j, n: [j.grad(asynchronous), 0][1], 0, "TypeError"),
    ("an async function", lambda j, n: [j.checkpoint(generator), 0][1], 0, "TypeError"),
    ("`nn.standardize` of numbers",
     lambda j, n: bool(j.nn.standardize(n.array([1e4, 1e4 + 1, 1e4 + 2]))[2].round(3) == 1.225),
     False, True),
    ("`random.truncated_normal` between bounds",
     lambda j, n: len(n.unique(j.random.truncated_normal(j.random.key(0), 5.42, 6.62, (500,)))) > 9,
     False, True),
    ("examples of keys of `rbg`", draws_of_two_keys_of_rbg, True, False),
    ("samplers that split keys of `unsafe_rbg`", integers_of_unsafe_rbg, [69, 62, 79],
     [8, 61, 84]),
    ("`ffi.ffi_lowering", lambda j, n: "mlir" in inspect.getsource(j.ffi.ffi_lowering).lower(),
     True, False),
    ("`ref[...] = value`", lambda j, n: written(j, 1.0), "ValueError", [1.0] * 3),
    ("`ref[...] = value`", lambda j, n: written(j, n.arange(3)), "ValueError", "ValueError"),
    ("references in a jaxpr", effects_of_a_reference, 1, 0),
    ("transfer guards", under_a_guard, "JaxRuntimeError", 3.0),
    *[("arrays in the memory of the host", lambda j, n, f=f: np.asarray(
        f(j, n, j.device_put(n.arange(4.0), j.memory.Space.Host))).tolist(), "ValueError", ours)
      for f, ours in [
          (lambda j, n, x: n.zeros_like(x), [0.0] * 4),
          (lambda j, n, x: n.where(x > 2, x, 0), [0.0, 0.0, 0.0, 3.0]),
          (lambda j, n, x: x[n.array([1, 3])], [1.0, 3.0]),
          (lambda j, n, x: j.grad(lambda x: (x * x).sum())(x), [0.0, 2.0, 4.0, 6.0]),
          (lambda j, n, x: j.jit(n.negative, in_shardings=x.sharding.with_memory_kind("device"))(x),
           [0.0, -1.0, -2.0, -3.0]),
      ]],
    ("`config.enable_x64`", lambda j, n: j.config.enable_x64.value, "AttributeError", False),
    ("`config.enable_x64`", lambda j, n: j.config.jax_enable_x64, False, False),
]  # fmt: skip
ARGUMENTS: list[Row] = [
    ("a `staticmethod` inside", lambda j, n: j.jit(staticmethod(lambda x: x + 1))(1),
     "TypeError", 2),
    ("a reduction over the name",
     lambda j, n: j.vmap(lambda x: n.prod(x, axis="i"), axis_name="i")(n.array([2, 3])),
     "NotImplementedError", [6, 6]),
    ("`x.at[i].get(fill_value=v)`",
     lambda j, n: j.jit(lambda x, i: x.at[i].get(fill_value=7))(n.array([1, 2]), 5), 2, 7),
    ("`jacrev(f, allow_int=True)`",
     lambda j, n: str(j.jacrev(lambda x: x * 2.0, allow_int=True)(3).dtype),
     "int32", "[('float0', 'V')]"),
    ("shapes that do not fit", lambda j, n: n.ones(2) + n.ones(3), "TypeError", "ShapeError"),
    ("axes as a list", lambda j, n: n.count_nonzero(n.ones((2, 3)), axis=[0, 1]), "ValueError",
     6),
    ("axes as a list", lambda j, n: n.sum(n.ones((2, 3)), axis=[0, 1]), 6.0, 6.0),
    ("axes as a list", lambda j, n: n.median(n.ones((2, 3)), axis=np.array([0, 1])),
     "ValueError", 1.0),
    ("axes counted from the end", lambda j, n: j.lax.cumsum(n.ones((1, 3)), axis=-1),
     "ValueError", [[1.0, 2.0, 3.0]]),
    ("axes counted from the end", lambda j, n: j.lax.squeeze(n.ones((1, 1)), (-2,)), [1.0], [1.0]),
    ("`vmap` over a `BCOO`", batches_of_sparse, [2.0, 4.0], [2.0, 4.0]),
    ("floats as bounds", lambda j, n: int(j.lax.fori_loop(0.0, 3.0, lambda i, c: c + 1, 0)),
     3, "TypeError"),
    ("a `custom_vmap` rule whose result", lambda j, n: j.vmap(of_one_shape(j, n))(n.ones(3)).shape,
     (3,), "ValueError"),
    ("an integer as the tangent", lambda j, n: float(j.linearize(n.negative, 1.0)[1](1)),
     "ValueError", -1.0),
    ("an integer as the tangent", lambda j, n: j.jvp(n.negative, (1j,), (1.0,))[1].real,
     "TypeError", -1.0),
    ("a differentiated argument among", of_a_nondiff_argument, 0.0, "UnexpectedTracerError"),
    ("a number with a fraction",
     lambda j, n: j.random.key_data(j.random.fold_in(j.random.key(0), 1.5)),
     [928981903, 3453687069], "TypeError"),
    ("a number with a fraction",
     lambda j, n: j.random.key_data(j.random.fold_in(j.random.key(0), 1.0)),
     [928981903, 3453687069], [928981903, 3453687069]),
    ("the operand of `device_put(x, device, donate=True)`", donated_by_device_put, False, True),
    ("`x.sharding`, `x.devices()` of a deleted", lambda j, n: deleted(n).sharding.num_devices,
     1, "RuntimeError"),
    ("`scipy.linalg.expm` of float32", error_of_expm, True, False),
    ("`scipy.linalg.polar` of zeros",
     lambda j, n: float(scipy_of(j, "linalg").polar(n.zeros((2, 2)))[0][0, 0]), 0.0, 1.0),
    ("`fft.fft` along an axis", lambda j, n: n.fft.fft(n.zeros((0, 3)), axis=0).shape,
     (0, 3), "ValueError"),
    ("lists as operands", lambda j, n: scipy_of(j, "linalg").cholesky([[4.0]]),
     [[2.0]], "TypeError"),
    ("lists as operands", lambda j, n: n.fft.ihfft([1.0]), [1 + 0j], "TypeError"),
    ("`1 in matrix`", lambda j, n: bool(1 in n.eye(2)), "ValueError", True),
    ("`1 in matrix`", lambda j, n: len(list(n.eye(2).flat)), "NotImplementedError", 4),
    ("`1 in matrix`", lambda j, n: n.zeros(1, ">i4"), "TypeError", [0]),
    ("`1 in matrix`", lambda j, n: n.round(n.array(True)), "ValueError", True),
    ("an int index out of range", lambda j, n: n.zeros(2).at[5].set(1.0), [0.0, 0.0], "IndexError"),
    ("a rule of MLIR objects", lowered_by_objects, 1.0, "TypeError"),
    ("`donate_argnums` with `debug_nans`", donated_while_checked, False, True),
    ("a donated `x = array(2.0)`", donated_number, True, False),
    ("a Python bool or an exponent of integers", lambda j, n: written_strictly(j, "set", True),
     "TypePromotionError", [1.0, 1.0]),
    ("a Python bool or an exponent of integers", lambda j, n: written_strictly(j, "power", [2]),
     "TypePromotionError", [1.0, 1.0]),
    ("a Python bool or an exponent of integers", lambda j, n: written_strictly(j, "set", [1]),
     "TypePromotionError", "TypePromotionError"),
    ("`repr(random.key(0))`", lambda j, n: repr(j.random.key(0)),
     "Array((), dtype=key<fry>) overlaying:\n[0 0]", "Array([0, 0], shape=(), dtype=key<fry>)"),
    ("a float as an axis or a size", lambda j, n: len(n.split(n.ones(4), 2.0)), 2, "TypeError"),
    ("a float as an axis or a size", lambda j, n: n.sum(n.ones(4), axis=0.0), "TypeError",
     "TypeError"),
    ("NumPy's own functions", lambda j, n: isinstance(np.sin(n.ones(2)), np.ndarray), True, False),
    ("NumPy's own functions", lambda j, n: isinstance(np.copy(n.ones(2)), np.ndarray), True, True),
    ("NumPy's own functions", lambda j, n: j.grad(np.sin)(0.0), "TracerArrayConversionError", 1.0),
    ("`x.strides`, `x.to_numpy()`", lambda j, n: n.ones(2, "float32").strides, "AttributeError",
     (4,)),
    ("the text of a value", lambda j, n: j.grad(
        lambda x: (x * x, f"{x:.2f}"), has_aux=True)(3.0), "TypeError", (6.0, "3.00")),
    ("the text of a value", lambda j, n: j.grad(lambda x: float(x) * x)(3.0),
     "ConcretizationTypeError", "ConcretizationTypeError"),
    ("activations at infinities", lambda j, n: n.isnan(j.nn.silu(-inf)), True, False),
    ("activations at infinities", lambda j, n: n.isnan(j.nn.soft_sign(inf)), True, False),
    ("activations that compare", lambda j, n: j.nn.relu(n.complex64(1 - 1j)), 1 - 1j, "TypeError"),
    ("activations of integers", lambda j, n: (j.nn.relu6(n.int32(3)) * n.ones(2, "bfloat16")
                                              ).dtype.name, "bfloat16", "float32"),
    ("activations of integers", lambda j, n: j.nn.sigmoid(n.int32(3)).dtype.name, "TypeError",
     "float32"),
    ("an object with `__array__`", lambda j, n: n.add(Lends(), 1), "TypeError", [1.0, 3.0]),
    *[("an object with `__jax_array__`", lambda j, n, f=f: f(j)(LendsArrays(n)), "ValueError",
       [0.0, -1.0]) for f in (lambda j: j.jit(j.lax.neg), lambda j: j.vmap(j.lax.neg),
                              lambda j: j.lax.neg)],
    ("an object with `__jax_array__`", lambda j, n: n.ones(2) + LendsArrays(n), [1.0, 2.0],
     [1.0, 2.0]),
    ("`lax.dot(x, y, preferred_element_type",
     lambda j, n: j.lax.dot(n.ones((2, 1)), n.ones((1, 2)), preferred_element_type="int32"),
     [[1, 1]] * 2, "TypeError"),
    ("`lax.dot(x, y, preferred_element_type",
     lambda j, n: n.dot(n.ones((2, 1)), n.ones((1, 2)), preferred_element_type="int32"),
     [[1, 1]] * 2, [[1, 1]] * 2),
    ("an object with `__array__`", lambda j, n: n.ones(2) + Lends(), "TypeError", "TypeError"),
    ("`xnp.add.nargs`", lambda j, n: n.add.nargs, 2, 3),
    ("`power(x, int32(2))`", lambda j, n: [f(n.int8(3), n.int32(2)).dtype.name
                                           for f in (n.power, j.jit(n.power))],
     ["int8", "int32"], ["int32", "int32"]),
    ("the positions that `nonzero", lambda j, n: n.nonzero(n.zeros(0), size=2, fill_value=7)[0],
     [0, 0], [7, 7]),
    ("a reference that a `checkpoint` writes and closes over", counted_by_checkpoint, 2.0, 1.0),
    ("a device for a traced value", out_of_device, "TypeError", [[1.0, 1.0], [1.0, 1.0]]),
    ("`qr(x, pivoting=True)`", lambda j, n: j.scipy.linalg.qr(n.zeros((0, 3)), pivoting=True)[2],
     [0, 0, 0], [0, 1, 2]),
    ("`scipy.linalg.eigh(a)` of a matrix", lambda j, n: j.scipy.linalg.eigh(
        n.array([[0.0, 4.0], [0.0, 0.0]]), eigvals_only=True), [-2.0, 2.0], [0.0, 0.0]),
    ("`linalg.matrix_rank(m, rtol=0.5)`",
     lambda j, n: n.linalg.matrix_rank(n.diag(n.array([4.0, 1.0])), rtol=0.5), 2, 1),
    ("NumPy subclasses", lambda j, n: n.sin(np.ma.array([1.0])), "ValueError", "ArgumentError"),
    ("NumPy subclasses", lambda j, n: np.matrix([[1, 2], [3, 4]]) * n.array([[1, 2], [3, 4]]),
     [[1, 4], [9, 16]], [[1, 4], [9, 16]]),
    ("`P(unreduced={", of_parts(lambda j, n, u: u + 1), "ShardingTypeError", [1.0, 2.0]),
    ("`P(unreduced={", of_parts(lambda j, n, u: 2 * u), "ShardingTypeError", [0.0, 2.0]),
    ("`ones_like(u)`", of_parts(lambda j, n, u: n.ones_like(u)), [2.0, 2.0], [1.0, 1.0]),
    ("`einsum(..., out_sharding=P(unreduced", of_parts(product_in_parts), "ShardingTypeError",
     [1.0, 1.0]),
    ("`np.asarray(u)`", of_parts(lambda j, n, u: u, False), "JaxRuntimeError", [0.0, 1.0]),
    ("`u.astype(int)`", of_parts(lambda j, n, u: u.astype(int)), [0, 1], "ShardingTypeError"),
    ("branches, carries and predicates in `shard_map`", carried_sum, "TypeError", [1.0, 1.0]),
    ("branches, carries and predicates in `shard_map`", gradient_by_branch, [1.0, 2.0], [3.0, 3.0]),
    ("`jit(f, in_shardings=s)(x)`", asked_otherwise, "ValueError", [1.0, 2.0, 3.0, 4.0]),
    ('`repr(P("x"))`', lambda j, n: repr(j.P("x")), "P('x',)", "PartitionSpec('x')"),
    ("`with_sharding_constraint`", constrained, "AssertionError", "PartitionSpec('a')"),
    ("arrays sharded along explicit axes", along_another_axis(closed_over), "NotImplementedError",
     [[1.0, 2.0, 3.0, 4.0]]),
    ("`where`, `stack`, `betainc`", sharded_and_not, "ShardingTypeError", "PartitionSpec('a')"),
    ("cotangents that `with_logs` collects", logged_by_members, [1.0, 1.0], [2.0, 2.0]),
    ("`debug.print` and `debug.log` in", printed_by_members, ["2.0", "2.0"],
     ["(a) = (0): 2.0", "(a) = (1): 2.0"]),
    ("`psum_scatter` of values sharded", along_another_axis(scattered_sum), "ValueError",
     [[0.0, 1.0, 2.0, 3.0]]),
    ("`shard_map(f, in_specs=s)(x)`", cut_otherwise, "ValueError", [0.0, 1.0]),
    ("derivatives of `device_put`", gradient_to_another_mesh, "ValueError", [0.0, 2.0, 4.0, 6.0]),
    ("transposing a mapped `cond`", transposed_cond, "NotImplementedError", [2.0, 3.0]),
    ("`keys.sum()`", lambda j, n: keys(j).sum(), "NotImplementedError", "TypeError"),
    ("`keys.sum()`", lambda j, n: keys(j).astype(int), "NotImplementedError", "TypeError"),
    ("`keys.sum()`", lambda j, n: keys(j).tolist(), "AttributeError", "TypeError"),
    ("`all_gather` of random keys", lambda j, n: mapped(j, lambda lax, k: lax.all_gather(k, "i"),
     keys(j, 2)), "ValueError", (2, 2)),
    ("`all_gather` of random keys", lambda j, n: mapped(
        j, lambda lax, k: lax.all_to_all(k, "i", 0, 0), keys(j, 4).reshape(2, 2)), (2, 2), (2, 2)),
]  # fmt: skip


def grad_of(function: Callable[[Any, Any], Any], *args: Any, of: Any = 0) -> Program:
    return lambda j, n: j.grad(function(j, n), of)(*args)


BOTTOM = np.float32([-inf, -inf])
NUMBERS: list[Row] = [
    ("`lax.reduce`, `reduce_window`", lambda j, n: j.lax.reduce(
        n.arange(70.0), n.float32(0), lambda a, b: a / 2 + b, (0,)), 193.49982, 211.0625),
    ("`modf(inf)`", lambda j, n: n.modf(n.float32(inf)), (nan, inf), (0.0, inf)),
    ("complex powers that vanish", lambda j, n: n.abs(n.power(3, n.complex64(complex(-inf, 0)))),
     nan, 0.0),
    ("`random.t`, `random.f`", lambda j, n: bool(n.isfinite(j.random.t(j.random.key(0), inf))),
     False, True),
    ("`random.t`, `random.f`", lambda j, n: bool(n.isfinite(j.random.f(
        j.random.key(0), 3.0, inf))), False, True),
    ("complex functions of infinite or NaN parts", lambda j, n: n.abs(
        j.jit(n.exp)(n.complex64(complex(-inf, inf)))), nan, 0.0),
    ("the covariance of `polyfit`", lambda j, n: bool(n.all(n.real(n.diag(n.polyfit(
        1 + 1j * n.arange(5.0), n.array([0, 1, 4j, 9, 16]), 1, cov=True)[1])) > 0)), False, True),
    ("`polymul(2.0, p)`", lambda j, n: n.polymul(2.0, n.array([1.0, 2.0])),
     "TypeError", [2.0, 4.0]),
    ("`polymul(2.0, p)`", lambda j, n: n.polydiv(n.array([1.0, 2.0]), 2.0)[0],
     "TypeError", [0.5, 1.0]),
    ("a quantile's element of weight 0", lambda j, n: n.quantile(
        n.array([1.0, 2, 3]), 0.0, weights=n.array([0.0, 1, 1]), method="inverted_cdf"), 1.0, 2.0),
    ("derivatives at ties", grad_of(lambda j, n: n.fmax, 1.0, 1.0, of=(0, 1)),
     (0.0, 1.0), (0.5, 0.5)),
    ("derivatives at ties", lambda j, n: j.jacrev(j.lax.cummax)(n.ones(3))[2], [0.25, 0.25, 0.5],
     [0.33333, 0.33333, 0.33333]),
    ("`max`, `min`, `ptp`, max pooling of 4,096", lambda j, n: [float(j.jit(f)(
        np.float32([1, nan] + [3] * 4094))) for f in (n.max, n.min, n.ptp)], [3.0, 1.0, 2.0],
     [nan] * 3),
    ("`max`, `min`, `ptp`, max pooling of 4,096", lambda j, n: j.jit(
        lambda x: j.lax.reduce_window(x, -inf, j.lax.max, (2,), (2,), "VALID"))(
        np.float32([1, nan] + [3] * 4094))[:2], [1.0, 3.0], [nan, 3.0]),
    ("the derivative of `max` of an array", grad_of(lambda j, n: n.max, np.float32([1, nan, 3])),
     [nan] * 3, [0.0, 1.0, 0.0]),
    ("the derivative of `max` of an array",
     lambda j, n: j.jit(j.grad(n.max))(np.float32([1, nan, 3])), [0.0] * 3, [0.0, 1.0, 0.0]),
    ("`lax.clamp` of complex numbers", lambda j, n: j.lax.clamp(
        n.complex64(0), n.complex64(2 + 5j), n.complex64(2 + 1j)), 2 + 5j, 2 + 1j),
    ("derivatives of complex `cummax`", lambda j, n: j.grad(
        lambda x: j.lax.cummax(x).real.sum())(n.array([1 + 2j, 3j])), "TypeError", [2 + 0j, 0j]),
    ("the derivative of complex `cumlogsumexp`", lambda j, n: j.grad(
        lambda x: (j.lax.cumlogsumexp(x) ** 2).real.sum())(n.array([1 + 4j])).imag, [8.0],
     [-4.56637]),
    ("gradients of `logaddexp`", grad_of(lambda j, n: n.logaddexp, inf, inf), 1.0, 0.5),
    ("gradients of `logaddexp`", grad_of(lambda j, n: n.hypot, 0.0, 0.0), nan, 0.0),
    ("gradients of `logaddexp`", grad_of(lambda j, n: n.hypot, inf, 0.0), nan, 1.0),
    ("gradients of `logaddexp`", grad_of(lambda j, n: n.linalg.norm, np.zeros(2, np.float32)),
     [nan, nan], [0.0, 0.0]),
    ("gradients of `logaddexp`", grad_of(lambda j, n: lambda x: x**0.0, 0.0), nan, 0.0),
    ("gradients of `logsumexp`", grad_of(lambda j, n: j.nn.logsumexp, BOTTOM),
     [nan, nan], [0.0, 0.0]),
    ("gradients of `logsumexp`", lambda j, n: j.nn.softmax(BOTTOM), [nan, nan], [nan, nan]),
    ("gradients of `logsumexp`", lambda j, n: j.nn.softmax(BOTTOM, where=np.zeros(2, bool)),
     [0.0, 0.0], [0.0, 0.0]),
    ("gradients of a quantile that is NaN", grad_of(
        lambda j, n: n.quantile, np.float32([1, nan]), np.float32(0.5), of=1), nan, 0.0),
    ("gradients of a quantile that is NaN", grad_of(
        lambda j, n: lambda x: n.geomspace(x, 1.0, 2)[-1], nan), nan, 0.0),
    ("gradients of a quantile that is NaN", grad_of(lambda j, n: j.nn.celu, 1.0, nan, of=(0, 1)),
     (nan, nan), (1.0, 0.0)),
    ("gradients of a quantile that is NaN", grad_of(lambda j, n: j.nn.gelu, 1e20), nan, 1.0),
    ("the gradients of `det`", lambda j, n: n.diag(j.grad(n.linalg.det)(
        np.diag(np.float32([0, 1, 2, 3])))), [0.0] * 4, [6.0, 0.0, 0.0, 0.0]),
]  # fmt: skip
SEEN = [*INDICES, *DTYPES, *PROGRAMS, *ARGUMENTS, *NUMBERS]
