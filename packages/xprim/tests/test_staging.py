import asyncio
import gc
import threading
import weakref

import numpy as np
import pytest

import xprim
from packages.xprim.tests.operations import call_p, noise, plus, plus_p, scale, scale_p, swap_p
from xprim import (
    ClosedJaxpr,
    ShapedArray,
    ShapeDtypeStruct,
    as_array,
    axis_size,
    check_jaxpr,
    close_over,
    closure_convert,
    config,
    current_trace,
    ensure_compile_time_eval,
    eval_closed,
    eval_shape,
    extended_axes,
    make_jaxpr,
    named_scope,
    state,
    trace_to_jaxpr,
    typeof,
    use_trace,
)
from xprim.errors import (
    ConcretizationTypeError,
    JaxprTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

X = np.ones(3, np.float32)


def values(closed, *args):
    return [np.asarray(x).tolist() for x in eval_closed(closed, *map(as_array, args))]


def test_a_staged_function_is_the_program_it_ran():
    closed = make_jaxpr(lambda x, y: plus(scale(x, 2.0), y))(X, 3.0)
    assert [e.primitive for e in closed.eqns] == [scale_p, plus_p]
    check_jaxpr(closed.jaxpr)
    assert values(closed, X, 3.0) == [[5, 5, 5]]
    assert closed.in_avals == (ShapedArray((3,), "float32"), ShapedArray((), "float32", True))


def test_constants_become_literals_or_constant_variables_each_once():
    big = as_array(X)
    closed = make_jaxpr(lambda x: plus(plus(plus(x, 2.0), big), big))(X)
    assert len(closed.consts) == 1 and closed.consts[0] is big
    assert values(closed, X) == [[5, 5, 5]]
    assert str(closed.eqns[0]) != "" and "2.0:f32[]" in str(closed)


def test_results_may_be_arguments_constants_or_trees():
    closed = make_jaxpr(lambda x: {"x": x, "n": 3, "c": as_array(X), "t": (x, None)})(1.0)
    assert len(closed.out_avals) == 4 and not closed.eqns
    assert values(closed, 5.0) == [X.tolist(), 3, 5.0, 5.0]


def test_make_jaxpr_in_a_traced_function_counts_scalar_arrays_among_the_constants():
    held = xprim.ConcreteArray(np.int32(3), ShapedArray((), "int32"))

    def constants_of(value):
        return [c.aval for c in make_jaxpr(lambda x: plus(plus(x, value), 4))(1).consts]

    def program(x):  # whichever of the two a closure holds, its program has one constant
        assert constants_of(held) == constants_of(x) == [held.aval]
        assert constants_of(3) == []
        return x

    make_jaxpr(program)(np.int32(1))
    assert constants_of(held) == []
    with config.scalar_constants(True):
        assert constants_of(held) == [held.aval]
        for number in (3, 0.0, -0.0, float("nan"), 2j, complex(0.0, -0.0)):
            assert constants_of(number) == []


def test_make_jaxpr_takes_static_arguments_and_returns_shapes():
    def f(mode, x, *, y):
        assert mode == "up"
        return {"r": plus(x, y)}

    closed, shape = make_jaxpr(f, static_argnums=0, return_shape=True)("up", X, y=2.0)
    assert len(closed.in_avals) == 2
    assert shape == {"r": ShapeDtypeStruct((3,), "float32")}
    assert len(make_jaxpr(lambda x, m: x, static_argnums=(-1,))(X, "m").in_avals) == 1
    assert make_jaxpr(f, 0).__name__ == "f"
    with pytest.raises(TypeError, match="make_jaxpr: expected a function, got an int"):
        make_jaxpr(3)
    with pytest.raises(TypeError, match=r"the result at \['a'\]: a str is not an array"):
        make_jaxpr(lambda x: {"a": "text"})(X)
    with pytest.raises(
        ValueError, match="static_argnums names argument 2, but the function was called with 1"
    ):
        make_jaxpr(lambda x: x, static_argnums=2)(X)


def test_make_jaxpr_binds_named_axes():
    make_jaxpr(lambda x: scale(x, axis_size("i")), axis_env=[("i", 4)])(X)
    with extended_axes({"j": 2}):
        assert axis_size("j") == 2
    with pytest.raises(NameError, match="axis name 'i' is not bound here") as e:
        axis_size("i")
    assert "in scope: none" in str(e.value)
    with pytest.raises(NameError):
        axis_size(["unhashable"])


def test_eval_shape_computes_nothing():
    shape = eval_shape(lambda x, y: (plus(x, y), 1), ShapeDtypeStruct((3,), "float32"), y=2.0)
    assert shape[0] == ShapeDtypeStruct((3,), "float32")
    assert shape[1] == ShapeDtypeStruct((), "int32", weak_type=True)


def test_typeof_knows_everything_with_a_type():
    assert typeof(1.0) is ShapedArray((), "float32", True)
    assert typeof(X) is typeof(as_array(X)) is typeof(ShapedArray((3,), "float32"))
    assert typeof(ShapeDtypeStruct((3,), "float32")) is typeof(X)

    class Shaped:
        shape, dtype = (3,), np.dtype("float32")

    assert typeof(Shaped()) is typeof(X)
    with pytest.raises(TypeError, match=r"typeof: a str is not an array"):
        typeof("text")


def test_closures_over_tracers_become_arguments_when_closed_over():
    def outer(x):
        jaxpr, consts = trace_to_jaxpr(lambda y: [plus(plus(y, x), X_)], [as_array(1.0).aval])
        closed, captured = close_over(jaxpr, consts)
        assert captured == [x] and len(closed.consts) == 1
        check_jaxpr(closed.jaxpr)
        return call_p.bind(*captured, as_array(2.0), jaxpr=closed)[0]

    X_ = as_array(X)
    closed = make_jaxpr(outer)(1.0)
    check_jaxpr(closed.jaxpr)
    assert values(closed, 5.0) == [[8, 8, 8]]


def test_closure_convert_returns_what_was_captured():
    def outer(w):
        converted, captured = closure_convert(lambda t: plus(t["a"], w), {"a": 1.0})
        assert len(captured) == 1
        with pytest.raises(
            TypeError, match="closure_convert: the arguments have another structure"
        ):
            converted(1.0, *captured)
        return converted({"a": 2.0}, *captured)

    assert values(make_jaxpr(outer)(1.0), 5.0) == [7.0]


def test_compile_time_evaluation_inside_a_staged_function():
    def f(x):
        with ensure_compile_time_eval():
            size = int(plus(1, 2))
        return scale(x, ensure_compile_time_eval()(lambda: int(plus(size, 1)))())

    closed = make_jaxpr(f)(X)
    assert len(closed.eqns) == 1 and values(closed, X) == [[4, 4, 4]]

    assert state.trace is xprim.EAGER


def test_traced_values_are_staged_beside_what_is_evaluated_at_once():
    block = ensure_compile_time_eval()

    def f(x):
        with block, block:  # may be entered again before it is left
            two = plus(1, 1)
            return plus(x, scale(two, float(two)))

    closed = make_jaxpr(f)(X)
    assert len(closed.eqns) == 1 and values(closed, X) == [[5, 5, 5]]
    assert state.trace is xprim.EAGER


# --- what a tracer can not do --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (bool, TracerBoolConversionError, "a traced value has no truth value"),
        (
            int,
            ConcretizationTypeError,
            "int: Abstract tracer value encountered where concrete value is expected",
        ),
        (
            float,
            ConcretizationTypeError,
            "float: Abstract tracer value encountered",
        ),
        (
            complex,
            ConcretizationTypeError,
            "complex: Abstract tracer value",
        ),
        (
            range,
            TracerIntegerConversionError,
            r"The __index__\(\) method was called on traced array",
        ),
        (
            np.asarray,
            TracerArrayConversionError,
            r"conversion method __array__\(\) was called on traced array",
        ),
    ],
)
def test_tracers_have_no_value(use, error, text):
    with pytest.raises(error, match=text) as e:
        make_jaxpr(lambda x: use(scale(x, 2.0)))(1.0)
    assert "the operation test_scale(f32[]) at operations.py" in str(e.value)

    def named(x):
        return use(x)

    with pytest.raises(error, match=r"the argument .* of named"):
        make_jaxpr(named)(1.0)


