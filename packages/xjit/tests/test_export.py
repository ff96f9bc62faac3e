from __future__ import annotations

import collections
import hashlib
import struct

import numpy as np
import pytest

import xnp
import xtree
from packages.xjit.tests.exported_programs import FOLDER, PROGRAMS, called, expected, stored
from packages.xjit.tests.new_process import run_in_new_process
from xjit import debug, jit
from xjit.export import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from xjit.export.files import tree_form, tree_of_form
from xnp import lax
from xnp.refs import freeze, new_ref
from xprim import ZERO, Effect, Primitive, ShapeDtypeStruct, undefined

X = np.float32([1, 2, 3])


def doubled():
    return export(jit(lambda x: x * 2))(X)


def check_results(name, results):
    for got, want in zip(xtree.leaves(results), expected(name), strict=True):
        # two roundings of float32 in sums of 20 terms; LAPACK's own order of operations
        np.testing.assert_allclose(np.asarray(got, want.dtype), want, rtol=1e-5)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.bin")), ids=lambda f: f.stem)
def test_programs_that_earlier_versions_stored_are_read_and_run(file):
    name = file.stem.rpartition("_")[0]
    check_results(name, called(name, deserialize(file.read_bytes())))


def test_every_program_of_the_stored_ones_is_exported_and_runs_in_another_process():
    blobs = {name: stored(name) for name in PROGRAMS}
    for name, blob in blobs.items():
        check_results(name, called(name, deserialize(blob)))
    program = f"""
    import numpy as np
    from xjit.export import deserialize
    found = deserialize({blobs["loop"]!r})
    print([np.asarray(x).tolist() for x in found.call(np.int32(5), np.int32([0, 1, 2]))])
    """
    assert run_in_new_process(program) == "[5, [31, 63, 95]]"


def test_it_says_what_it_takes_and_gives():
    exported = export(jit(lambda x, *, k: {"a": x @ x, "b": k}))(X, k=np.int32(1))
    assert isinstance(exported, Exported) and exported.fun_name == "<lambda>"
    assert exported.in_tree == xtree.structure(((0,), {"k": 0}))
    assert [a.str_long() for a in exported.in_avals] == ["float32[3]", "int32[]"]
    assert exported.out_tree == xtree.structure({"a": 0, "b": 0})
    assert [a.str_long() for a in exported.out_avals] == ["float32[]", "int32[]"]
    assert exported.platforms == (default_export_platform(),) and exported.nr_devices == 1
    assert exported.module_kept_var_idx == (0, 1) and exported.has_vjp()
    assert "dot_general" in exported.mlir_module()
    assert "<lambda>" in repr(exported) and exported.in_shardings_jax() == (None, None)


def test_types_are_enough_and_weak_types_stay():
    exported = export(jit(lambda x: x + 1.0))(ShapeDtypeStruct((), np.float32, weak_type=True))
    again = deserialize(exported.serialize())
    assert again.in_avals == exported.in_avals and again.in_avals[0].weak_type
    assert again.call(2.0).aval.weak_type


def test_arguments_that_nothing_needs_are_left_out():
    exported = deserialize(export(jit(lambda x, y: y + 1))(X, X).serialize())
    assert exported.module_kept_var_idx == (1,)
    np.testing.assert_array_equal(exported.call(X, X), X + 1)


def test_it_is_called_in_compiled_functions_which_hold_it_once():
    exported = doubled()
    f = jit(lambda x: exported.call(exported.call(x)) + 1)
    np.testing.assert_array_equal(f(X), 4 * X + 1)
    assert f.lower(X).as_text().count("stablehlo.multiply") == 1


def test_functions_of_equal_names_do_not_meet():
    one, two = doubled(), export(jit(lambda x: x * 3 + np.arange(16.0, dtype=np.float32)[:3]))(X)
    both = export(jit(lambda x: one.call(x) - two.call(x)))(X)
    got = deserialize(both.serialize()).call(X)
    np.testing.assert_array_equal(got, -X - np.arange(3))


def test_functions_of_a_program_named_as_others_with_a_number_do_not_meet():
    def made(name, k):
        def f(x):
            return xnp.sin(x) + xnp.cos(x) * k + xnp.tanh(x)

        f.__name__ = name
        return jit(f)

    parts = [made("f", 1), made("f", 2), made("f_1", 3), made("f", 4), made("f_1", 5)]
    got = jit(lambda x: [p(x) for p in parts])(X)
    for k, each in enumerate(got, start=1):
        np.testing.assert_allclose(each, np.sin(X) + k * np.cos(X) + np.tanh(X), rtol=1e-5)


