import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from xprim import ShapedArray, ShapeDtypeStruct, avals, dtypes, shaped_array


def test_equal_abstract_values_are_the_same_object():
    a = ShapedArray((2, 3), "float32")
    assert a is ShapedArray([2, np.int64(3)], np.float32)
    assert a is shaped_array((2, 3), np.dtype("float32"))
    assert a is not ShapedArray((2, 3), "float32", weak_type=True)
    assert a is not ShapedArray((3, 2), "float32")
    assert (a.ndim, a.size) == (2, 6)
    assert ShapedArray((), "int8").size == 1


def test_interning_survives_pickle_and_updates():
    a = ShapedArray((4,), dtypes.bfloat16, weak_type=True)
    assert pickle.loads(pickle.dumps(a)) is a
    assert a.strong() is ShapedArray((4,), "bfloat16")
    assert a.strong().strong() is a.strong()
    assert a.strip_weak_type() is a.update_weak_type(False) is a.strong()
    assert a.strong().update_weak_type(True) is a
    assert a.update(shape=(5,)) is ShapedArray((5,), "bfloat16", True)
    assert a.update(dtype=np.dtype("f4"), weak_type=False) is ShapedArray((4,), "float32")


def test_unused_abstract_values_are_forgotten():
    # A shape that no other test has: bounded tables (shape rules, dispatch plans) keep what they
    # have met, so an abstract value in common use may live on.
    shape, dtype = (7, 11, 999_983), np.dtype("uint16")
    a = ShapedArray(shape, dtype)
    alive = weakref.ref(a)
    assert avals._interned[shape, dtype, False, None]() is a
    del a
    gc.collect()
    assert alive() is None, gc.get_referrers(alive())
    assert (shape, dtype, False) not in avals._interned
    assert ShapedArray(shape, dtype).size == 7 * 11 * 999_983


def test_threads_that_make_the_same_abstract_value_share_it():
    barrier, found = threading.Barrier(8), []

    def work():
        barrier.wait()
        for i in range(200):
            found.append((i, ShapedArray((i, 17), "float16")))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(a) for _, a in found}) == 200


def test_abstract_values_are_immutable_and_valid():
    a = ShapedArray((2,), "float32")
    with pytest.raises(AttributeError, match="ShapedArray: cannot set 'shape'"):
        a.shape = (3,)
    with pytest.raises(ValueError, match=r"shape: dimensions must not be negative, got \(2, -1\)"):
        ShapedArray((2, -1), "float32")
    with pytest.raises(TypeError):
        ShapedArray((2.5,), "float32")


def test_text_forms():
    a = ShapedArray((2, 3), "float32", weak_type=True)
    assert repr(a) == "ShapedArray(~float32[2,3])"
    assert a.str_short() == "f32[2,3]"
    assert a.str_short(short_dtypes=False) == "float32[2,3]"
    assert a.str_short(mesh_axis_types=True) == "f32[2,3]({})"
    assert ShapedArray((), dtypes.float0).str_long() == "float0[]"


class Somewhere:
    device_set = frozenset()

    def __repr__(self):
        return "somewhere"


def test_shape_dtype_struct_is_a_value():
    s = ShapeDtypeStruct((2, 3), "float32")
    assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert s == ShapeDtypeStruct((2, 3), np.float32) and hash(s) == hash(s.update())
    assert len({hash(ShapeDtypeStruct((2, n), np.float32)) for n in range(8)}) == 8
    assert s != ShapeDtypeStruct((2, 3), "float16") and s != "text"
    assert s.aval is ShapedArray((2, 3), "float32")
    assert (s.ndim, s.size, len(s)) == (2, 6, 2)
    weak = s.update(weak_type=True, sharding=Somewhere())
    assert repr(weak).endswith("weak_type=True, sharding=somewhere)")
    with pytest.raises(TypeError, match="unknown attribute 'colour'"):
        s.update(colour=1)
    with pytest.raises(ValueError, match=r"(?s)this is not a sharding.*got +'somewhere'"):
        s.update(sharding="somewhere")
    with pytest.raises(TypeError, match=r"len\(\) of unsized object: a 0-d ShapeDtypeStruct"):
        len(ShapeDtypeStruct((), "int32"))


def test_descriptions_are_found_again_in_a_table_where_no_array_of_their_type_lives():
    table = {ShapeDtypeStruct((n, 3), "float32"): n for n in range(40)}
    assert [table.get(ShapeDtypeStruct((n, 3), "float32")) for n in range(40)] == [*range(40)]
    kinds = [
        ShapeDtypeStruct((2, 3), "float32"), ShapeDtypeStruct((2, 4), "float32"),
        ShapeDtypeStruct((2, 3), "int32"), ShapeDtypeStruct((2, 3), "float32", weak_type=True),
    ]  # fmt: skip
    assert len({hash(kind) for kind in kinds}) == len(set(kinds)) == 4


def test_a_description_does_not_change_since_programs_are_found_by_it():
    s = ShapeDtypeStruct((2, 3), np.float32)
    with pytest.raises(AttributeError, match="attributes do not change, nor does shape") as error:
        s.shape = (3,)
    assert "update(shape=...)" in str(error.value)
    with pytest.raises(AttributeError, match="attributes stay, so does dtype"):
        del s.dtype
    assert copy.copy(s) == copy.deepcopy(s) == pickle.loads(pickle.dumps(s)) == s


def test_a_size_that_is_a_truth_is_the_number_for_all_that_follow():
    aval = shaped_array((True, 977, False), dtypes.int32)
    assert aval is shaped_array((1, 977, 0), dtypes.int32)
    assert [type(d) for d in aval.shape] == [int] * 3 and repr(aval.shape) == "(1, 977, 0)"