def test_a_leaked_tracer_names_its_origin():
    kept = []
    make_jaxpr(lambda x: (kept.append(scale(x, 2.0)), x)[1])(1.0)
    for use in (lambda: scale(kept[0], 1.0), lambda: make_jaxpr(lambda: plus(kept[0], 1.0))()):
        with pytest.raises(
            UnexpectedTracerError, match="after the transformation that made it"
        ) as e:
            use()
        assert "test_scale(f32[]) at operations.py" in str(e.value)


def test_leaks_are_found_at_the_end_of_the_scope_when_asked():
    kept = []

    class Keeper:
        pass

    keeper = Keeper()
    with config.check_tracer_leaks(True):
        with pytest.raises(
            UnexpectedTracerError, match="still alive when its transformation ends"
        ) as e:
            make_jaxpr(lambda x: (kept.append(scale(x, 2.0)), x)[1])(1.0)
        assert "kept in a list of length 1" in str(e.value)
        assert "test_scale" in str(e.value)
        kept.clear()
        with pytest.raises(UnexpectedTracerError, match="still alive"):
            make_jaxpr(lambda x: (setattr(keeper, "last", x), x)[1])(1.0)
        keeper.last = None
        closed = make_jaxpr(lambda x: {"a": scale(x, 2.0), "b": plus(x, 1.0)})(1.0)
        assert len(closed.eqns) == 2
    make_jaxpr(lambda x: (kept.append(x), x)[1])(1.0)