def test_a_program_is_written_for_each_platform():
    exported = export(
        jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)),
        platforms=("tpu", "cpu"),
    )(X)
    again = deserialize(exported.serialize())
    np.testing.assert_array_equal(again.call(X), X + 1)
    assert again.mlir_module() == again.mlir_module("tpu") != again.mlir_module("cpu")


def test_another_platform_is_refused_unless_that_check_is_off():
    with pytest.raises(ValueError, match=r"exported for platforms \('tpu',\), and not for 'cpu'"):
        export(jit(lambda x: x * 2), platforms=["tpu"])(X).call(X)
    off = export(jit(lambda x: x * 2), platforms=["tpu"],
                 disabled_checks=[DisabledSafetyCheck.platform()])(X)  # fmt: skip
    np.testing.assert_array_equal(deserialize(off.serialize()).call(X), 2 * X)
    with pytest.raises(ValueError, match=r"unknown platform.\n  got       platforms=\['abacus'\]"):
        export(jit(lambda x: x), platforms=["abacus"])


@pytest.mark.parametrize(("args", "text"), [
    ((), "must have the same pytree structure as those that it was exported for.\n  got "),
    ((np.float32([1, 2]),), "Shape mismatch for args[0].shape[0].\n  got       float32[2]\n"),
    ((np.float32(1),), "Rank mismatch for args[0].\n  got       float32[]\n"),
    ((np.int32([1, 2, 3]),), "Dtype mismatch for args[0].\n  got       int32[3]\n"),
])  # fmt: skip
def test_other_arguments_are_refused(args, text):
    with pytest.raises(ValueError) as caught:
        doubled().call(*args)
    assert text in str(caught.value)


