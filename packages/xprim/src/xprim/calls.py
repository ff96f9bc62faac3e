"""Primitives that hold programs: where these are, the rules they share; the batch dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import compress
from typing import Any, TypeVar

from xprim import contracts
from xprim.config import state
from xprim.contracts import BatchAxis, Builder, ChecksHandle, JVPHandle, TransposeHandle
from xprim.derived_refs import RefCollector, UsedRef, read_refs, write_back_refs
from xprim.jaxpr import ClosedJaxpr, Equation, eval_closed
from xprim.jaxpr_passes import prune_dead_code
from xprim.primitive import Primitive, get_primitive
from xprim.rules import UNBOUNDED, DerivedRules, Linear, Zero, not_mapped

__all__ = [
    "BatchDimension", "bind_one", "Programs", "narrow_program", "run_call", "call_rules",
    "rules_of_program", "call_in_place", "nonzero", "where_true", "with_zeros",
    "all_to_front", "front_dims",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------- batch dimension
# Where a batch dimension is, and how it is moved: what batch rules of ordinary primitives need.
#
# `xbatch.batching` adds what transforms functions and programs, for the rules of calls;
# `extended` maps over the dimensions of an element with this part alone.


class BatchDimension:
    """An axis that is mapped over, as far as it concerns where its dimension is.

    Attributes:
      size: how many examples there are.
      name: the axis name that collectives use, or None.
      mesh_axes: the axes of a mesh that cut the dimension, where a program gives the shardings of
        values.
      sharding: the sharding of the dimension alone along explicit axes of a mesh, or None.
    """

    __slots__ = ("mesh_axes", "name", "size", "sharding")

    def __init__(
        self, size: int, name: Any = None, mesh_axes: tuple[Any, ...] = (), sharding: Any = None
    ) -> None:
        self.size = size
        self.name = name
        self.mesh_axes = mesh_axes
        self.sharding = sharding

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, name={self.name!r})"

    def to_front(self, x: Any, dim: Any) -> Any:
        """Return an operand with its batch dimension first; one that is not mapped is repeated."""
        if dim is not_mapped:
            return self.broadcast(x, 0)
        return self.move(x, dim, 0) if dim else x

    def to_back(self, x: Any, dim: Any) -> Any:
        """Return an operand with its batch dimension last; one that is not mapped is repeated."""
        if dim is not_mapped:
            return self.broadcast(x, x.aval.ndim)
        return self.move(x, dim, x.aval.ndim - 1)

    def move(self, x: Any, source: int, destination: int) -> Any:
        """Move a dimension of an array, the others staying in order."""
        if source == destination:
            return x
        order = [i for i in range(x.aval.ndim) if i != source]
        order.insert(destination, source)
        return bind_one("transpose", x, permutation=tuple(order))

    def broadcast(self, x: Any, dim: int = 0) -> Any:
        """Repeat an array that is not mapped along a new batch dimension at position `dim`."""
        shape = x.aval.shape
        kept = tuple([i for i in range(len(shape) + 1) if i != dim])
        whole = (*shape[:dim], self.size, *shape[dim:])
        return bind_one("broadcast_in_dim", x, shape=whole, broadcast_dimensions=kept)


def bind_one(name: str, x: Any, **params: Any) -> Any:
    """Apply the primitive of that name to one operand and return its one result."""
    return get_primitive(name).bind(x, **params)[0]


# ----------------------------------------------------------------------------------------- programs
# The programs that call-like primitives hold, and the rules that follow from where they stand.
#
# A call-like primitive says once which of its params are programs and which operands each takes.
# Operands stand in groups, whose sizes are numbers, params, or the rest:
#
#     call    {"jaxpr": ("operands",)}                    operands: the rest
#     cond    {"branches": ("operands",)}                 operands: one index, then the rest
#     scan    {"jaxpr": ("consts", "carry", "xs")}        num_stops, num_consts, num_carry, the rest
#     while   {"cond_jaxpr": ("cond_consts", "carry"),    cond_nconsts, body_nconsts, the rest
#              "body_jaxpr": ("body_consts", "carry")}
#
# The results of a program are those of the primitive, in order; a carried group stands first among
# them, and what a round gives for it enters the next one. From that follow the effects of the
# primitive, what of it is left when results are unused, which result depends on which operand, its
# form with checks inside, and how it runs equation by equation.

Params = dict[str, Any]
Entries = Callable[[Sequence[Any], Sequence[Any], Any, Callable[[Any], Any]], tuple[Any, Any]]
Derived = Callable[[str, Params, Entries], Params]
Scope = Callable[[Params], AbstractContextManager[Any]]


class Programs(DerivedRules):
    """The rule of kind `programs`: where the programs of a primitive are, and what they take.

    Args:
      takes: for each param that holds a program, or a tuple of programs of which one runs, the
        groups of operands that it takes.
      operands: the groups in order, and the size of each: a number, the param that holds it (where
        that is not there, 0), or None for the rest. What no program takes the primitive reads
        itself.
      carry: the group that rounds of a loop pass on.
      test: the param whose program tells whether there is another round; its result is not a result
        of the primitive.
      narrows: whether results can be left out; not where rules of the user's stand for all of them.
      runs: `"inline"` for a plain call, whose equations may stand in its place; `"in_parts"` where
        they do so when a derivative rule passes primals and tangents to one call.
      unbounded: whether values alone say how many rounds there are.
      derived: `derived(kind, params, entries)` gives the params that differ for a derived call; see
        `xprim.calls.call_rules`.
      scope: `scope(params)` is the context in which the programs are transformed.
      **own: parts that the primitive gives itself in place of those that follow.

    Example:
      >>> from xprim import get_primitive
      >>> sorted(Programs({"jaxpr": ("xs",)}).of_primitive(get_primitive("custom_jvp_call")))
      ['checked', 'dce', 'effects']
    """

    __slots__ = (
        "carry", "derived", "narrows", "operands", "runs", "scope", "takes", "test", "unbounded"
    )  # fmt: skip

    def __init__(
        self, takes: Mapping[str, tuple[str, ...]], *,
        operands: Mapping[str, int | str | None] | None = None, carry: str = "", test: str = "",
        narrows: bool = True, runs: str = "", unbounded: bool = False,
        derived: Derived | None = None, scope: Scope | None = None, **own: Any,
    ) -> None:  # fmt: skip
        super().__init__(**own)
        self.takes = takes
        self.operands = operands or dict.fromkeys(next(iter(takes.values()), ()))
        self.carry = carry
        self.test = test
        self.narrows = narrows
        self.runs = runs
        self.unbounded = unbounded
        self.derived = derived
        self.scope = scope or _no_scope

    def of_primitive(self, primitive: Any) -> dict[str, Any]:
        """Return the rules that follow for a primitive, by name."""
        found: dict[str, Any] = {}
        if self.takes:
            found["effects"] = self._effects_rule()
        if self.takes and self.narrows:
            found |= {"dce": self._dce, "checked": self._derive_checked_rule(primitive)}
        if self.runs:
            (param,) = self.takes
            found |= {self.runs: _running(param), "sums_later": True}
        if self.unbounded:
            found["rounds"] = UNBOUNDED
        return found | self.parts

    def spans(self, params: Params, count: int) -> dict[str, range]:
        """Return the numbers of the operands of each group."""
        spans, start = {}, 0
        for name, size in self.operands.items():
            length = params.get(size, 0) if isinstance(size, str) else size
            stop = count if length is None else start + length
            spans[name] = range(start, stop)
            start = stop
        return spans

    def decision(self, params: Params, avals: Sequence[Any]) -> Any:
        """Return the abstract value that decides which programs run, or None.

        It is the result of the test of a loop, or the operand by which one of several programs is
        chosen; nothing decides where all programs run, a fixed number of times.
        """
        if self.test:
            return params[self.test].out_avals[0]
        if not any(type(params[name]) is tuple for name in self.takes):
            return None
        spans = self.spans(params, len(avals))
        taken = {k for groups in self.takes.values() for k in _joint(spans, groups)}
        return next((a for k, a in enumerate(avals) if k not in taken), None)

    def _effects_rule(self) -> Callable[..., frozenset[Any]]:
        names = tuple(self.takes)

        def effects(**params: Any) -> frozenset[Any]:
            found: frozenset[Any] = frozenset()
            for name in names:
                for program in _each(params[name]):
                    if type(program) is ClosedJaxpr:  # while all is evaluated it may be a function
                        found |= program.effects
            return found

        return effects

    # --- dead code -----------------------------------------------------------------------------

    def _dce(self, used: Sequence[bool], eqn: Equation) -> Equation:
        """Keep the results that are used or carried to what is used, and what they need."""
        params, spans = eqn.params, self.spans(eqn.params, len(eqn.inputs))
        places = {name: _joint(spans, groups) for name, groups in self.takes.items()}
        taken = set().union(*places.values())
        needed, live = [k not in taken for k in range(len(eqn.inputs))], list(used)
        while self._add_needed(needed, live, params, places, spans.get(self.carry, ())):
            pass

        def smaller(name: str) -> Any:
            keep, wanted = [needed[k] for k in places[name]], self._select_wanted(name, live)
            return _of_each(params[name], lambda program: narrow_program(program, wanted, keep))

        sizes = {size: spans[group] for group, size in self.operands.items() if size in params}
        changed = {size: sum([needed[k] for k in span]) for size, span in sizes.items()}
        changed |= {name: smaller(name) for name in places}
        if self.derived is not None:
            changed = self.derived(
                "dce", params,
                lambda ins, outs, *_: (list(compress(ins, needed)), list(compress(outs, live))),
            ) | changed  # fmt: skip
        return eqn.replace(
            inputs=list(compress(eqn.inputs, needed)),
            outputs=list(compress(eqn.outputs, live)),
            params=params | changed,
        )

    def _add_needed(
        self, needed: list[bool], live: list[bool], params: Params,
        places: Mapping[str, Sequence[int]], carried: Sequence[int],
    ) -> bool:  # fmt: skip
        """Add the operands that live results need; return whether a carried one is live by that."""
        for name, numbers in places.items():
            for program in _each(params[name]):
                wanted = self._select_wanted(name, live)
                for k in compress(numbers, find_needed_arguments(program, wanted)):
                    needed[k] = True
        before = list(live)
        for result, k in enumerate(carried):
            live[result] = needed[k] = live[result] or needed[k]
        return live != before

    def _select_wanted(self, name: str, live: Sequence[bool]) -> Sequence[bool]:
        return (True,) if name == self.test else live

    # --- checks --------------------------------------------------------------------------------

    def _derive_checked_rule(self, primitive: Any) -> Callable[..., Any]:
        """Return the rule that passes the state through: in front of what is carried, or of all."""

        def check(handle: ChecksHandle, state: Any, operands: Any, **params: Any) -> Any:
            new, spans = len(state), self.spans(params, len(operands))
            changed: Params = {}
            with self.scope(params):
                for name, groups in self.takes.items():
                    before = groups[: groups.index(self.carry)] if self.carry else ()
                    after = sum([len(spans[group]) for group in before])
                    changed[name] = _of_each(params[name], partial(handle.program, after=after))
            size = self.operands.get(self.carry)
            if isinstance(size, str):
                changed[size] = params[size] + new
            at = spans[self.carry or next(iter(self.takes.values()))[0]].start
            if self.derived is not None:
                changed = self.derived(
                    "checked", params,
                    lambda ins, outs, entry, _: (
                        [*ins[:at], *[entry] * new, *ins[at:]], [*[entry] * new, *outs]
                    ),
                ) | changed  # fmt: skip
            results = primitive.bind(*operands[:at], *state, *operands[at:], **params | changed)
            return results[:new], results[new:]

        return check


def _no_scope(_params: Params) -> AbstractContextManager[Any]:
    return nullcontext()


def _joint(spans: Mapping[str, range], groups: Sequence[str]) -> list[int]:
    return [k for group in groups for k in spans[group]]


def _each(value: Any) -> Sequence[Any]:
    return value if type(value) is tuple else (value,)


def _of_each(value: Any, change: Callable[[Any], Any]) -> Any:
    return tuple(map(change, value)) if type(value) is tuple else change(value)


# --- programs with fewer arguments and results ---------------------------------------------------


def narrow_program(
    closed: ClosedJaxpr, results: Sequence[bool], arguments: Sequence[bool]
) -> ClosedJaxpr:
    """Return the program with some results and arguments only; these must be all it needs."""
    return closed.derived(_narrow, tuple(results), tuple(arguments))


def _narrow(closed: ClosedJaxpr, results: Sequence[bool], arguments: Sequence[bool]) -> ClosedJaxpr:
    exact, needed = prune_dead_code(closed, results)
    if needed == list(arguments):
        return exact
    jaxpr = exact.jaxpr
    invars = list(compress(closed.jaxpr.invars, arguments))
    return ClosedJaxpr(jaxpr.replace(invars=invars), exact.consts)


def find_needed_arguments(closed: ClosedJaxpr, results: Sequence[bool]) -> list[bool]:
    """Return for each argument whether some of the results depend on it."""
    return prune_dead_code(closed, results)[1]


# --- programs that run ---------------------------------------------------------------------------


def run_call(call: Callable[..., Sequence[Any]] | ClosedJaxpr, *args: Any) -> tuple[Any, ...]:
    """Run what a param holds that is a program or, while all is evaluated, a function."""
    return tuple(eval_closed(call, *args) if isinstance(call, ClosedJaxpr) else call(*args))


def _running(param: str) -> Callable[..., tuple[Any, ...]]:
    """Return the rule that runs the program of a param equation by equation."""

    def run(*operands: Any, **params: Any) -> tuple[Any, ...]:
        return run_call(params[param], *operands)

    return run


# ----------------------------------------------------------------------------------------- calls
# Primitives that call a program: the rules they share, and the bookkeeping of tangents.
#
# A call holds a closed jaxpr in its param `jaxpr`. Whatever is done to it, the pattern is one:
# ask the transformation's handle for the derived program, call that, put the results where they
# belong. `call_rules(name)` are these rules, so the owner of a call (`jit`, `checkpoint`, `pmap`,
# a stranger) writes what is its own: evaluation, lowering, and the params of the derived calls.
# What is a program to all but one transformation, as functions with rules of their own are, takes
# `rules_of_program`.
#
#     kind        operands                            results
#     jvp         primals, nonzero tangents           results, their nonzero tangents
#     primal      primals                             results, residuals
#     linear      residuals, nonzero tangents         nonzero tangents of the results
#     transpose   known operands, given cotangents    nonzero cotangents of the linear operands
#     batched     the same, some with a batch dimension in front
#     checked     the state of checks, operands       the state, results
#     dce         what is needed                      what is used

T = TypeVar("T")
# What the program of a call takes.
_OPERANDS = {"jaxpr": ("operands",)}


def _same_params(kind: str, params: Params, entries: Entries) -> Params:
    return _NO_CHANGES


# Stays empty.
_NO_CHANGES: Params = {}


def call_rules(
    name: str, *, derived: Derived = _same_params, scope: Scope | None = None, runs: str = "",
    **own: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return the rules of a primitive that calls its param `jaxpr` with its operands.

    Args:
      name: of the primitive.
      derived: `derived(kind, params, entries)` gives the params of a derived call that differ from
        those of the call, but for `jaxpr`; without it none does. A primitive with something in its
        params for each operand and result asks `entries(of_operands, of_results, residual,
        batched)` what the derived call has: `residual` is the entry of a new value,
        `batched(entry)` that of a value that gets a batch dimension in front.
      scope: `scope(params)` is the context in which its program is transformed, if it needs one.
      runs: see `xprim.calls.Programs`.
      **own: rules of the primitive's own, beside or in place of the shared ones.

    Example:
      >>> from xprim import Primitive, as_array, get_primitive, make_jaxpr
      >>> twice_p = Primitive("example_call", call_like=True, **call_rules("example_call"))
      >>> closed = make_jaxpr(lambda x: x)(1.0)
      >>> float(twice_p.bind(as_array(3.0), jaxpr=closed)[0])
      3.0
    """
    rules = _CallRules(name, derived, scope)
    shared = {
        **{kind: _OF_JAXPR[kind] for kind in ("shape", "numpy", "stablehlo")},
        "jvp": rules.jvp, "linearize": rules.linearize, "transpose": rules.transpose,
        "batch": rules.batch,
        "programs": Programs(_OPERANDS, runs=runs, derived=derived, scope=scope),
    }  # fmt: skip
    return shared | own


