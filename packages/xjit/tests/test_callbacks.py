"""Python called from compiled programs: values, types, order, errors, threads."""

import contextlib
import logging
import pickle
import re
import threading

import numpy as np
import pytest

import xnp
from xjit import debug, jit
from xjit.callbacks.functions import effects_barrier, io_callback, pure_callback
from xjit.callbacks.primitive import DEBUG, ORDERED_DEBUG, _in_bytes, callback_p, through_bytes
from xnp import lax
from xprim import (
    Effect,
    Primitive,
    ShapeDtypeStruct,
    as_array,
    config,
    make_jaxpr,
    shaped_array,
    undefined,
)
from xprim.errors import JaxRuntimeError


def like(x):
    return ShapeDtypeStruct(x.shape, x.dtype)


def on_numpy(x):
    return pure_callback(lambda v: np.asarray(v) + np.asarray(v), like(x), x)


EVALUATED = {"eager": lambda f: f, "jit": jit}
both = pytest.mark.parametrize("how", EVALUATED.values(), ids=list(EVALUATED))

DTYPES = ["bool", "int4", "uint4", "int8", "uint16", "int32", "uint32", "float16", "bfloat16",
          "float32", "complex64", "float8_e4m3fn"]  # fmt: skip


@both
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_dtype_go_in_and_out_unchanged(how, dtype):
    x = xnp.asarray([1, 0, 1]).astype(dtype)
    seen = []

    def keep(v):
        seen.append(v)
        return v

    out = how(lambda x: pure_callback(keep, like(x), x))(x)
    assert out.dtype == x.dtype and seen[0].dtype == x.dtype
    assert np.asarray(out).tobytes() == np.asarray(x).tobytes()


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn", "int8", "bool"])
def test_numbers_of_less_than_a_byte_travel_in_bytes_on_gpus(dtype):
    x = xnp.asarray([1, 0, 1]).astype(dtype)
    seen = []

    def double(v):
        seen.append(v)
        return v + v

    call = jit(lambda x: pure_callback(double, like(x), x))
    program = call.trace(x).lower(lowering_platforms=("cuda",))
    line = next(line for line in program.as_text().splitlines() if "python_gpu_callback" in line)
    assert not re.search(r"tensor<3x(u?i4|f4E2M1FN)>", line), line
    narrow = np.asarray(x).dtype
    wide = _in_bytes(narrow)
    aval = shaped_array((3,), narrow)
    (found,) = through_bytes(lambda xs, avals: [double(*xs)], (narrow,), (aval,))(
        [np.asarray(x).astype(wide)], [shaped_array((3,), wide)]
    )
    assert seen[0].dtype == narrow and found.dtype == wide
    np.testing.assert_array_equal(found, (np.asarray(x) + np.asarray(x)).astype(wide))


@both
@pytest.mark.parametrize("shape", [(), (0, 3), (3, 0, 2), (2, 3), (2, 1, 4, 1)])
def test_arrays_of_every_rank_keep_the_order_of_their_elements(how, shape):
    x = xnp.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    out = how(lambda x: pure_callback(lambda v: np.asarray(v).T, like(x.T), x))(x)
    np.testing.assert_array_equal(out, np.asarray(x).T)


def test_64_bit_results_need_the_option():
    with pytest.raises(ValueError, match="pure_callback: a result of this dtype cannot be decla"):
        pure_callback(np.sin, ShapeDtypeStruct((), np.float64), 1.0)
    with config.enable_x64(True):
        out = jit(lambda x: pure_callback(np.sin, ShapeDtypeStruct((), np.float64), x))(1.0)
    assert out.dtype == np.float64 and float(out) == np.sin(1.0)


@both
def test_trees_and_keywords_reach_the_function_and_come_back(how):
    def f(x):
        def host(pair, *, scale):
            assert set(pair) == {"a", "b"}
            return {"sum": pair["a"] + pair["b"], "scaled": (pair["a"] * scale,)}

        types = {"sum": like(x), "scaled": (like(x),)}
        return pure_callback(host, types, {"a": x, "b": x + 1}, scale=x)

    out = how(f)(np.float32([1, 2]))
    np.testing.assert_array_equal(out["sum"], [3, 5])
    np.testing.assert_array_equal(out["scaled"][0], [1, 4])


@both
def test_what_a_callback_is_given_cannot_be_written_and_may_be_kept(how):
    kept = []

    def keep(v):
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(v)[0] = 7
        kept.append(v)
        return v

    f = how(lambda x: pure_callback(keep, like(x), x))
    for k in range(4):  # small host values are written to the same memory each time
        f(np.float32([k, k]))
    np.testing.assert_array_equal(np.stack(kept), [[k, k] for k in range(4)])


