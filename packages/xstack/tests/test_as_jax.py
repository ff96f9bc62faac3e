"""A library that imports JAX runs on this family when that is asked for."""

import importlib
import inspect
import os
import subprocess
import sys

import pytest

import xstack

PROGRAM = """
import sys, types
import xstack, xstack.as_jax
{before}
xstack.as_jax.install()
xstack.as_jax.install()
import jax
import jax.numpy as jnp, jax.scipy.stats.norm, jax.lib, jaxlib
from jax import lax, grad
from jax.extend.core import Primitive
from jax._src.flatten_util import ravel_pytree
import xstack.numpy, xstack.scipy.stats.norm
assert jnp is xstack.numpy and jax.numpy is jnp and lax is xstack.lax
assert jax.scipy.stats.norm is xstack.scipy.stats.norm
assert xstack.numpy.__spec__.name == "xstack.numpy"
assert jax.__version_info__ >= (0, 12) and xstack.__version__ != jax.__version__
assert grad(lambda x: jnp.sin(x) ** 2)(0.0) == 0 and "vmap" in dir(jax)
assert jax.lib.__version__ == jaxlib.__version__ and "lib" in dir(jax)
try:
    import jax.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "jax.no_such_module", error.name
else:
    raise AssertionError
xstack.as_jax.uninstall()
assert "jax" not in sys.modules and "jax.numpy" not in sys.modules
"""


def run(before=""):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_modules_of_the_alias_are_those_of_this_family():
    result = run()
    assert result.returncode == 0, result.stderr


def test_it_refuses_where_jax_is_imported_already():
    result = run("sys.modules['jax'] = types.ModuleType('jax')")
    assert "as_jax.install: JAX itself is imported already." in result.stderr
    assert "hint      install before the first library that imports JAX" in result.stderr


@pytest.mark.parametrize(("module", "names"), [
    ("ad_util", "stop_gradient_p"), ("api_util", "flatten_fun infer_argnums_and_argnames"),
    ("checkify", "checkify Error"), ("compiler", ""),
    ("core", "trace_state_clean ShapedArray Tracer Literal"), ("dispatch", "wait_for_tokens"),
    ("distributed", "global_state"),
    ("dtypes", "TypePromotionError finfo"), ("flatten_util", "ravel_pytree"),
    ("state.types", "AbstractRef"), ("tree_util", "_registry tree_map"),
    ("traceback_util", "api_boundary include_frame register_exclusion _exclude_paths"),
])  # fmt: skip
def test_names_of_private_modules_are_there(module, names):
    found = importlib.import_module(f"xstack._src.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", ["xstack.dtypes", "xstack._src.dtypes"])
def test_bfloat16_is_the_type_of_scalars(module):
    bfloat16 = importlib.import_module(module).bfloat16
    one = bfloat16(1.5)
    assert isinstance(one, bfloat16) and not isinstance(1.5, bfloat16) and one == 1.5
    found = xstack.numpy.asarray(one)
    assert found.dtype == bfloat16 and xstack.numpy.ones(2, bfloat16).dtype == found.dtype
    assert xstack.dtypes.finfo(bfloat16).bits == 16
    assert xstack.dtypes.result_type(bfloat16, "float32") == "float32"


@pytest.mark.parametrize(("argnums", "argnames", "expected"), [
    (None, None, ((), ())), (0, None, ((0,), ("x",))), (-1, None, ((-1,), ())),
    ((0, 1), None, ((0, 1), ("x", "y"))), (None, ("y", "k"), ((1,), ("y", "k"))),
    (1, "x", ((1,), ("x",))),
])  # fmt: skip
def test_positions_and_names_of_parameters_follow_from_each_other(argnums, argnames, expected):
    signature = inspect.signature(lambda x, y=0, *, k=0: x)
    private = importlib.import_module("xstack._src.api_util")
    assert private.infer_argnums_and_argnames(signature, argnums, argnames) == expected


def test_pjit_is_jit_where_no_place_is_none():
    pjit = importlib.import_module("xstack.experimental.pjit")
    assert type(pjit.pjit(lambda x: x)) is type(xstack.jit(lambda x: x))
    assert callable(pjit.with_sharding_constraint)


NAME = "import jax; print(jax.numpy.__name__)"


