"""Steps: what a tape holds for a primitive whose derivative is known as functions of ndarrays.

While everything is evaluated at once, differentiating a primitive by its rules means a dozen calls
of Python around each call of NumPy. A *plan* is what the rules amount to for operands of given
abstract values, written out: one function for the primal and its residuals, one for the way back,
which adds to the cotangents that are there. A `Step` is an equation of the tape that has a plan.

Plans are made from the programs that the rules themselves write, in the same order, so results are
the same to the bit. A primitive gets its plan when it was differentiated several times.

Neighbours: `linearize` makes plans and records steps, `transpose` runs them backwards;
`xnp.numpy.dispatch` has the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xprim import ConcreteArray, Equation, Jaxpr, Literal, Primitive, ShapedArray, Var

_MAX_BACKWARD = 64  # functions of one plan


class Plan:
    """How a primitive is evaluated and differentiated, for operands of given abstract values.

    Attributes:
      run: takes the elements of the operands; returns those of the results and of new residuals.
      avals_out: the abstract values of the results.
      dots_out: for each result, the number of its tangent among the arguments, then the results,
        of `linear`; None for zero.
      linear: the derivative; its constant variables stand for the residuals.
      picked: for each residual, its place among the constants, the operands and what `run` returns.
      constants: residuals that do not depend on the operands.
      backward: the functions for the way back by the abstract values of the cotangents.
    """

    __slots__ = ("avals_out", "backward", "constants", "dots_out", "linear", "picked", "run")

    def __init__(
        self, run: Callable[..., Any], avals_out: tuple[ShapedArray, ...], dots_out: Sequence[Any],
        linear: Jaxpr, picked: Sequence[int], constants: Sequence[Any],
    ) -> None:  # fmt: skip
        self.run = run
        self.avals_out = avals_out
        self.dots_out = dots_out
        self.linear = linear
        self.picked = picked
        self.constants = constants
        self.backward: dict[Any, Any] = {}

    def remember_backward(self, key: tuple[Any, ...], found: Any) -> Any:
        """Keep the function for the way back from cotangents of these types, and return it."""
        if len(self.backward) >= _MAX_BACKWARD:
            self.backward.clear()
        self.backward[key] = found
        return found


class Step(Equation):
    """Stands on a tape for the equations from tangents to tangents that a plan has.

    Attributes:
      primitive: what was evaluated.
      inputs: the variables of the tangents of its operands, each once.
      outputs: the variables that it defines.
      plan: of the primitive.
      residuals: the elements of the residuals, an ndarray for each.
    """

    __slots__ = ("plan", "residuals")

    source = None  # for a tape that holds steps is run at once

    def __init__(
        self, primitive: Primitive, inputs: list[Var], outputs: list[Var], plan: Plan,
        residuals: list[Any],
    ) -> None:  # fmt: skip
        self.primitive = primitive
        self.inputs = inputs
        self.outputs = outputs
        self.plan = plan
        self.residuals = residuals

    def written_out(self) -> tuple[list[Equation], dict[Var, ConcreteArray]]:
        """Return plain equations that say the same, and the values of their constants."""
        linear = self.plan.linear
        atoms: dict[Any, Any] = dict(zip(linear.invars, self.inputs, strict=True))
        atoms.update(zip(linear.outvars, self.outputs, strict=True))
        values = {}
        for v, host in zip(linear.constvars, self.residuals, strict=True):
            value = ConcreteArray(host, v.aval)
            if v.aval.ndim:
                atoms[v] = Var(v.aval)
                values[atoms[v]] = value
            else:
                atoms[v] = Literal(value)
        eqns = []
        for eqn in linear.eqns:
            for v in eqn.outputs:
                if v not in atoms:
                    atoms[v] = Var(v.aval)
            inputs = [atoms.get(x, x) for x in eqn.inputs]
            eqns.append(eqn.replace(inputs=inputs, outputs=[atoms[v] for v in eqn.outputs]))
        return eqns, values


def with_steps_written_out(jaxpr: Jaxpr, residuals: Sequence[Any]) -> tuple[Jaxpr, Sequence[Any]]:
    """Return a tape and its constants with plain equations in place of steps."""
    eqns: list[Equation] = []
    constants: dict[Var, Any] = dict(zip(jaxpr.constvars, residuals, strict=True))
    for eqn in jaxpr.eqns:
        if type(eqn) is Step:
            plain, values = eqn.written_out()
            eqns += plain
            constants.update(values)
        else:
            eqns.append(eqn)
    return jaxpr.replace(constvars=list(constants), eqns=eqns), list(constants.values())