@both
@pytest.mark.parametrize(("result", "text"), [
    (np.zeros(3, np.float32), r"got       float32\[3\]\n  expected  float32\[2\]"),
    (np.zeros(2, np.int32), r"got       int32\[2\]\n  expected  float32\[2\]"),
    ((np.zeros(2, np.float32),) * 2, "another structure than was declared"),
    (None, "another structure than was declared"),
])  # fmt: skip
def test_a_result_that_is_not_as_declared_is_refused(how, result, text):
    f = how(lambda x: pure_callback(lambda v: result, like(x), x))
    with pytest.raises(TypeError, match=text) as e:
        f(np.float32([1, 2]))
    assert isinstance(e.value, JaxRuntimeError)  # a running program failed
    assert any("pure_callback: raised by <lambda> at test_callbacks.py:" in n
               for n in e.value.__notes__)  # fmt: skip


@both
def test_the_leaves_of_a_result_are_what_counts(how):
    declared = {"a": [ShapeDtypeStruct((), np.float32)], "b": ShapeDtypeStruct((2,), np.int32)}
    f = how(lambda x: pure_callback(lambda v: (v + 1, (np.int32([1, 2]),)), declared, x))
    out = f(np.float32(1))
    assert float(out["a"][0]) == 2.0 and out["b"].tolist() == [1, 2]


@both
def test_python_numbers_and_wider_results_are_brought_to_the_declared_dtype(how):
    declared = (ShapeDtypeStruct((), np.float32), ShapeDtypeStruct((2,), np.float32))
    one, two = how(lambda x: pure_callback(lambda v: (3, np.ones(2)), declared, x))(1.0)
    assert float(one) == 3.0 and two.dtype == np.float32


@contextlib.contextmanager
def runtime_errors():
    config.update("callback_errors", "runtime")
    try:
        yield
    finally:
        config.update("callback_errors", "own")


@both
@pytest.mark.parametrize("call", [pure_callback, io_callback])
def test_an_option_makes_errors_of_functions_those_of_the_program(how, call):
    def fail(v):
        raise KeyError("egads")

    f = how(lambda x: call(fail, like(x), x))
    with runtime_errors(), pytest.raises(JaxRuntimeError) as e:
        f(np.float32([1, 2]))
    assert f"{call.__name__}: a Python function" in str(e.value)
    assert "KeyError: 'egads'" in str(e.value) and "fail at test_callbacks.py:" in str(e.value)
    assert type(e.value.__cause__) is KeyError
    with pytest.raises(KeyError, match="egads"):
        f(np.float32([1, 2]))


@both
def test_errors_of_programs_stay_what_they_are(how):
    f = how(lambda x: pure_callback(lambda v: None, like(x), x))
    with runtime_errors(), pytest.raises(TypeError, match="another structure") as e:
        f(np.float32([1, 2]))
    assert isinstance(e.value, JaxRuntimeError)


class OwnError(Exception):
    pass


@pytest.mark.parametrize("error", [OwnError("gone"), KeyError("k"), TypeError("t"), StopIteration(),
                                   KeyboardInterrupt(), RuntimeError("r")])  # fmt: skip
def test_an_exception_arrives_at_the_call_as_the_object_that_was_raised(error):
    calls = []

    def fail(v):
        calls.append(v)
        raise error

    f = jit(lambda x: pure_callback(fail, like(x), x) * 2)
    for count in (1, 2):
        with pytest.raises(type(error)) as e:
            f(np.float32([1, 2]))
        assert e.value is error and len(calls) == count  # it is not called again to tell
    if not isinstance(error, KeyboardInterrupt):
        assert "in test_an_exception_arrives" not in str(error)
        assert any("pure_callback: raised by fail at test_callbacks.py" in n
                   for n in error.__notes__)  # fmt: skip


def test_exceptions_of_threads_go_to_their_own_calls():
    def fail(v):
        raise OwnError(int(v))

    f = jit(lambda x: pure_callback(fail, like(x), x))
    found = {}

    def run(k):
        for _ in range(10):
            try:
                f(xnp.int32(k))
            except OwnError as error:
                found.setdefault(k, set()).add(error.args[0])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {k: {k} for k in range(6)}


def test_pure_calls_without_use_are_left_out_and_equations_are_pure():
    calls = []

    def f(x):
        pure_callback(lambda v: calls.append(1) or v, like(x), x)
        return x

    jit(f)(np.float32(1))
    assert calls == [] and make_jaxpr(f)(np.float32(1)).effects == frozenset()


@both
def test_io_happens_as_often_as_written_even_when_nothing_needs_it(how):
    calls = []

    def f(x):
        for _ in range(2):
            io_callback(lambda v: calls.append(float(v)), None, x)
        return

    how(f)(np.float32(3))
    assert calls == [3.0, 3.0]