def output(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **environment}, cwd=cwd,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_runs_a_script_with_its_arguments_and_the_processes_it_starts(tmp_path):
    (tmp_path / "beside.py").write_text("import jax\n")
    script = tmp_path / "program.py"
    script.write_text(
        "import subprocess, sys, beside\n"
        f"print(sys.argv[1:], __name__, beside.jax.numpy.__name__)\n"
        f"subprocess.run([sys.executable, '-c', {NAME!r}])\n"
    )
    result = output("-u", "-m", "xstack.as_jax", str(script), "--steps", "3")
    assert result.stdout == "['--steps', '3'] __main__ xstack.numpy\nxstack.numpy\n", result.stderr


def test_the_command_runs_a_module(tmp_path):
    (tmp_path / "program.py").write_text(f"{NAME}; import sys; print(sys.argv[1:])")
    result = output("-m", "xstack.as_jax", "-m", "program", "a", cwd=tmp_path)
    assert result.stdout == "xstack.numpy\n['a']\n", result.stderr


@pytest.mark.parametrize(("arguments", "code"), [((), 2), (("--help",), 0)])
def test_the_command_says_how_it_is_called(arguments, code):
    result = output("-m", "xstack.as_jax", *arguments)
    assert result.returncode == code and "usage: python -m xstack.as_jax SCRIPT" in result.stdout


def test_the_command_names_an_option_without_its_argument():
    result = output("-m", "xstack.as_jax", "-m")
    assert result.returncode == 2 and "-m lacks a module." in result.stderr


def test_the_command_names_an_option_of_python_and_how_to_give_it():
    result = output("-m", "xstack.as_jax", "-c", "import jax")
    assert result.returncode == 2 and "unknown option -c." in result.stderr
    assert "XSTACK_AS_JAX=1 python -c ..." in result.stderr


@pytest.mark.parametrize(("value", "replaced"), [("1", True), ("0", False), ("", False)])
def test_the_environment_variable_decides_for_a_process(value, replaced):
    code = "import sys; print(any(type(f).__module__ == 'xstack.as_jax' for f in sys.meta_path))"
    assert output("-c", code, XSTACK_AS_JAX=value).stdout == f"{replaced}\n"


@pytest.mark.parametrize(
    ("variable", "there"), [({}, "allow"), ({"XSTACK_INDEX_CHECKS": "raise"}, "raise")]
)
def test_options_have_the_defaults_of_jax_from_import_to_uninstall(variable, there):
    program = "import os; os.environ.pop('XSTACK_RETRACES', None);"  # that of our tests
    program += "from xstack import as_jax, config; as_jax.install(); show = lambda: print("
    program += "config.explicit_x64_dtypes.value, config.index_checks.value, "
    program += "config.retraces.value); show();"
    program += "import jax; show(); as_jax.uninstall(); show()"
    result = output("-c", program, **variable)
    before = {"allow": "known"}.get(there, there)
    expected = f"allow {before} warn\nwarn {there} allow\nallow {before} warn\n"
    assert result.stdout == expected, result.stderr


FAILING = """
import jax
def fail(x):
    raise KeyError("egads")
call = lambda x: jax.pure_callback(fail, x, x)
for f in (call, jax.jit(call)):
    try:
        f(jax.numpy.ones(2))
    except jax.errors.JaxRuntimeError as error:
        print("KeyError: 'egads'" in str(error), type(error.__cause__).__name__)
"""


def test_errors_of_callbacks_are_what_libraries_for_jax_catch():
    result = output("-c", FAILING, XSTACK_AS_JAX="1")
    assert result.stdout == "True KeyError\n" * 2, result.stderr


SCALARS_OF_A_LINEAR_MAP = """
import jax
import jax.numpy as jnp

def constants(factor, step):
    _, pushforward = jax.linearize(lambda y: y - factor * (y * step), jnp.ones(2))
    return [c.shape for c in jax.make_jaxpr(pushforward)(jnp.ones(2)).consts]

numbers = jnp.array(0.5), jnp.array(3.0) - jnp.array(1.0)
outside, inside = constants(*numbers), []
jax.make_jaxpr(lambda *given: inside.extend(constants(*given)) or given)(*numbers)
print(outside == inside, outside.count(()))
"""


def test_programs_have_the_same_scalar_constants_inside_and_outside_of_traced_functions():
    # A loop whose state holds such a program has it made outside first, then in its body.
    result = output("-c", SCALARS_OF_A_LINEAR_MAP, XSTACK_AS_JAX="1")
    assert result.stdout == "True 2\n", result.stderr