def test_what_means_nothing_elsewhere_is_refused():
    def printing(x):
        debug.print("{}", x)
        return x

    ordered_p = Primitive(
        "test_export_ordered", shape=lambda a: (a,), numpy=lambda a: (a,), jvp=ZERO,
        stablehlo=lambda b, operands, *_: operands, transpose=undefined("none"),
        batch=undefined("none"), effects=lambda: frozenset([Effect("sorting")]),
    )  # fmt: skip
    for fun, text in [
        (jit(printing), "calls Python functions"), (printing, "must be the result of `jit`"),
        (jit(lambda x: ordered_p.bind(xnp.asarray(x))[0]), "effects in an order"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=text) as caught:
            export(fun)(X)
        assert isinstance(caught.value, NotImplementedError) == ("Python" in text)


def test_references_are_refused():
    total = new_ref(1.0)

    def write(x):
        total[...] += x

    functions = (write, lambda x: total[...] + x, lambda x: lax.cond(x > 0, write, write, x))
    for fun, argument in [*[(f, 1.0) for f in functions], (lambda ref: ref[...], total)]:
        with pytest.raises(NotImplementedError, match="uses references, which are places"):
            export(jit(fun))(argument)
    assert float(total[...]) == 1.0

    def inside(x):
        ref = new_ref(x)
        ref[...] *= x
        return freeze(ref)

    assert float(deserialize(export(jit(inside))(3.0).serialize()).call(3.0)) == 9.0


def test_functions_of_the_family_are_exported_as_they_are():
    exported = export(xnp.sin)(X)
    np.testing.assert_array_equal(exported.call(X), jit(xnp.sin)(X))
    assert exported.fun_name == "sin"
    assert exported.in_shardings_hlo == exported.out_shardings_hlo == (None,)


def test_unordered_effects_are_kept():
    tick_p = Primitive(
        "test_export_tick", shape=lambda a: (a,), numpy=lambda a: (a,), jvp=ZERO,
        stablehlo=lambda b, operands, *_: operands, transpose=undefined("none"),
        batch=undefined("none"), effects=lambda: frozenset([Effect("tick", ordered=False)]),
    )  # fmt: skip
    exported = export(jit(lambda x: tick_p.bind(xnp.asarray(x))[0]))(X)
    again = deserialize(exported.serialize())
    assert again.unordered_effects == (Effect("tick", ordered=False),)
    traced = jit(lambda x: (again.call(x), 0)[1]).trace(X)
    assert "tick" in {str(e) for e in traced.jaxpr.effects}


def test_routines_that_may_go_away_are_refused_unless_allowed():
    custom_p = Primitive(
        "test_export_custom", shape=lambda a: (a,), numpy=lambda a: (a,), jvp=ZERO,
        stablehlo=lambda b, operands, avals, _: b.op(
            "stablehlo.custom_call", operands, avals, avals, 'call_target_name = "my_routine"'
        ),
        transpose=undefined("none"), batch=undefined("none"),
    )  # fmt: skip
    f = jit(lambda x: custom_p.bind(xnp.asarray(x))[0])
    with pytest.raises(ValueError, match=r"may not have.\n  got       my_routine\n"):
        export(f)(X)
    allowed = DisabledSafetyCheck.custom_call("my_routine")
    again = deserialize(export(f, disabled_checks=[allowed])(X).serialize())
    assert again.disabled_safety_checks == (allowed,) and "my_routine" in again.mlir_module()
    assert allowed.is_custom_call() == "my_routine" and allowed != DisabledSafetyCheck.platform()


def test_bytes_that_are_cut_off_or_changed_are_refused_wherever_it_is():
    blob = bytes(doubled().serialize())
    for place in range(0, len(blob), 7):
        with pytest.raises(ValueError, match=r"^deserialize: "):
            deserialize(blob[:place])
        changed = bytearray(blob)
        changed[place] ^= 4
        with pytest.raises(ValueError, match=r"^deserialize: "):
            deserialize(changed)


def test_foreign_and_newer_bytes_are_refused_with_a_sentence():
    blob = bytes(doubled().serialize())
    with pytest.raises(ValueError, match="not the bytes of an exported program"):
        deserialize(b"PK\x03\x04")
    with pytest.raises(ValueError, match=r"newer version of xjit.\n  got       version 2 "):
        deserialize(blob[:14] + struct.pack("<I", 2) + blob[18:])
    rest = blob[50:].replace(b'"calling_convention": 1', b'"calling_convention": 7')
    with pytest.raises(ValueError, match="got       calling convention 7"):
        deserialize(blob[:18] + hashlib.sha256(rest).digest() + rest)
    with pytest.raises(TypeError, match="an exported program is bytes"):
        deserialize("text")


def test_a_derivative_that_nobody_has_is_refused():
    again = deserialize(doubled().serialize())
    assert not again.has_vjp()
    with pytest.raises(ValueError, match=r"was not stored.\n  hint      serialize\(vjp_order=1\)"):
        again.vjp()
    with pytest.raises(ValueError, match="vjp_order counts derivatives"):
        doubled().serialize(vjp_order=-1)


Point = collections.namedtuple("Point", "x y")


class Pair:
    def __init__(self, a, b, word):
        self.a, self.b, self.word = a, b, word


def test_classes_of_ones_own_are_stored_under_the_name_they_register():
    with pytest.raises(ValueError, match="how Point is stored"):
        tree_form(xtree.structure(Point(1, 2)))
    register_namedtuple_serialization(Point, serialized_name="test.Point")
    with pytest.raises(
        ValueError, match=r"Pair is not a pytree node.\n  hint      call register_py"
    ):
        register_pytree_node_serialization(
            Pair, serialized_name="test.Pair", serialize_auxdata=str.encode,
            deserialize_auxdata=bytes.decode,
        )  # fmt: skip
    xtree.register_pytree_node(
        Pair, lambda p: ((p.a, p.b), p.word), lambda word, ab: Pair(*ab, word)
    )
    register_pytree_node_serialization(
        Pair, serialized_name="test.Pair", serialize_auxdata=str.encode,
        deserialize_auxdata=bytes.decode,
    )  # fmt: skip
    ordered = collections.OrderedDict(b=1, a=2)
    for tree in (Point(1, (2, [3])), Pair(1, {"k": None}, "word"), ordered, {1: 2, 3: ()}, 5):
        treedef = xtree.structure(tree)
        assert tree_of_form(tree_form(treedef)) == treedef
    with pytest.raises(ValueError, match="Point is registered already"):
        register_namedtuple_serialization(Point, serialized_name="test.Point2")
    with pytest.raises(ValueError, match=r"'test[.]Point' stands for another class"):
        register_namedtuple_serialization(
            collections.namedtuple("Other", "x"), serialized_name="test.Point"
        )
    with pytest.raises(ValueError, match="stored as 'nobody' is not known here"):
        tree_of_form(["node", "nobody", "", []])
    with pytest.raises(ValueError, match="a key of a dict cannot be stored"):
        tree_form(xtree.structure({(1, 2): 3}))


def test_a_namedtuple_is_found_again_although_its_fields_moved():
    place = collections.namedtuple("Place", "x y")
    register_namedtuple_serialization(place, serialized_name="test.Place")
    assert tree_of_form(["node", "test.Place", "WyJ5IiwgIngiXQ==", ["*", ["none"]]]) == (
        xtree.structure(place(None, 1))
    )
