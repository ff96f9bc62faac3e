"""What did not fit into memory raises, wherever it is read or used, and says what it was.

The runtime ends the process where somebody looks at a buffer whose computation failed, so each use
is tried in a process of its own kind: one, in which all of them have to raise.
"""

import re

import pytest

import xnp
from packages.xjit.tests.new_process import run_in_new_process
from tests.nets.cells import IN_FULL
from xjit import XlaError, device_put, jit
from xjit.dispatch import program
from xjit.jaxlib_gateway import runtime
from xprim.errors import OutOfMemoryError, XStackRuntimeError

pytestmark = pytest.mark.of_the_cpu

# 400 TB: more than any machine's address space holds, so nothing is ever filled.
SETUP = """
    import copy, pickle, threading
    import numpy as np
    import xjit, xnp, xprim
    from xjit import jaxlib_gateway as gateway
    from xjit.dispatch import program

    program._MOST_UNAWAITED = 1 << 62  # as of results that a device could have

    def at_once():
        x = xnp.ones((10**7, 1))
        return x @ x.T

    gram = xjit.jit(lambda x: x @ x.T)

    def by_a_program():
        return gram(xnp.ones((10**7, 1)))

    @xjit.jit
    def slowly(x):
        steps = xnp.lax.fori_loop(0, 20_000, lambda i, s: s + xnp.sin(s), xnp.ones(64))
        x = x + 0 * steps[0]
        return x @ x.T

    def later():
        return slowly(xnp.ones((10**7, 1)))

    corner = xjit.jit(lambda r: r[:2, :2] + 1)

    def consumed():
        return corner(at_once())

    def fails(what, use, make):
        value = make()
        try:
            use(value)
        except xprim.errors.OutOfMemoryError as error:
            assert "400,000,000,000,000 bytes (364 TiB) were requested." in str(error), error
        else:
            raise AssertionError(what)
"""

USES = {
    "np.asarray": "np.asarray(r)",
    "np.array": "np.array(r)",
    "a view of other dtype": "np.asarray(r, dtype=np.float64)",
    "repr": "repr(r)",
    "str": "str(r)",
    "format": "f'{r}'",
    "one element": "float(r[0, 0])",
    "item": "r[0, 0].item()",
    "tolist": "r.tolist()",
    "a slice": "np.asarray(r[:2])",
    "an index array": "np.asarray(r[xnp.array([0])])",
    "an update": "np.asarray(r.at[0, 0].set(1.0))",
    "iteration": "[np.asarray(row) for row in r]",
    "block_until_ready": "r.block_until_ready()",
    "block_until_ready of a tree": "xjit.block_until_ready({'r': r})",
    "device_get": "xjit.device_get(r)",
    "an operand": "np.asarray((r + 1)[0, 0])",
    "an operand of the host": "np.asarray(xnp.sin(r)[0, 0])",
    "an argument of a program": "np.asarray(xjit.jit(lambda r: r[0, 0])(r))",
    "a donated argument": "np.asarray(xjit.jit(lambda r: r + 1, donate_argnums=0)(r))",
    "device_put": "np.asarray(xjit.device_put(r, xjit.devices()[0]))",
    "device_put elsewhere": "np.asarray(xjit.device_put(r, xjit.devices()[1]))",
    "dlpack": "r.__dlpack__()",
    "np.from_dlpack": "np.from_dlpack(r)",
    "the pointer": "r.unsafe_buffer_pointer()",
    "copy": "np.asarray(copy.copy(r))",
    "deepcopy": "np.asarray(copy.deepcopy(r))",
    "pickle": "pickle.dumps(r)",
    "equality": "np.asarray((r == r)[0, 0])",
    "a condition": "bool(r[0, 0] > 0)",
    "a loop": "np.asarray(xnp.lax.fori_loop(0, 2, lambda i, s: s + r[0, 0], xnp.zeros(())))",
}


