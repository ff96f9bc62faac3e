"""Functions made at run time: their frames, lines and values."""

import traceback

import pytest

from xtree import boundaries as subject
from xtree.boundaries import boundaries
from xtree.generated_code import define_function


def test_a_text_sees_its_constants_and_nothing_else():
    constants = {"k": 2}
    double = define_function("f", "def f(x): return x * k", constants, home="sums.py")
    assert double(3) == 6
    assert constants == {"k": 2}
    other = define_function("f", "def f(x): return x * k", {}, home="sums.py")
    with pytest.raises(NameError):
        other(3)


def test_tracebacks_show_the_line_of_each_text():
    texts = ["def f(x):\n    return x / 0", "def f(x):\n    y = x\n    return x % 0"]
    functions = [define_function("f", text, {}, home="sums.py") for text in texts]
    for f, line, number in zip(functions, ["return x / 0", "return x % 0"], [2, 3], strict=True):
        with pytest.raises(ZeroDivisionError) as caught:
            f(1)
        frame = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert frame.filename.startswith("sums.py#f")
        assert (frame.line, frame.lineno) == (line, number)


def test_the_frame_of_a_written_boundary_shows_its_own_line(monkeypatch):
    monkeypatch.setattr(subject, "_leaving", [])  # `xprim` cuts such frames out

    def halves(x):
        return x / 0

    module = {"__name__": halves.__module__, "__all__": ["halves"], "halves": halves}
    boundaries(module, written=True)
    with pytest.raises(ZeroDivisionError) as caught:
        module["halves"](1)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in frames][1:] == ["bounded", "halves"]
    assert frames[1].line == "return _fun(a0, **_unknown) if _unknown else _fun(a0)"