def test_pytest_installs_it_before_the_conftest_files(tmp_path):
    (tmp_path / "conftest.py").write_text("import jax; assert jax.numpy.__name__ == 'xstack.numpy'")
    (tmp_path / "test_it.py").write_text("from conftest import jax\ndef test(): jax.numpy.ones(2)")
    options = ("-p", "xstack.as_jax", "-p", "no:cacheprovider", "-q")
    result = output("-m", "pytest", *options, str(tmp_path), cwd=tmp_path)
    assert result.returncode == 0, result.stdout


ABSENT = """
import importlib.util
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu
import jax.experimental.pallas.ops.tpu.flash_attention
from jax.interpreters import pxla
from jax.extend import ifrt_programs
assert ifrt_programs.ifrt_programs is ifrt_programs and not hasattr(pxla, "shard_args")
for module in (pl, tpu):
    def blocks(specs: module.BlockSpec | None = None): ...
    for use in (lambda: module.BlockSpec((8, 8)), lambda: module.BlockSpec.index_map):
        try:
            use()
        except (AttributeError, TypeError) as error:
            print(error)
for name in ("jax.lib.xla_bridge", "jax.experimental.odes", "jax.experimental.rnn", "jax.foo"):
    assert importlib.util.find_spec(name) is None
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(error)
"""


def test_a_module_that_is_not_here_says_what_there_is_instead():
    result = output("-c", ABSENT, XSTACK_AS_JAX="1")
    lines = result.stdout.splitlines()
    kernels = "jax.experimental.pallas of JAX is not part of xstack."
    assert lines[0::2] == [
        f"jax.experimental.pallas.BlockSpec: {kernels}",
        f"jax.experimental.pallas.BlockSpec.index_map: {kernels}",
        f"jax.experimental.pallas.tpu.BlockSpec: {kernels}",
        f"jax.experimental.pallas.tpu.BlockSpec.index_map: {kernels}",
        "jax.lib.xla_bridge: this module of JAX is not part of xstack.",
        "import jax.experimental.odes: xstack does not have this module.",
        "jax.experimental.rnn: this module of JAX is not part of xstack.",
        "import jax.foo: xstack does not have this module.",
    ], result.stderr
    assert lines[11] == "  hint      did you mean jax.experimental.ode?"
    assert lines[13] == "  hint      jax.lax.scan over a cell, which XLA compiles"


def test_programs_written_for_jax_get_its_options_and_its_meaning_of_64_bits():
    program = (
        "import warnings, jax, jax.numpy as jnp; warnings.simplefilter('ignore')\n"
        "print(jnp.zeros(2, 'float64').dtype, jax.config.jax_debug_nans, jnp.zeros(2).dtype)"
    )
    assert output("-c", program, XSTACK_AS_JAX="1", JAX_DEBUG_NANS="1").stdout == (
        "float32 True float32\n"
    )
    for environment in ({"JAX_ENABLE_X64": "1"}, {"XSTACK_EXPLICIT_X64_DTYPES": "allow"}):
        printed = output("-c", program, XSTACK_AS_JAX="1", **environment).stdout
        assert printed.startswith("float64 False"), environment


def test_an_uninstalled_finder_leaves_the_meaning_of_64_bits_as_it_was():
    program = (
        "import xstack, xstack.as_jax as a; a.install(); import jax; a.uninstall();"
        "print(xstack.numpy.zeros(2, 'float64').dtype)"
    )
    assert output("-c", program).stdout == "float64\n"


def test_private_modules_are_attributes_and_start_no_device():
    program = "import jax; print(len(jax._src.xla_bridge._backends)); jax.devices();"
    program += "print(*jax._src.xla_bridge._backends.get('cpu').platform)"
    assert output("-c", program, XSTACK_AS_JAX="1").stdout == "0\nc p u\n"