# Each is a process that compiles for each use: an ordinary run tries half of the uses of the first
# one, and a third of those of the others, each another third.
MAKERS = ["at_once", "by_a_program", "later", "consumed"]


@pytest.mark.fuzz
@pytest.mark.parametrize("make", MAKERS)
def test_no_use_of_a_result_that_did_not_fit_ends_the_process(make):
    every = 1 if IN_FULL else 2 if make == "at_once" else 3
    uses = list(USES.items())[MAKERS.index(make) % every :: every]
    lines = "\n".join([f"    fails({what!r}, lambda r: {use}, {make})" for what, use in uses])
    program = f"{SETUP}\n{lines}\n    print('alive')\n"
    assert run_in_new_process(program, XSTACK_NUM_CPU_DEVICES="2") == "alive"


def test_a_result_that_did_not_fit_can_be_asked_about_deleted_and_forgotten():
    program = (
        SETUP
        + """
    r = at_once()
    fails('read', np.asarray, lambda: r)
    assert r.is_ready() and r.shape == (10**7, 10**7) and r.nbytes == 4 * 10**14
    fails('read again', np.asarray, lambda: r)
    r.delete()
    assert r.is_deleted()
    del r
    assert float(xnp.ones((3000, 1000)).sum()) == 3e6
    print('alive')
    """
    )
    assert run_in_new_process(program) == "alive"


def test_the_error_names_the_largest_arrays_that_exist():
    held = [jit(lambda x, k=k: x + k)(xnp.zeros((1 << 20, 3), "float32")) for k in range(3)]
    small = xnp.ones(10)
    x = xnp.ones((10**7, 1))
    with pytest.raises(OutOfMemoryError) as caught:
        float((x @ x.T)[0, 0])
    (hint,) = [line for line in str(caught.value).splitlines() if line.startswith("  hint")]
    assert "hint      of the arrays that exist these take most: " in hint
    assert "float32[10000000,1], 40,000,000 bytes (38.1 MiB)" in hint
    # Other tests of this process may hold some of the same type.
    count = int(re.search(r"(\d+) of float32\[1048576,3\], ", hint)[1])
    assert count >= 3 and f"{count * held[0].nbytes:,} bytes" in hint
    assert "10000000,10000000]" not in hint and f"float32[{small.size}]" not in hint


LINES = """
    import xnp, xjit, numpy as np

    @xjit.jit
    def step(x):
        y = x + 1
        return y * 2, y[:3]

    @xjit.jit
    def outer(x):
        return {"a": step(x)[0]}

    held = [step(xnp.zeros((1 << 20, 3), "float32"))[0] for _ in range(3)]
    called = outer(xnp.zeros((1 << 20, 2), "float32"))
    eager = xnp.ones((1 << 21, 4)) + 1
    x = xnp.ones((10**7, 1))
    try:
        xjit.jit(lambda x: x @ x.T)(x).block_until_ready()
    except MemoryError as error:
        print(error)
"""


def test_the_error_names_the_lines_of_programs_that_made_the_arrays():
    text = run_in_new_process(LINES)
    assert re.search(r"3 of float32\[1048576,3\], [^;]*, made at .*:7 in step;", text)
    assert re.search(r"float32\[1048576,2\], [^;]*, made at .*:11 in outer\n", text)
    assert re.search(r"float32\[2097152,4\], [\d,]* bytes \(32 MiB\);", text)  # made eagerly
    assert text.endswith("(python -X tracemalloc=32 also shows the other lines)")


def test_where_python_notes_lines_the_error_names_those_of_every_array():
    # The option -X tracemalloc would note the imports, too, and all that tracing makes.
    begun = LINES.replace(
        "    held = ",
        """
    step(xnp.zeros((1 << 20, 3), "float32")), outer(xnp.zeros((1 << 20, 2), "float32"))
    import tracemalloc
    tracemalloc.start(32)
    held = """,
    )
    text = run_in_new_process(begun)
    hint = text.partition("hint")[2]
    assert hint.count("bytes (") == hint.count(", made at ") >= 4
    assert re.search(r"float32\[2097152,4\], [^;]*, made at [^;]*:19[;\n]", hint)
    assert re.search(r"float32\[10000000,1\], [^;]*, made at [^;]*:20[;\n]", hint)
    assert "tracemalloc" not in hint