def rules_of_program(param: str, **more: Any) -> dict[str, Any]:
    """Return the rules of a primitive that is a program unless a transformation needs its rule.

    A function with a rule of its own for one transformation is, to all others, the program that it
    is written as: evaluated, compiled and transposed as that.

    Args:
      param: where the primitive holds its program, which takes the operands as they are. While
        functions are evaluated the param may hold one, of flat lists of arrays, in its place.
      **more: what `xprim.calls.Programs` takes besides.

    Example:
      >>> sorted(rules_of_program("call"))
      ['numpy', 'programs', 'shape', 'stablehlo', 'transpose']
    """

    def shape(*_avals: Any, **params: Any) -> Any:
        return params[param].out_avals

    def numpy(*operands: Any, **params: Any) -> tuple[Any, ...]:
        return run_call(params[param], *operands)

    def stablehlo(b: Builder, operands: Any, _ins: Any, _outs: Any, **params: Any) -> Any:
        return b.inline(params[param], operands)

    def transpose(handle: TransposeHandle, cts: Any, *operands: Any, **params: Any) -> Any:
        closed = params[param]
        results = iter(handle.backward_pass(closed.jaxpr, closed.consts, operands, cts))
        return [next(results) if type(x) is Linear else Zero(x.aval) for x in operands]

    programs = Programs({param: ("operands",)}, narrows=False, **more)
    return {"shape": shape, "numpy": numpy, "stablehlo": stablehlo, "transpose": transpose,
            "programs": programs}  # fmt: skip