def test_every_jaxpr_is_checked_as_it_is_built_when_asked():
    def wrong(x):
        """Leave behind what a wrong rule might: an equation that binds a variable twice."""
        out = scale(x, 2.0)
        trace = state.trace
        trace.eqns.append(trace.eqns[-1])
        return out

    make_jaxpr(wrong)(1.0)
    with config.enable_checks(True):
        with pytest.raises(JaxprTypeError, match=r"check_jaxpr: the variable .* is bound tw"):
            make_jaxpr(wrong)(1.0)
        make_jaxpr(lambda x: scale(x, 2.0))(1.0)
    make_jaxpr(wrong)(1.0)


def test_foreign_operands_are_refused_while_staging():
    with pytest.raises(TypeError, match="bind: an operand is not an Array") as e:
        make_jaxpr(lambda x: plus_p.bind(x, [1.0])[0])(X)
    assert "list" in str(e.value) and "test_staging.py" in str(e.value)


def test_tracers_show_their_type():
    seen = []
    make_jaxpr(lambda x: (seen.append(repr(x)), x)[1])(X)
    assert seen == ["JaxprTracer<f32[3]>"]


# --- state ---------------------------------------------------------------------------------------


def test_traces_nest_and_are_restored_after_exceptions():
    def outer(x):
        inside = current_trace()
        with pytest.raises(KeyError):
            make_jaxpr(lambda y: {}["missing"])(1.0)
        assert current_trace() is inside
        inner = make_jaxpr(lambda y: plus(y, y))(1.0)
        assert len(inner.eqns) == 1
        return scale(x, 2.0)

    closed = make_jaxpr(outer)(X)
    assert len(closed.eqns) == 1 and current_trace() is xprim.EAGER


def test_generators_do_not_carry_the_trace_away():
    def numbers():
        yield plus(1.0, 2.0)

    made = []
    make_jaxpr(lambda x: (made.append(numbers()), x)[1])(X)
    assert float(next(made[0])) == 3.0

    def abandoned(x):
        def generator():
            with named_scope("inside"):
                yield scale(x, 2.0)

        g = generator()
        next(g)
        g.close()
        return x

    make_jaxpr(abandoned)(X)
    assert state.name_stack == ()


def test_other_threads_evaluate_while_one_stages():
    results = []

    def f(x):
        thread = threading.Thread(target=lambda: results.append(float(plus(1.0, 2.0))))
        thread.start()
        thread.join()
        results.append(asyncio.run(asyncio.to_thread(lambda: float(plus(3.0, 4.0)))))
        return scale(x, 2.0)

    assert len(make_jaxpr(f)(X).eqns) == 1
    assert results == [3.0, 7.0]


def test_use_trace_installs_a_trace_for_a_block():
    with use_trace(xprim.EAGER) as trace:
        assert trace is current_trace()


def test_jaxprs_die_with_their_functions():
    closed = make_jaxpr(lambda x: scale(x, 2.0))(X)
    reference = weakref.ref(closed)
    del closed
    gc.collect()
    assert reference() is None


def test_named_scopes_and_lines_are_kept_with_equations():
    def f(x):
        with named_scope("outer"), named_scope("inner"):
            x = scale_p.bind(x, by=2.0)[0]
        return scale_p.bind(x, by=3.0)[0]

    closed = make_jaxpr(f)(X)
    assert [e.name_stack for e in closed.eqns] == [("outer", "inner"), ()]
    assert "test_staging.py" in xprim.source.describe(closed.eqns[0].source)
    again = make_jaxpr(lambda x: _in_scope("wrapped", closed, x))(X)
    assert [e.name_stack for e in again.eqns] == [("wrapped", "outer", "inner"), ("wrapped",)]
    assert again.eqns[0].source == closed.eqns[0].source
    with pytest.raises(TypeError, match="named_scope: the name must be a string, got 3"):
        named_scope(3)


def _in_scope(name, closed, x):
    with named_scope(name):
        return eval_closed(closed, x)[0]


def test_several_results_and_effects_are_staged():
    closed = make_jaxpr(lambda x: swap_p.bind(noise(x), as_array(1.0)))(X)
    assert closed.effects == frozenset(["noise"])
    assert isinstance(closed, ClosedJaxpr) and closed.literals == closed.consts
    for name in ("invars", "outvars", "constvars", "eqns", "effects", "in_avals", "out_avals"):
        assert getattr(closed, name) == getattr(closed.jaxpr, name)
    assert values(closed, X) == [1.0, X.tolist()]