def test_what_numpy_could_not_hold_names_the_largest_arrays_too(monkeypatch):
    def full(*args, **kwargs):
        raise MemoryError

    large = xnp.ones((1 << 20, 7))
    monkeypatch.setitem(xnp.lax.sin_p.rules, "numpy", full)
    with pytest.raises(OutOfMemoryError, match=r"float32\[1048576,7\], 29,360,128 bytes"):
        xnp.sin(xnp.ones(3))
    del large


def test_the_error_names_the_operation_and_the_bytes():
    x = xnp.ones((10**7, 1))
    with pytest.raises(OutOfMemoryError) as caught:
        float((x @ x.T)[0, 0])
    first, got = str(caught.value).splitlines()[:2]
    assert first == (
        "dot_general: out of memory: 400,000,000,000,000 bytes (364 TiB) were requested."
    )
    assert got.startswith("  got       RESOURCE_EXHAUSTED: Out of memory allocating 4000000000")
    assert isinstance(caught.value, XlaError) and isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, XStackRuntimeError)


def test_the_error_says_what_the_program_takes():
    @jit
    def products(x):
        return (xnp.cumsum(x @ x.T, 0) @ x).sum()

    with pytest.raises(OutOfMemoryError) as caught:
        products(xnp.ones((10**7, 1))).block_until_ready()
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("products: out of memory: ")
    (sizes,) = [line.strip() for line in lines if "the program takes" in line]
    temporaries = r"for XLA's temporaries [\d,]{19} bytes \(\d+ TiB\)"  # one product, or two
    assert re.fullmatch(
        rf"the program takes {temporaries}, for arguments 40,000,000 bytes \(38.1 MiB\), "
        "for results 4 bytes", sizes,
    )  # fmt: skip


def test_a_long_list_of_what_is_in_memory_is_cut():
    cause = RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 363.80TiB."
                         + "\nBFC chunk" * 100)  # fmt: skip
    with pytest.raises(OutOfMemoryError, match=r"about 363[.]80 TiB were requested") as caught:
        runtime.fail("step", "it failed", cause)
    assert str(caught.value).count("BFC chunk") == 2


READERS = [lambda y: y + 1, lambda y: y.sum(), jit(lambda y: xnp.sin(y) * 2), lambda y: y[0]]


@pytest.mark.parametrize("use", READERS)
def test_a_result_that_no_device_can_have_is_the_error_of_what_makes_it(use):
    def squares(x):
        return xnp.sin(x @ x.T)

    x = xnp.ones((10**7, 1))
    for name, make in (("dot_general", lambda x: x @ x.T), ("squares", jit(squares))):
        with pytest.raises(OutOfMemoryError, match=rf"^{name}: out of memory: 400,000,0"):
            use(make(x)).block_until_ready()


@pytest.mark.parametrize("use", READERS[:3])
def test_the_error_of_what_uses_a_result_says_that_the_operand_failed(use, monkeypatch):
    monkeypatch.setattr(program, "_MOST_UNAWAITED", 1 << 62)  # as of what a device could have
    product, x = jit(lambda x: x @ (x.T + 0)), xnp.ones((10**7, 1))
    with pytest.raises(OutOfMemoryError, match=r"^an operand of \S+: out of memory: 400,000,0"):
        use(product(x)).block_until_ready()