def call_in_place(*operands: Any, jaxpr: ClosedJaxpr, **_params: Any) -> tuple[Any, ...]:
    """Run the program of a call equation by equation: its `numpy` rule."""
    return tuple(eval_closed(jaxpr, *operands))


_OF_JAXPR = rules_of_program("jaxpr") | {"numpy": call_in_place}


class _CallRules:
    """The rules that transform the program of a call and call what comes of it."""

    __slots__ = ("derived", "name", "primitive", "scope")

    def __init__(self, name: str, derived: Derived, scope: Scope | None) -> None:
        self.name = name
        self.derived = derived
        self.scope = scope
        self.primitive: Primitive | None = None  # is made with these rules

    def transform(self, transform: Callable[..., Any], params: Params, *args: Any) -> Any:
        """Return the program that a method of a handle derives, and the references that it uses."""
        if self.scope is None:  # as `derive_with_refs` does, in the same frame
            now = state.__dict__
            outer = now["derived_refs"]
            now["derived_refs"] = collector = RefCollector()
            try:
                return transform(*args), collector.found
            finally:
                now["derived_refs"] = outer
        with self.scope(params):
            return transform(*args), ()  # what each device or copy would write is not known

    def bind(
        self, kind: str, jaxpr: ClosedJaxpr, operands: Sequence[Any], params: Params,
        entries: Entries, refs: Sequence[UsedRef] = (),
    ) -> Sequence[Any]:  # fmt: skip
        """Call a derived program, and write what it gives for the references that it writes."""
        primitive = self.primitive
        if primitive is None:
            primitive = self.primitive = get_primitive(self.name)
        if refs:
            operands = [*operands, *read_refs(refs)]
            entries = _with_entries_of(refs, entries)
        changed = {"jaxpr": jaxpr, **params, **self.derived(kind, params, entries)}
        results = state.trace.process(primitive, tuple(operands), changed)
        return write_back_refs(refs, results) if refs else results

    def jvp(self, handle: JVPHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
            **params: Any) -> Any:  # fmt: skip
        """Call the forward derivative."""
        mask = nonzero(tangents)
        (forward, mask_out), refs = self.transform(handle.jvp_jaxpr, params, jaxpr, mask)
        results = self.bind(
            "jvp", forward, [*primals, *where_true(tangents, mask)], params,
            lambda ins, outs, *_: (
                [*ins, *where_true(ins, mask)], [*outs, *where_true(outs, mask_out)]
            ),
            refs,
        )  # fmt: skip
        count = len(mask_out)
        return results[:count], with_zeros(handle, results[:count], results[count:], mask_out)

    def linearize(self, handle: contracts.LinearizeHandle, primals: Any, tangents: Any, *,
                  jaxpr: ClosedJaxpr, **params: Any) -> Any:  # fmt: skip
        """Call the primal part now, and the linear part with its residuals on the tape."""
        mask = nonzero(tangents)
        split, refs = self.transform(handle.linearize_jaxpr, params, jaxpr, mask)
        count, mask_out = split.num_results, split.nonzero_out
        num_new = len(split.primal.out_avals) - count - sum(used.is_written for used in refs)
        values = read_refs(refs)
        results = self.bind(
            "primal", split.primal, primals, params,
            lambda ins, outs, residual, _: (ins, [*outs, *[residual] * num_new]), refs,
        )  # fmt: skip
        outs = results[:count]
        out_dots: Sequence[Any] = ()
        if any(mask_out):
            out_dots = self.bind(
                "linear", split.linear,
                [*split.residuals([*primals, *values], results), *where_true(tangents, mask)],
                params,
                lambda ins, outs, residual, _: (
                    [*split.residuals([*ins, *[residual] * len(values)],
                                      [*outs, *[residual] * num_new]), *where_true(ins, mask)],
                    where_true(outs, mask_out),
                ),
            )  # fmt: skip
        return outs, with_zeros(handle, outs, out_dots, mask_out)

    def transpose(self, handle: TransposeHandle, cts: Any, *operands: Any, jaxpr: ClosedJaxpr,
                  **params: Any) -> Any:  # fmt: skip
        """Call the transposed program."""
        linear = [type(x) is Linear for x in operands]
        known, given = [not lin for lin in linear], nonzero(cts)
        (backward, mask_out), refs = self.transform(
            handle.transpose_jaxpr, params, jaxpr, linear, given
        )
        results = self.bind(
            "transpose", backward, [*where_true(operands, known), *where_true(cts, given)], params,
            lambda ins, outs, *_: (
                [*where_true(ins, known), *where_true(outs, given)],
                where_true(where_true(ins, linear), mask_out),
            ),
            refs,
        )  # fmt: skip
        found, present = iter(results), iter(mask_out)
        return tuple([
            next(found) if lin and next(present) else Zero(x.aval)
            for x, lin in zip(operands, linear, strict=True)
        ])  # fmt: skip

    def batch(self, axis: BatchAxis, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr,
              **params: Any) -> Any:  # fmt: skip
        """Call the program for whole batches."""
        values, mapped = all_to_front(axis, operands, dims)
        (batched, mapped_out), refs = self.transform(axis.batch_jaxpr, params, jaxpr, mapped, False)
        results = self.bind(
            "batched", batched, values, params,
            lambda ins, outs, _, shift: (
                _change_entries(shift, ins, mapped), _change_entries(shift, outs, mapped_out)
            ),
            refs,
        )  # fmt: skip
        return results, front_dims(mapped_out)