def ordered_program(x, note):
    def step(c, i):
        note(i * 10)
        c = lax.cond(i > 1, lambda c: (note(i), c + 1)[1], lambda c: c, c)
        return c, None

    note(x)
    x, _ = lax.scan(step, x, xnp.arange(4), unroll=3)
    x = lax.while_loop(
        lambda c: (note(c + 100), c < 5)[1], lambda c: (note(c), jit(lambda c: c + 1)(c))[1], x
    )
    note(-x)
    return x


ORDER = [1, 0, 10, 20, 2, 30, 3, 103, 3, 104, 4, 105, -5]


@pytest.mark.parametrize("nested", [False, True])
@both
def test_ordered_effects_happen_in_the_order_of_the_program(how, nested):
    seen = []

    def note(v):
        io_callback(lambda v: seen.append(int(v)), None, v, ordered=True)

    f = how(lambda x: ordered_program(x, note))
    g = how(lambda x: (note(x * 0 + 7), f(x))[1]) if nested else f
    for _ in range(3):
        seen.clear()
        assert int(g(xnp.int32(1))) == 5
        assert seen == [7] * nested + ORDER


def test_ordered_calls_beside_each_other_do_not_change_places():
    seen = []

    def f(x):
        for k in range(40):  # none needs another's result
            io_callback(lambda v, k=k: seen.append(k), None, x[k], ordered=True)
        return x

    jit(f)(np.arange(40))
    assert seen == list(range(40))


def test_a_primitive_that_keeps_no_order_is_refused_and_one_that_does_compiles():
    def shape(x):
        return (x,)

    def lost(b, operands, avals_in, avals_out):
        region = b.region([], lambda inner, _: [inner.order], avals_out)
        return b.op("stablehlo.case", operands, avals_in, avals_out, regions=b.regions(region))

    def kept(b, operands, avals_in, avals_out):
        b.order = b.order + ""  # a new value, as far as the builder knows
        return operands

    rules = {"jvp": undefined("t"), "transpose": undefined("t"), "batch": undefined("t"),
             "numpy": lambda x: (x,), "effects": lambda: frozenset([Effect("mine")])}  # fmt: skip
    p = Primitive("test_order_lost", shape=lambda x: (make_jaxpr(lambda: True)().out_avals[0],),
                  stablehlo=lost, **rules)  # fmt: skip
    with pytest.raises(TypeError, match="does not keep their order"):
        jit(lambda x: p.bind(as_array(x))[0])(np.int32(1))
    q = Primitive("test_order_kept", shape=shape, stablehlo=kept, **rules)
    assert int(jit(lambda x: q.bind(as_array(x))[0])(np.int32(1))) == 1


@both
def test_prints_show_values_numbers_strings_and_trees(how, capsys):
    def f(x):
        debug.print("{} {name} {n:03d} {x:.2f} {tree}", x, name="w", n=7, x=x, tree={"a": [x]})
        return x

    how(f)(xnp.float32(1.5))
    assert capsys.readouterr().out == "1.5 w 007 1.50 {'a': [Array(1.5, dtype=float32)]}\n"


def test_without_a_function_or_a_format_the_result_takes_it(capsys):
    show, seen = debug.print(ordered=True), []
    jit(lambda x: (show("x = {}", x), debug.callback()(lambda v: seen.append(v), x))[0])(3)
    assert capsys.readouterr().out == "x = 3\n" and len(seen) == 1
    debug.print("{}", 1, partitioned=True)
    assert capsys.readouterr().out == "1\n"


@both
def test_prints_of_loops_are_all_there_when_the_call_returns(how, capsys):
    def f(n):
        return lax.fori_loop(0, 200, lambda i, c: (debug.print("{}", i, ordered=True), c)[1], n)

    how(f)(np.int32(1))
    assert capsys.readouterr().out.split() == [str(i) for i in range(200)]


@pytest.mark.parametrize(("fmt", "args", "text"), [
    ("{:.2f}", (np.ones(3, np.float32),), "only a number can be written as '.2f'"),
    ("x", (1.0,), "it does not mention the argument 0"),
    ("{1}", (1.0, 2.0), "it does not mention the argument 0"),
    ("{} {}", (1.0,), "Replacement index 1"),
    ("{y}", (), "KeyError: 'y'"),
    ("{", (), "Single '{'"),
    ("{.nope}", (1.0,), "has no attribute 'nope'"),
])  # fmt: skip
def test_a_format_that_does_not_fit_is_an_error_while_tracing(fmt, args, text):
    with pytest.raises(ValueError, match=r"debug\.print: the format does not fit") as e:
        make_jaxpr(lambda *xs: debug.print(fmt, *xs))(*args)
    assert text in str(e.value)
    kind = {"Replacement index 1": IndexError, "KeyError: 'y'": KeyError}.get(text, ValueError)
    assert isinstance(e.value, kind)  # as str.format says it, too