MAKERS_OF_OPERANDS = """
    import xnp, xjit, xprim
    from xjit.dispatch import program

    program._MOST_UNAWAITED = 1 << 62  # as of what a device could have

    @xjit.jit
    def gram(x):
        return x @ x.T

    @xjit.jit
    def sums(x):
        return (xnp.cumsum(x @ x.T, 0) @ x).sum()

    @xjit.jit
    def corner(r):
        return r[:2, :2] + 1

    @xjit.jit
    def shifted(r):
        return r + 1

    x = xnp.ones((10**7, 1))
    for use in (lambda: corner(gram(x)), lambda: shifted(sums(x)), lambda: shifted(gram(x))):
        try:
            use().block_until_ready()
        except xprim.errors.OutOfMemoryError as error:
            print(error.args[0].splitlines()[0].partition(" out")[0],
                  *[line.strip() for line in str(error).splitlines() if " waits " in line
                    or " of this size " in line], sep=" ")
"""


def test_the_operand_that_failed_is_named_by_the_size_that_its_program_alone_allocates():
    assert run_in_new_process(MAKERS_OF_OPERANDS).splitlines() == [
        "gram: corner waits for its result",
        "sums: shifted waits for its result",  # of its temporaries
        "an operand of shifted: results or temporaries of this size have gram, shifted",
    ]


def test_a_size_that_xla_has_rounded_names_the_program_too(monkeypatch):
    sizes = {"loss": 3 * 2**29 + 1000, "norm": 2**30}
    monkeypatch.setattr(
        runtime, "programs_of_size", [lambda is_size: {n for n in sizes if is_size(sizes[n])}]
    )
    text = "Error dispatching computation: Out of memory while trying to allocate 1.50GiB."
    with pytest.raises(OutOfMemoryError, match=r"^loss: out of memory: about 1[.]50 GiB") as caught:
        runtime.fail("step", "it failed", RuntimeError(text))
    assert "step waits for its result" in str(caught.value)


@pytest.mark.parametrize(("text", "asked"), [
    ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 363.80TiB.", "about 363.80 TiB"),
    ("Out of memory while trying to allocate 1.5 GiB; ...", "about 1.5 GiB"),
    ("Out of memory allocating 1500 bytes.", "1,500 bytes (1.46 KiB)"),
    ("Out of memory: allocation of 2,048 bytes failed", "2,048 bytes (2 KiB)"),
    ("RESOURCE_EXHAUSTED: no words", "more than there is"),
])  # fmt: skip
def test_the_bytes_asked_for_are_those_that_xla_says(text, asked):
    with pytest.raises(OutOfMemoryError) as caught:
        runtime.fail("f", "it failed", RuntimeError(text))
    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"f: out of memory: {asked} w"), first


def test_the_error_of_a_program_names_the_function():
    @jit
    def gram(x):
        return x @ x.T

    with pytest.raises(OutOfMemoryError, match=r"^gram: out of memory: 400,000,000,000,000 bytes"):
        gram(xnp.ones((10**7, 1))).block_until_ready()


def test_what_cannot_be_placed_names_the_bytes():
    with pytest.raises(OutOfMemoryError, match=r"^put: out of memory: 400,000,000,000,000 bytes"):
        device_put(xnp.broadcast_to(xnp.ones(()), (10**7, 10**7)))


@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["compiled", "eager"])
def test_more_bytes_than_can_be_counted_are_refused(wrap):
    def make():
        return xnp.sin(xnp.zeros((2**40, 2**40)))

    text = (
        r"out of memory: 4,835,703,278,458,516,698,824,704 bytes were requested\."
        r"\n  got       .*float32\[1099511627776,1099511627776\]"
    )
    with pytest.raises(OutOfMemoryError, match=text):
        wrap(make)().block_until_ready()


@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["compiled", "eager"])
def test_empty_arrays_may_be_as_long_as_they_like(wrap):
    assert wrap(lambda x: x + 1)(xnp.zeros((0, 10**18))).shape == (0, 10**18)
    assert wrap(lambda x: x.T * 2)(xnp.zeros((0, 10**18))).shape == (10**18, 0)
    assert wrap(lambda x: x.sum(1))(xnp.zeros((0, 10**18))).shape == (0,)