def _with_entries_of(refs: Sequence[UsedRef], entries: Entries) -> Entries:
    """Return the entries of a call that has the values of references beside."""
    written = sum(used.is_written for used in refs)

    def add_ref_entries(ins: Any, outs: Any, residual: Any, batched: Any) -> tuple[Any, Any]:
        own_ins, own_outs = entries(ins, outs, residual, batched)
        return [*own_ins, *[residual] * len(refs)], [*own_outs, *[residual] * written]

    return add_ref_entries


def _change_entries(
    change: Callable[[Any], Any], entries: Sequence[Any], mask: Sequence[bool]
) -> list[Any]:
    return [change(e) if m else e for e, m in zip(entries, mask, strict=True)]


# --- bookkeeping -------------------------------------------------------------------------------


def nonzero(tangents: Sequence[Any]) -> list[bool]:
    """Return for each tangent or cotangent whether it is not a `Zero`."""
    return [type(t) is not Zero for t in tangents]


def where_true(values: Sequence[T], mask: Sequence[bool]) -> list[T]:
    """Return the values where the mask holds."""
    return list(compress(values, mask))


def with_zeros(
    handle: JVPHandle, outs: Sequence[Any], dots: Sequence[Any], mask: Sequence[bool]
) -> tuple[Any, ...]:
    """Return a tangent for each result: the next of `dots` where the mask holds, else a `Zero`."""
    given = iter(dots)
    return tuple([
        next(given) if m else Zero(handle.tangent_aval(out))
        for out, m in zip(outs, mask, strict=True)
    ])  # fmt: skip


def all_to_front(
    axis: BatchAxis, operands: Sequence[Any], dims: Sequence[Any]
) -> tuple[list[Any], list[bool]]:
    """Return operands with their batch dimension in front, and for each whether it has one."""
    mapped = [d is not not_mapped for d in dims]
    values = [axis.to_front(x, d) if m else x
              for x, d, m in zip(operands, dims, mapped, strict=True)]  # fmt: skip
    return values, mapped


def front_dims(mapped: Sequence[bool]) -> tuple[Any, ...]:
    """Return the batch dimensions of results: in front where they are mapped."""
    return tuple([0 if m else not_mapped for m in mapped])


# What 0.2.0 calls them, for releases of siblings whose ranges have this one.
taken, fronts = where_true, all_to_front
