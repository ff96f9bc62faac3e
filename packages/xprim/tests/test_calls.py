"""What follows from where the programs of a primitive are: fewer results, effects, parts."""

import pytest

from packages.xprim.tests.operations import noise, plus
from xprim import Eager, Operand, Primitive, make_jaxpr, remove_dead_code, undefined
from xprim.calls import Programs, find_needed_arguments
from xprim.errors import DuplicateRuleError
from xprim.jaxpr import map_programs, program_of_equation
from xprim.jaxpr_passes import operands_of_results
from xprim.rules import Checks, RuleParts, kinds

NONE = undefined("not needed here")
NO_RULES = {"shape": NONE, "numpy": NONE, "stablehlo": NONE, "jvp": NONE, "transpose": NONE,
            "batch": NONE}  # fmt: skip


def of_params(name, results, **more):
    """Return a primitive that only says what its types are and where its programs are."""
    return Primitive(name, **NO_RULES | {"shape": results}, call_like=True, **more)


rounds_p = of_params(
    "test_rounds",
    lambda *avals, body, **_: body.out_avals,
    programs=Programs(
        {"test": ("asked", "carry"), "body": ("consts", "carry", "rows")},
        operands={"asked": 1, "consts": "num_consts", "carry": "num_carry", "rows": None},
        carry="carry", test="test",
    ),
)  # fmt: skip
choice_p = of_params(
    "test_choice",
    lambda index, *avals, branches: branches[0].out_avals,
    programs=Programs({"branches": ("xs",)}, operands={"index": 1, "xs": None}),
)


def program(fun, count):
    return make_jaxpr(fun)(*[1.0] * count)


def loop(body, test, num_consts, num_carry, num_rows):
    count = 1 + num_consts + num_carry + num_rows
    params = {
        "test": program(test, 1 + num_carry), "num_consts": num_consts, "num_carry": num_carry,
        "body": program(body, num_consts + num_carry + num_rows),
    }  # fmt: skip
    return program_of_equation(rounds_p, program(lambda *xs: xs, count).in_avals, params)


def test_a_carried_value_stays_with_all_that_reaches_it_in_later_rounds():
    # a is made from b, b from c, c and d from themselves; one row and two consts
    def body(k, m, a, b, c, d, row):
        return plus(a, b), plus(b, c), plus(c, k), plus(d, m), row, d

    closed = loop(body, lambda asked, a, b, c, d: asked, 2, 4, 1)
    smaller, needed = remove_dead_code(closed.jaxpr, [True, *[False] * 5])
    assert needed == [True, True, False, True, True, True, False, False]  # asked, k, m, a-d, row
    (eqn,) = smaller.eqns
    assert (eqn.params["num_consts"], eqn.params["num_carry"]) == (1, 3)
    assert len(eqn.params["body"].in_avals) == 4 and len(eqn.params["body"].out_avals) == 3
    assert len(eqn.params["test"].in_avals) == 4


def test_what_the_test_of_a_loop_asks_for_stays():
    closed = loop(
        lambda k, a, b, c: (plus(a, k), b, c), lambda asked, a, b, c: plus(b, asked), 1, 3, 0
    )
    _, needed = remove_dead_code(closed.jaxpr, [False, False, True])
    assert needed == [True, False, False, True, True]


def test_results_of_a_loop_depend_on_what_their_rounds_read():
    closed = loop(lambda k, a, b: (plus(a, k), b), lambda asked, a, b: asked, 1, 2, 0)
    found = operands_of_results(closed.jaxpr.eqns[0])
    assert found == [{0, 1, 2}, {0, 3}]


def test_branches_keep_what_some_of_them_need_and_the_index():
    branches = (program(lambda x, y, z: (x, y), 3), program(lambda x, y, z: (z, y), 3))
    avals = program(lambda *xs: xs, 4).in_avals
    closed = program_of_equation(choice_p, avals, {"branches": branches})
    smaller, needed = remove_dead_code(closed.jaxpr, [True, False])
    assert needed == [True, True, False, True]
    assert [len(br.in_avals) for br in smaller.eqns[0].params["branches"]] == [2, 2]


def test_programs_with_fewer_results_are_made_once():
    branches = (program(lambda x, y: (x, y), 2), program(lambda x, y: (y, y), 2))
    avals = program(lambda *xs: xs, 3).in_avals
    closed = program_of_equation(choice_p, avals, {"branches": branches})
    one, other = [remove_dead_code(closed.jaxpr, [True, False])[0] for _ in range(2)]
    pairs = zip(one.eqns[0].params["branches"], other.eqns[0].params["branches"], strict=True)
    assert all(a is b for a, b in pairs)


def test_effects_are_those_of_all_programs():
    quiet, loud = program(lambda x: x, 1), program(lambda x: noise(x), 1)
    effects = choice_p.rules["effects"]
    assert effects(branches=(quiet, quiet)) == frozenset()
    assert effects(branches=(quiet, loud)) == loud.effects != frozenset()


def test_each_program_of_params_is_converted():
    one, two = program(lambda x: x, 1), program(lambda x: plus(x, x), 1)
    params = {"jaxpr": one, "branches": (one, two), "sizes": (1, 2), "name": "f"}
    found = map_programs(params, lambda closed: two)
    assert found == {"jaxpr": two, "branches": (two, two), "sizes": (1, 2), "name": "f"}


def test_a_part_that_is_given_by_its_name_comes_before_the_one_that_follows():
    own = of_params(
        "test_own_dce", NONE, dce=find_needed_arguments, programs=Programs({"jaxpr": ("xs",)})
    )
    assert own.rules["dce"] is find_needed_arguments
    inside = of_params(
        "test_own_checked",
        NONE,
        programs=Programs({"jaxpr": ("xs",)}, checked=find_needed_arguments),
    )
    assert inside.rules["checked"] is find_needed_arguments
    with pytest.raises(DuplicateRuleError, match="a rule of kind 'dce' exists already"):
        own.define("dce", find_needed_arguments)
    with pytest.raises(DuplicateRuleError, match="a rule of kind 'programs' exists already"):
        own.define("programs", Programs({"jaxpr": ("xs",)}))


def test_the_parts_of_a_kind_are_rules_by_their_own_names():
    cost, ufunc = (lambda *_: 1.0), (lambda *_: None)
    both = Primitive("test_parts", **NO_RULES, eager=Eager(cost, ufunc=ufunc),
                     checks=Checks(divisor=Operand(1)))  # fmt: skip
    assert both.rules["cost"] is cost and both.rules["ufunc"] is ufunc
    assert "eager" not in both.rules and "windows" not in both.rules
    alone = Primitive("test_first_part", **NO_RULES, eager=cost)
    assert alone.rules["cost"] is cost
    assert kinds["eager"].rules_among(both.rules) == {"cost": cost, "ufunc": ufunc}
    with pytest.raises(DuplicateRuleError, match="a rule of kind 'cost' exists already"):
        both.define("eager", Eager(cost))
    with pytest.raises(TypeError, match="unknown rule kind 'price'"):
        both.define("eager", RuleParts(price=cost))
