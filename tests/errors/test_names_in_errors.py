"""An error begins with the name of the function that was called, whichever found what is wrong."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import xnp
import xstack
from xprim import config
from xprim.errors import OutOfMemoryError
from xstack import lax, nn

X = xnp.ones((2, 3))
MODULES = {
    "xnp": xnp, "linalg": xnp.linalg, "fft": xnp.fft, "lax": lax, "nn": nn,
    "random": xstack.random, "image": xstack.image, "ops": xstack.ops,
    "special": xstack.scipy.special, "scipy.linalg": xstack.scipy.linalg,
    "signal": xstack.scipy.signal, "stats": xstack.scipy.stats, "ndimage": xstack.scipy.ndimage,
}  # fmt: skip
WRONG: tuple[tuple[str, Any], ...] = (
    ("axis", 99), ("axis", "a"), ("axes", (99,)), ("dimension", 99), ("dtype", "float7"),
    ("out", 3), ("where", "a"), ("keepdims", "k"), ("ddof", "a"), ("k", "a"), ("n", "a"),
    ("mode", "zzz"), ("method", "zzz"), ("shape", (-1,)), ("size", -1), ("lower", X),
    ("order", "Z"), ("s", (-1,)), ("rcond", "a"), ("offset", "a"), ("p", "a"), ("bins", -1),
    ("indices", "a"), ("weights", "a"), ("q", 7.0), ("num", -1), ("deg", -1), ("b", "a"),
    ("dimensions", (99,)), ("precision", "zzz"), ("initial", "a"), ("num_segments", -1),
)  # fmt: skip
COUNT = 850  # wrong calls at least: the net is as wide as it was


def errors_of(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of the errors of calls with one wrong argument, after that argument."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    for argument, value in WRONG:
        needed = [
            p
            for p in parameters.values()
            if p.default is p.empty and p.kind in (0, 1) and p.name != argument
        ]
        if argument in parameters:
            try:
                function(*[X] * max(1, len(needed)), **{argument: value})
            except Exception as error:  # of any kind, as users get it
                yield argument, str(error)


@functools.cache
def errors_in(module: str) -> tuple[tuple[str, str, str], ...]:
    """Return function, argument and text of all wrong calls of the functions of a module."""
    return tuple(
        (name, argument, text)
        for name in dir(MODULES[module])
        if callable(function := getattr(MODULES[module], name)) and not isinstance(function, type)
        for argument, text in errors_of(function)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES)
def test_an_error_begins_with_the_name_of_the_function_that_was_called(module: str) -> None:
    wrong = {}
    for name, argument, text in errors_in(module):
        names = {
            name,
            getattr(getattr(MODULES[module], name), "__name__", name),
        }  # `mod` is an alias
        label = re.match(r"([a-z][\w.]*): ", text)
        if label is not None and label[1].rpartition(".")[2] not in names:
            wrong[name, argument] = text
    assert wrong == {}


@pytest.mark.filterwarnings("ignore")
def test_the_net_of_wrong_calls_is_wide() -> None:
    assert sum(len(errors_in(module)) for module in MODULES) >= COUNT


def text_of(call: Callable[[], Any], kind: type[Exception] = ValueError) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value).splitlines()[0]


OUT_OF_BOUNDS = "axis 99 is out of bounds for an array of 2 dimensions."


def _counted(x: Any) -> Any:
    return xnp.count_nonzero(x, axis=99)


@pytest.mark.parametrize("called", [
    lambda: _counted(X),
    lambda: xstack.jit(_counted)(X),
    lambda: xstack.vmap(_counted)(xnp.ones((4, 2, 3))),
    lambda: xstack.jvp(_counted, (X,), (X,)),
    lambda: xstack.eval_shape(_counted, X),
    lambda: xnp.vectorize(_counted, signature="(n,m)->()")(X),
    lambda: lax.map(_counted, xnp.ones((4, 2, 3))),
    lambda: lax.cond(True, _counted, _counted, X),
], ids="eager jit vmap jvp eval_shape vectorize map cond".split())  # fmt: skip
def test_it_is_the_same_under_every_transformation(called: Callable[[], Any]) -> None:
    assert text_of(called) == f"count_nonzero: {OUT_OF_BOUNDS}"


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: xnp.bartlett(10**12), OutOfMemoryError,
     "bartlett: out of memory: 8,000,000,000,000 bytes (7.28 TiB) were requested."),
    (lambda: xnp.array_split(X, 10**12), OutOfMemoryError,
     "array_split: out of memory: more than there is was requested."),
    (lambda: xnp.concatenate([X], axis=10**30), OverflowError,
     "concatenate: Python int too large to convert to C long."),
    (lambda: xnp.frombuffer(bytes(16), count=7), ValueError,
     "frombuffer: buffer is smaller than requested size."),
    (lambda: xnp.bincount(xnp.arange(3), length=True), TypeError,
     "bincount: an integer is required."),
    (lambda: xnp.fft.fftn(X, s=3), TypeError,
     "fftn: s must be a sequence of integers or None, got an int."),
], ids="memory list overflow buffer integer sequence".split())  # fmt: skip
def test_what_python_or_numpy_refuse_has_the_name(
    call: Callable[[], Any], kind: type[Exception], text: str
) -> None:
    assert text_of(call, kind) == text


def test_what_a_function_of_the_user_calls_keeps_its_name() -> None:
    def mean_of(x: Any) -> Any:
        return xnp.sum(x, axis=99)

    for call in (
        lambda: xnp.apply_along_axis(lambda row: mean_of(X), 0, X),
        lambda: lax.map(lambda row: mean_of(X), X),
        lambda: xnp.piecewise(X, [X > 0], [lambda x: mean_of(X)]),
        lambda: xnp.fromfunction(lambda i: mean_of(X), (3,)),
    ):
        assert text_of(call) == f"sum: {OUT_OF_BOUNDS}"


def test_what_a_function_that_was_given_says_keeps_its_name() -> None:
    summed = functools.partial(xnp.sum, axis=99)
    for call in (
        lambda: lax.map(summed, xnp.ones((4, 2, 3))),
        lambda: xnp.apply_over_axes(lambda a, axis: xnp.sum(a, axis=99), X, 0),
        lambda: lax.cond(True, summed, summed, X),
        lambda: xstack.jit(summed)(X),
    ):
        assert text_of(call) == f"sum: {OUT_OF_BOUNDS}"


def test_labels_that_are_of_no_array_function_stay() -> None:
    text = text_of(lambda: xstack.grad(lambda x: x)(X), TypeError)
    assert text.startswith("grad: the function must return a scalar")
    text = text_of(lambda: xnp.mean("a"), TypeError)
    assert text == "mean: a str is not an array."


def test_what_waits_for_a_failed_operand_is_named_by_its_public_name(monkeypatch) -> None:
    monkeypatch.setattr("xjit.dispatch.program._MOST_UNAWAITED", 1 << 62)

    def gram(x: Any) -> Any:
        return x @ (x.T + 0)

    # A program over several devices that has no result is asked for its memory, too.
    mesh = xstack.make_mesh((len(xstack.devices()),), ("i",))
    over_devices = xstack.NamedSharding(mesh, xstack.P("i"))
    x = xstack.device_put(xnp.arange(8.0 * mesh.size), over_devices)
    xstack.jit(lambda x: xstack.debug.callback(lambda total: None, x.sum()))(x)

    large = xstack.jit(gram)(xnp.ones((10**7 + 24, 1)))  # a size of no other test
    with pytest.raises(OutOfMemoryError, match=r"^gram: out of memory") as caught:
        xnp.count_nonzero(large).item()
    assert "count_nonzero waits for its result" in str(caught.value)


def test_the_name_of_an_argument_of_the_inner_function_goes_with_it() -> None:
    assert text_of(lambda: xnp.cross(X, X, axis=99)) == f"cross: {OUT_OF_BOUNDS}"
    assert text_of(lambda: xnp.moveaxis(X, 99, 0)) == f"moveaxis: source: {OUT_OF_BOUNDS}"


def test_all_frames_are_shown_and_the_name_is_the_same_without_filtering() -> None:
    with config.traceback_filtering("off"):
        assert text_of(lambda: _counted(X)) == f"count_nonzero: {OUT_OF_BOUNDS}"
