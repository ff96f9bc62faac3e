"""The service of kernels: when they are made, found, forgotten and refused."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from packages.xprim.tests.operations import call_p, noise_p, plus, plus_p, scale, scale_p
from xprim import (
    EAGER,
    ClosedJaxpr,
    NumpyCall,
    Operand,
    Primitive,
    as_array,
    config,
    make_jaxpr,
    shaped_array,
    state,
    trace_to_jaxpr,
    undefined,
)
from xprim.errors import ImpureRuleError
from xprim.kernels import (
    REFUSED,
    Kernel,
    KernelTable,
    ProgramKernels,
    Refusal,
    forget_kernels,
    forget_with_kernels,
    log,
    numpy_function,
    numpy_operand,
)
from xprim.static_keys import params_key

AVAL = shaped_array((3,), np.dtype(np.float32))
NONE = undefined("it is for tests")


def kernel():
    return Kernel(np.negative, (AVAL,))


def test_a_kernel_is_made_at_the_use_that_the_table_says():
    table = KernelTable("of a test", uses=2)
    assert table.use((plus_p, AVAL), kernel) is None
    assert table.use((plus_p, AVAL), kernel) is None
    found = table.use((plus_p, AVAL), kernel)
    assert found.run is np.negative
    assert table.use((plus_p, AVAL), kernel) is found
    assert table.use((scale_p, AVAL), kernel) is None


def test_a_kernel_is_made_once_under_evaluation():
    table, traces = KernelTable("of a test"), []

    def make(*args):
        traces.append((state.trace, args))
        return kernel()

    make_jaxpr(lambda x: (table.make((plus_p, AVAL), make, 1, 2), x)[1])(1.0)
    table.make((plus_p, AVAL), make, 1, 2)
    assert traces == [(EAGER, (1, 2))]


def test_options_of_a_thread_are_part_of_the_key_and_come_back():
    table = KernelTable("of a test")
    found = table.make((plus_p,), kernel)
    with config.enable_x64(True):
        assert table.find((plus_p,)) is None
        other = table.make((plus_p,), kernel)
    assert table.find((plus_p,)) is found is not other
    seen = []
    thread = threading.Thread(target=lambda: seen.append(table.find((plus_p,))))
    thread.start()
    thread.join()
    assert seen == [found]


def test_a_use_right_after_a_scope_of_other_options_does_not_count_anew():
    table = KernelTable("of a test", uses=1)
    for _ in range(2):
        table.use((plus_p,), kernel)
    with config.enable_x64(True):
        pass
    assert table.use((plus_p,), kernel).run is np.negative


def test_all_is_forgotten_when_an_option_changes_for_the_process():
    table = KernelTable("of a test")
    table.make((plus_p,), kernel)
    previous = config.read("numpy_rank_promotion")
    try:
        config.update("numpy_rank_promotion", "warn")
        assert not table
    finally:
        config.update("numpy_rank_promotion", previous)


def test_a_table_is_emptied_when_it_is_full():
    table = KernelTable("of a test", limit=3)
    for k in range(8):
        table.make((plus_p, k), kernel)
        assert len(table) <= 3
    assert table.find((plus_p, 7)) is not None


def test_an_unhashable_param_has_no_kernel():
    table = KernelTable("of a test")
    assert table.use((plus_p, ("axes", [1])), kernel) is None


def test_a_program_keeps_its_kernel_and_makes_it_when_enough_equations_ran():
    kernels = ProgramKernels("steps of a test", worth=10)
    made = []

    def make(closed):
        made.append((closed, state.trace))
        return kernel()

    first, second = [
        make_jaxpr(lambda x: plus(scale(x, 2.0), x))(np.ones(3, np.float32)) for _ in range(2)
    ]
    assert kernels.use(first, 4, make) is None  # two equations
    found = kernels.use(first, 1, make)
    assert found.run is np.negative and kernels.use(first, 0, make) is found
    assert kernels.use(second, 1, make) is None
    assert made == [(first, EAGER)]
    with config.enable_x64(True):
        assert kernels.use(first, 1, make) is None


# --- refusals -------------------------------------------------------------------------------------


def refuse():
    raise Refusal("there is no reason")


def test_a_refusal_is_kept_and_shown_to_who_asks(caplog):
    table = KernelTable("of a test")
    with caplog.at_level("WARNING", "xprim.kernels"):
        assert table.use((plus_p, AVAL), refuse) is None
        assert table.find((plus_p, AVAL)) is REFUSED
        assert table.use((plus_p, AVAL), kernel) is None
        assert not caplog.records
        with log("kernels"):
            key = (scale_p, AVAL, *params_key({"by": -0.0, "axes": (1,)}))
            assert table.make(key, refuse) is REFUSED
    assert [r.getMessage() for r in caplog.records] == [
        "of a test: no kernel for test_scale f32[3] by axes -0.0 (1,): there is no reason"
    ]


def test_a_program_keeps_the_refusal_of_its_kernel_which_is_logged(caplog):
    kernels = ProgramKernels("steps of a test", worth=1)
    closed = make_jaxpr(lambda x: plus(x, x))(np.ones(3, np.float32))

    def broken(closed):
        raise ZeroDivisionError("of a rule")

    with config.enable_checks(True), pytest.raises(ZeroDivisionError, match="of a rule"):
        kernels.use(closed, 1, broken)
    with caplog.at_level("WARNING", "xprim.kernels"):
        assert kernels.use(closed, 1, broken) is None
        assert kernels.use(closed, 1, lambda closed: kernel()) is None  # it is not tried again
    (text,) = [r.getMessage() for r in caplog.records]
    assert text.startswith("steps of a test: no kernel for ")
    assert "ZeroDivisionError: of a rule" in text


def test_the_environment_variable_shows_refusals():
    code = (
        "import numpy as np, xprim; from xprim.kernels import KernelTable, Refusal\n"
        "def make(): raise Refusal('it is a test')\n"
        "KernelTable('some table').make(('key',), make)"
    )
    for topic, shown in (("kernels", "some table: no kernel for key: it is a test\n"), ("", "")):
        env = os.environ | {"XSTACK_LOG": topic}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stderr == shown


def test_the_log_takes_what_it_knows():
    with pytest.raises(ValueError, match=r"config\.log: the option does not take this value"):
        config.update("log", "everything")


def fail():
    return {}["missing"]


def test_an_unexpected_error_is_always_shown_and_raised_under_checks(caplog):
    table = KernelTable("of a test")
    with caplog.at_level("WARNING", "xprim.kernels"):
        assert table.make((plus_p, AVAL), fail) is REFUSED
    assert "KeyError: 'missing'" in caplog.text
    with config.enable_checks(True), pytest.raises(KeyError):
        table.make((plus_p, AVAL), fail)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: call_p.bind(x, jaxpr=make_jaxpr(lambda y: y)(np.ones(3, np.float32))), "a call"),
        (noise_p.bind, "effects"),
        (lambda x: [many(x)], "65 operations, more than 64"),
    ],
)
def test_programs_that_must_go_through_the_traces_are_refused(function, reason):
    with pytest.raises(Refusal, match=reason):
        numpy_function(program_of(function))


def many(x):
    for _ in range(65):
        x = plus(x, 1.0)
    return x


def program_of(function, *avals):
    return ClosedJaxpr(*trace_to_jaxpr(function, avals or [AVAL]))


@pytest.mark.parametrize("option", [config.debug_nans, config.debug_infs])
def test_no_operation_is_hidden_from_who_looks_at_each_result(option):
    program = program_of(lambda x: [plus(x, x)])
    numpy_function(program)
    with option(True), pytest.raises(Refusal, match="look at each operation"):
        numpy_function(program)


def test_captured_tracers_are_no_constants_of_a_kernel():
    refused = []

    def inner(y):
        traced = trace_to_jaxpr(lambda x: [plus(x, y)], [AVAL])
        with pytest.raises(Refusal, match="traced value"):
            numpy_function(ClosedJaxpr(*traced))
        refused.append(True)
        return y

    make_jaxpr(inner)(np.ones(3, np.float32))
    assert refused


# --- ufunc rules ----------------------------------------------------------------------------------


def primitive(name, numpy, ufunc):
    return Primitive(
        name, shape=lambda *xs, **_: (xs[0],), numpy=numpy, stablehlo=NONE, jvp=NONE,
        transpose=NONE, batch=NONE, ufunc=ufunc,
    )  # fmt: skip


def _wrong_ufunc(avals_in, avals_out):
    return np.cos


sine_p = primitive("sine_of_test", lambda x: (np.sin(x),), lambda ins, outs: np.sin)
wrong_p = primitive("wrong_of_test", lambda x: (np.sin(x),), _wrong_ufunc)
less_p = primitive(
    "less_of_test", lambda x, y, *, by: (y * x.dtype.type(by) - x,),
    lambda ins, outs, *, by: NumpyCall(np.subtract, (Operand(1), Operand(0))) if by == 1 else None,
)  # fmt: skip


def test_one_operation_is_its_ufunc():
    assert numpy_function(program_of(lambda x: sine_p.bind(x)), single=True) is np.sin


def test_operands_go_where_the_rule_says_and_params_choose():
    x, y = np.float32([1, 2, 3]), np.float32([10, 20, 30])
    for by in (1, 2):
        program = program_of(lambda x, y, by=by: less_p.bind(x, y, by=by), AVAL, AVAL)
        (found,) = numpy_function(program)(x, y)
        np.testing.assert_array_equal(found, by * y - x)


def test_a_wrong_ufunc_rule_is_found_by_checks_at_its_line():
    program = program_of(lambda x: [plus(wrong_p.bind(x)[0], 1.0)])
    x = np.zeros(3, np.float32)
    assert numpy_function(program)(x)[0][0] == 2.0  # what the owner says is believed
    with config.enable_checks(True):
        checked = numpy_function(program)
        alone = numpy_function(program_of(lambda x: wrong_p.bind(x)), single=True)
        right = numpy_function(program_of(lambda x: sine_p.bind(x)), single=True)
    np.testing.assert_array_equal(right(x), x)
    for function in (checked, alone):
        with pytest.raises(ImpureRuleError, match="wrong_of_test: its ufunc rule") as caught:
            function(x)
        code = _wrong_ufunc.__code__
        assert f"{code.co_filename}:{code.co_firstlineno}" in str(caught.value)


def test_a_kernel_without_ufunc_rules_runs_the_numpy_rules():
    function = numpy_function(program_of(lambda x: [scale(plus(x, x), 3)]))
    np.testing.assert_array_equal(function(np.float32([1, 2, 3]))[0], [6, 12, 18])


def test_numpy_computes_with_what_lies_on_the_host():
    x = as_array(np.ones(3, np.float32))
    assert numpy_operand(x) is x.to_host()


def _product_shape(x, y):
    return (shaped_array((*x.shape[:-1], y.shape[-1]), x.dtype),)


matmul_p = Primitive(
    "matmul_of_test", shape=_product_shape, numpy=lambda x, y: (np.matmul(x, y),), stablehlo=NONE,
    jvp=NONE, transpose=NONE, batch=NONE, ufunc=lambda ins, outs: np.matmul,
)  # fmt: skip


rows_p = Primitive(
    "rows_of_test", shape=lambda x: (shaped_array((3, 3), x.dtype),),
    numpy=lambda x: (np.broadcast_to(x, (3, 3)),), stablehlo=NONE, jvp=NONE, transpose=NONE,
    batch=NONE, ufunc=lambda ins, outs: NumpyCall(np.broadcast_to, (Operand(0), (3, 3))),
)  # fmt: skip


@pytest.mark.parametrize("combine", [matmul_p, plus_p])
def test_only_elementwise_ufuncs_repeat_their_operands(combine):
    square = shaped_array((3, 3), np.dtype(np.float32))
    program = program_of(lambda x, row: combine.bind(x, rows_p.bind(row)[0]), square, AVAL)
    x, row = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), np.float32([1, 2, 3])
    (found,) = numpy_function(program)(x, row)
    expected = combine.rule("numpy")(x, np.broadcast_to(row, (3, 3)))[0]
    np.testing.assert_array_equal(found, expected)


def test_finalisers_of_kernels_may_make_and_watch_others():
    class Owner:
        def __init__(self, again):
            self.kernels = {"key": Finalised(again)} if again else {}
            forget_with_kernels(self)

        def clear(self):
            self.kernels.clear()

    class Finalised:
        def __init__(self, again):
            self.again = again

        def __del__(self):
            made.append(Owner(self.again - 1))

    made = []
    made.append(Owner(3))
    for count in (2, 3, 4):
        forget_kernels()
        assert len(made) == count