def test_a_format_that_is_not_checked_fails_when_the_program_runs():
    f = jit(lambda x: debug.print("{:.2f}", x, skip_format_check=True))
    with pytest.raises((ValueError, TypeError), match="format"):
        f(np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"debug\.print: the format must be"):
        debug.print(np.ones(3))


@both
def test_a_callback_calls_compiled_functions_as_any_other(how):
    inner = jit(lambda m: lax.fori_loop(0, 50, lambda i, c: c * 0.5 + m @ m, m).sum())
    f = how(lambda m: pure_callback(inner, ShapeDtypeStruct((), m.dtype), m))
    m = np.eye(60, dtype=np.float32)
    # NumPy and XLA add 60 numbers near 2 in another order: a few ulp
    np.testing.assert_allclose(f(m), inner(m), rtol=1e-6)


def test_programs_in_callbacks_in_programs_end_in_any_number_of_threads():
    def nested(depth):
        if depth == 0:
            return jit(lambda x: (x @ x).sum())
        inner = nested(depth - 1)
        return jit(lambda x: pure_callback(inner, ShapeDtypeStruct((), x.dtype), x) + (x @ x)[0, 0])

    f, x = nested(4), xnp.eye(64)
    results = []
    threads = [threading.Thread(target=lambda: results.append(float(f(x)))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == [68.0] * 8


def test_effects_barrier_waits_for_other_threads_and_not_for_itself():
    begun, go, done = threading.Event(), threading.Event(), []

    def slow(v):
        begun.set()
        go.wait(30)
        done.append(float(v))

    thread = threading.Thread(target=lambda: jit(lambda x: debug.callback(slow, x))(1.0))
    thread.start()
    assert begun.wait(30)
    threading.Timer(0.02, go.set).start()
    effects_barrier()
    assert done == [1.0]
    thread.join()
    effects_barrier()
    with pytest.raises(RuntimeError, match="effects_barrier: a callback cannot wait"):
        jit(lambda x: debug.callback(lambda v: effects_barrier(), x))(1.0)


def test_wrong_arguments_say_what_is_wrong():
    one = ShapeDtypeStruct((), np.float32)
    with pytest.raises(TypeError, match="pure_callback: expected a function, got an array"):
        pure_callback(one, one, 1.0)
    with pytest.raises(TypeError, match="a declared result has no shape and dtype"):
        pure_callback(np.sin, 1.0, 1.0)
    with pytest.raises(ValueError, match="unknown vmap_method"):
        pure_callback(np.sin, one, 1.0, vmap_method="parallel")
    with pytest.raises(NotImplementedError, match="once for each program"):
        io_callback(np.sin, one, 1.0, sharding="x")
    with pytest.raises(TypeError, match="pure_callback: the argument"):
        pure_callback(np.sin, one, "text")


def test_a_jaxpr_shows_the_function_and_its_place():
    text = str(make_jaxpr(on_numpy)(np.float32([1])))
    assert "callback[" in text and "<lambda> at test_callbacks.py:" in text
    assert callback_p.name == "callback"


def test_a_pure_callback_is_waited_for_in_long_loops_without_jit():
    def step(c, x):
        return c + pure_callback(lambda v: v, like(x), x), None

    total, _ = lax.scan(step, xnp.float32(0), xnp.ones(2000))
    assert float(total) == 2000.0


@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "jit"])
def test_logs_are_records_of_the_line_that_asks_for_them(how, caplog):
    def f(x):
        debug.log("x = {x} and {}", "text", x=x, ordered=True)
        debug.log(ordered=True)("twice {:.1f}", 2 * x)
        return x

    with caplog.at_level(logging.INFO, logger="xjit"):
        how(f)(np.float32(1.5))
    assert [r.getMessage() for r in caplog.records] == ["x = 1.5 and text", "twice 3.0"]
    lines = [r.lineno - f.__code__.co_firstlineno for r in caplog.records]
    assert lines == [1, 2] and caplog.records[0].filename == "test_callbacks.py"
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="xjit"):
        how(f)(np.float32(1.5))
    assert not caplog.records


def test_what_cannot_be_logged_is_refused():
    with pytest.raises(TypeError, match=r"debug.log: the format must be a string"):
        debug.log(3)
    with pytest.raises(ValueError, match="does not fit"):
        debug.log("{}")


def test_the_effects_of_looking_at_a_program_say_all_that_effects_say():
    for effect, ordered in ((DEBUG, False), (ORDERED_DEBUG, True)):
        assert (effect.ordered, effect.exact, effect.repeatable) == (ordered, False, False)
        assert effect == type(effect)()
        assert effect != Effect(effect.name, ordered, exact=False)
        assert repr(effect).endswith(f"ordered={ordered}, exact=False, repeatable=False)")
        assert pickle.loads(pickle.dumps(effect)) == effect