INTERPRETERS = """
import xstack.as_jax
xstack.as_jax.install()
import functools, operator
import jax, jax.numpy as jnp
from jax import lax
from jax.extend.core import Literal, Primitive, primitives

def evaluate(jaxpr, consts, *args):
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda v: v.val if isinstance(v, Literal) else values[v]
    for eqn in jaxpr.eqns:
        found = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        if not eqn.primitive.multiple_results:
            assert isinstance(found, jax.Array)
            found = [found]
        values.update(zip(eqn.outvars, found, strict=True))
    return [read(v) for v in jaxpr.outvars]

INVERSES = {lax.exp_p: jnp.log, lax.tanh_p: lax.atanh_p.bind, lax.neg_p: lax.neg_p}

def inverse(f):
    def backwards(y):
        program = jax.make_jaxpr(f)(y)
        values = {program.jaxpr.outvars[0]: y}
        for eqn in program.jaxpr.eqns[::-1]:
            invert = INVERSES[eqn.primitive]
            found = getattr(invert, "bind", invert)(values[eqn.outvars[0]])
            if getattr(invert, "multiple_results", False):
                (found,) = found
            values[eqn.invars[0]] = found
        return values[program.jaxpr.invars[0]]
    return backwards

def several(x):
    values, places = lax.top_k(jnp.sin(x) / 2.0, 2)
    return lax.cond(x[0] > 0, jnp.sum, jnp.max, values) + jax.jit(jnp.cumsum)(x)[-1]

def close(found, expected):
    assert jnp.allclose(found, expected, rtol=1e-5), (found, expected)

x = jnp.array([0.1, 0.2, 0.4])
f = lambda x: jnp.exp(jnp.tanh(-x))
close(inverse(f)(f(x)), x)
close(jax.jit(jax.vmap(jax.grad(inverse(f))))(f(x)), 1 / jax.vmap(jax.grad(f))(x))
program = jax.make_jaxpr(several)(x)
run = functools.partial(evaluate, program.jaxpr, program.consts)
close(run(x)[0], several(x))
close(jax.grad(lambda x: run(x)[0])(x), jax.grad(several)(x))
assert program.eqns[0].primitive is lax.sin_p and lax.top_k_p.multiple_results

@jax.custom_jvp
def cubed(x):
    return x ** 3

cubed.defjvp(lambda primals, tangents: (cubed(*primals), 30.0 * tangents[0]))
(eqn,) = jax.make_jaxpr(cubed)(2.0).eqns
params = eqn.primitive.get_bind_params(eqn.params)
function, rule = params["subfuns"]
close(function.call_wrapped(2.0)[0], 8.0)
close(jnp.stack(rule.call_wrapped(2.0, 1.0)), jnp.array([8.0, 30.0]))
bound = lambda x: eqn.primitive.bind(x, **params)[0]
close(jax.jit(bound)(2.0), 8.0)
close(jax.jit(jax.grad(bound))(2.0), 30.0)

close(jax.vmap(lax.mul_p.bind)(x, x), x * x)
close(jax.make_jaxpr(lax.div_p.bind)(1.0, 2.0).eqns[0].primitive.bind(1.0, 2.0), 0.5)
trace = jax._src.core.find_top_trace(())
close(lax.neg_p.bind_with_trace(trace, (x,), [], {}), -x)
own_p = Primitive("own")
own_p.def_impl(operator.neg)
close(own_p.bind(x), -x)
"""


def test_interpreters_written_for_jax_get_one_result_of_primitives_with_one():
    result = output("-c", INTERPRETERS)
    assert result.returncode == 0, result.stderr


def test_primitives_give_tuples_again_when_it_is_uninstalled():
    lines = ("import xstack.as_jax as a", "a.install()", "import jax; p = jax.lax.neg_p",
             "show = lambda: print(isinstance(p.bind(1.0), tuple), p.multiple_results)",
             "show()", "a.uninstall()", "show()")  # fmt: skip
    result = output("-c", "\n".join(lines))
    assert result.stdout == "False False\nTrue True\n", result.stderr


def test_the_primitives_with_several_results_are_those_of_jax():
    jax = pytest.importorskip("jax", minversion="0.12")
    theirs = importlib.import_module("jax.extend.core.primitives")
    code = (
        "import xstack.as_jax; xstack.as_jax.install()\n"
        "from jax import lax; from jax.extend.core import primitives\n"
        "for module in (lax, primitives):\n"
        "    for name in module.__all__:\n"
        "        if name.endswith('_p'):\n"
        "            print(name, getattr(module, name).multiple_results)\n"
    )
    ours = dict(line.split() for line in output("-c", code).stdout.splitlines())
    expected = {
        name: str(found.multiple_results)
        for name in ours
        if (found := getattr(jax.lax, name, None) or getattr(theirs, name, None)) is not None
    }
    assert len(expected) > 100
    assert {name: ours[name] for name in expected} == expected
