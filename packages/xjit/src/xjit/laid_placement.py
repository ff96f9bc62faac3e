"""The placement of programs whose arguments or results lie in memory in orders of their own.

A program on a device, or over a mesh, takes and gives arrays whose dimensions lie in the order of
NumPy. `Laid` is the same placement for others: its text names the orders, arguments that lie
otherwise are turned on their way, and the sharding objects of the results name their orders. What
the compiler may choose (`AUTO`) is known when it has compiled: then the placement is `settled`.

Neighbours: `placement` and `mesh_placement` have what this is laid over, `layouts` the words of
users, `jaxlib_gateway.orders` the buffers; `program` asks for these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from xjit import jaxlib_gateway as gateway
from xjit.deleted import DeletedBuffer, raise_deleted
from xjit.layouts import AUTO, Layout, Wish, layout_as, wish_of
from xjit.lowering import NO_LAYOUTS, Layouts, LoweredProgram
from xjit.mesh_placement import OverMesh, Spreading, spread_buffer
from xjit.placement import Bring, OneDevice, Placement, buffers_at, one_device
from xjit.shardings import Sharding, SingleDeviceSharding
from xprim import ClosedJaxpr, ConcreteArray, ShapedArray, Var
from xprim.errors import message

__all__ = [
    "Laid", "base_of", "check_orders", "in_order_of_numpy", "in_orders_ahead", "in_orders_of",
    "laid", "order_if_committed", "order_of", "orders_at", "orders_in", "orders_out",
    "placement_in_orders", "put_in_order",
]  # fmt: skip

__dir__ = __all__.copy


class Laid(Placement):
    """A program at another placement, some of whose arguments or results lie in other orders.

    Args:
      base: the placement.
      in_layouts: for each argument, an order or `AUTO`; None for the order of NumPy.
      out_layouts: likewise for each result.
    """

    __slots__ = ("base", "in_layouts", "is_split", "out_layouts")

    def __init__(
        self, base: Placement, in_layouts: tuple[Wish, ...], out_layouts: tuple[Wish, ...]
    ) -> None:
        super().__init__(base.devices, base.axis_sizes, base.num_partitions)
        self.base = base
        self.is_split = base.is_split
        self.in_shardings, self.out_shardings = base.in_shardings, base.out_shardings
        self.in_layouts = in_layouts
        self.out_layouts = out_layouts

    def at(self, base: Placement) -> Placement:
        """Return the placement for the same orders at another one."""
        return laid(base, self.in_layouts, self.out_layouts)

    def settled(self, executable: gateway.Executable, lowered: LoweredProgram) -> Placement:
        """Return the placement with the orders that the compiler has chosen."""
        if AUTO not in self.in_layouts and AUTO not in self.out_layouts:
            return self
        ins: list[Wish] = [None if wish is AUTO else wish for wish in self.in_layouts]
        taken = gateway.orders_of(executable.layouts_of_arguments())
        for i, order in zip(lowered.kept, taken[len(lowered.constants) :], strict=True):
            ins[i] = order
        outs = gateway.orders_of(executable.layouts_of_outputs())
        return laid(self.base, tuple(ins), tuple(outs))

    def starter(self, executable: gateway.Executable, lowered: LoweredProgram) -> Any:
        """Return what starts a program."""
        return self.base.starter(executable, lowered)

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what brings the arguments of a program to the devices, in their orders."""
        if self.is_split:
            return Spreading(self, lowered)
        base, wheres = self.base, [self._where(i) for i in lowered.kept]
        assert isinstance(base, OneDevice)

        def bring(
            arrays: Sequence[ConcreteArray],
        ) -> tuple[list[Any], Callable[[list[Any]], None] | None]:
            return [
                buffers_at(base, [x])[0] if where is None else spread_buffer(x, where)
                for x, where in zip(arrays, wheres, strict=True)
            ], None

        return bring

    def place_of_argument(self, i: int) -> gateway.SpreadOver:
        """Return how a program over a mesh wants an argument."""
        assert isinstance(self.base, OverMesh)
        return self._where(i) or self.base.place_of_argument(i)

    def _where(self, i: int) -> gateway.SpreadOver | None:
        """Return how the program wants an argument, None for one in the order of NumPy."""
        order = self.in_layouts[i]
        if order is None:
            return None
        base = self.base
        if isinstance(base, OverMesh):
            return gateway.laid_over(base.place_of_argument(i).spread, order)
        assert isinstance(base, OneDevice)
        return gateway.laid_over(SingleDeviceSharding(base.device), order, base.committed)

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return buffers of what the program captured."""
        return self.base.constants(constants)

    def with_result(self) -> Placement:
        """Return the placement for programs with one more result first, a scalar."""
        return laid(self.base.with_result(), self.in_layouts, (None, *self.out_layouts))

    def shardings_of_arguments(self) -> Any:
        """Return the sharding objects of the arguments."""
        found = self.base.shardings_of_arguments()
        if found is None:
            return None
        count = len(self.in_layouts)
        of_base = found if type(found) is list else [found] * count
        return [self._where(i) or where for i, where in zip(range(count), of_base, strict=True)]

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results."""
        found = self.base.shardings(avals, executable)
        return [_in_order(where, order)
                for where, order in zip(found, self.out_layouts, strict=True)]  # fmt: skip

    def sharding_of(self, tiles: gateway.Tiles | None) -> Sharding:
        """Return how a value in a program lies over the devices."""
        return self.base.sharding_of(tiles)

    def ways_of_arguments(self, count: int) -> list[Sharding | None]:
        """Return how each of so many arguments lies over the devices."""
        return self.base.ways_of_arguments(count)

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return how each of the results lies over the devices."""
        return self.base.ways_of_results(avals, executable)

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays."""
        return self.base.results(outs, avals)


# One object for each placement of the last 4096, which look-ups compare by identity.
_laid = functools.lru_cache(maxsize=4096)(Laid)


def laid(base: Placement, in_layouts: tuple[Wish, ...], out_layouts: tuple[Wish, ...]) -> Placement:
    """Return the placement for arguments and results in these orders: `base` where all are NumPy's.

    What is not of one device or over a mesh reads every argument in the order of NumPy.
    """
    if not isinstance(base, OneDevice | OverMesh) or not any((*in_layouts, *out_layouts)):
        return base
    return _laid(base, in_layouts, out_layouts)


def base_of(placement: Placement) -> Placement:
    """Return the placement without its orders."""
    return placement.base if isinstance(placement, Laid) else placement


def orders_at(placement: Placement) -> Layouts:
    """Return the orders at a placement."""
    if not isinstance(placement, Laid):
        return NO_LAYOUTS
    return Layouts(placement.in_layouts, placement.out_layouts)


def in_orders_of(placement: Placement, base: Placement) -> Placement:
    """Return a placement with the orders that another one has."""
    return placement.at(base) if isinstance(placement, Laid) else base


def orders_in(placement: Placement, count: int) -> Sequence[Any]:
    """Return the orders of the arguments, which are so many; captured values come before them."""
    if not isinstance(placement, Laid):
        return (None,) * count
    return placement.in_layouts[len(placement.in_layouts) - count :]


def orders_out(placement: Placement, count: int) -> Sequence[Any]:
    """Return the orders of the results, which are so many."""
    return placement.out_layouts if isinstance(placement, Laid) else (None,) * count


class Compiled(Protocol):
    """A program that was compiled for orders of its arguments."""

    name: str
    placement: Placement

    @property
    def kept(self) -> Sequence[int]:
        """The numbers of the arguments that it takes."""


def check_orders(
    kernel: Compiled, arrays: Sequence[ConcreteArray], names: Callable[[], Sequence[str]]
) -> None:
    """Raise for an argument that was put where it is in another order than it is taken."""
    for i, (x, wish) in enumerate(zip(arrays, orders_in(kernel.placement, len(arrays)),
                                      strict=True)):  # fmt: skip
        given, taken = order_if_committed(x), layout_as(x.aval, wish)
        if i in kernel.kept and given not in (None, taken.major_to_minor):
            raise ValueError(message(
                kernel.name, "it was compiled for arguments in another order.",
                got=f"{names()[i]}: {Layout(given)}", expected=repr(taken),
                hint="compiled.input_formats are for device_put; jit(f) takes every order",
            ))  # fmt: skip


class Asking(Protocol):
    """A program of which somebody asked for orders."""

    name: str
    closed: ClosedJaxpr
    arg_names: Callable[[], Sequence[str]]
    in_layouts: Sequence[Wish]
    out_layouts: Sequence[Wish]


def placement_in_orders(
    program: Asking, base: Placement, arrays: Sequence[ConcreteArray]
) -> Placement:
    """Return a placement for arguments in the orders in which they lie, or are asked for.

    Raises:
      ValueError: an argument was put somewhere in another order than is asked for.
    """
    if not isinstance(base, OneDevice | OverMesh):
        return base
    given = [order_if_committed(x) for x in arrays]
    own = [order_of(x) for x in arrays]
    return _placement_for_orders(program, base, given, own)


def in_orders_ahead(program: Asking, base: Placement, orders: Sequence[gateway.Order]) -> Placement:
    """Return a placement for arguments that are described as lying in orders; None lies in any.

    Raises:
      ValueError: an argument is described in another order than is asked for.
    """
    avals = program.closed.in_avals
    orders = [*[None] * (len(avals) - len(orders)), *orders]  # captured values come first
    return _placement_for_orders(
        program, base, orders,
        [None if o is None else wish_of(o, a) for o, a in zip(orders, avals, strict=True)],
    )  # fmt: skip


def _placement_for_orders(
    program: Asking, base: Placement, given: Sequence[gateway.Order], own: Sequence[Wish]
) -> Placement:
    """Return a placement for what is asked for, or for the own order of an argument."""
    avals = program.closed.in_avals
    ins: list[Wish] = []
    for i, aval in enumerate(avals):
        wish = program.in_layouts[i] if program.in_layouts else None
        if wish is not None and given[i] is not None and given[i] != wish:
            _raise_other_order(program, i, wish, given[i])
        ins.append(own[i] if wish is None else wish_of(wish, aval))
    outs = [
        wish_of(wish, aval)
        for wish, aval in zip(
            program.out_layouts, program.closed.out_avals, strict=bool(program.out_layouts)
        )
    ]
    said = orders_of_results(program.closed)
    outs = [a or b for a, b in zip(outs or [None] * len(said), said, strict=True)]
    return laid(base, tuple(ins), tuple(outs))


def _raise_other_order(program: Asking, i: int, wish: Wish, given: Any) -> NoReturn:
    names = program.arg_names()
    name = names[i] if i < len(names) else f"argument {i}"
    left = wish == AUTO
    raise ValueError(message(
        program.name, f"{name} lies in another order than it is asked for.",
        got=f"an array that was put somewhere as {Layout(given)}",
        expected="Layout.AUTO" if left else repr(Layout(wish)),  # type: ignore[arg-type]
        hint="the order is left to the compiler, so lower it for ShapeDtypeStruct(x.shape, x.dtype)"
        if left else f"{name} = device_put({name}, Format(layout, sharding))",
    ))  # fmt: skip


def orders_of_results(closed: ClosedJaxpr) -> Sequence[Wish]:
    """Return in which orders a program itself says that its results lie, None for no word."""
    found: Sequence[Wish] | None = closed.memo.get("orders of results")
    if found is None:
        said = {
            eqn.outputs[0]: wish_of(eqn.params["order"], eqn.outputs[0].aval)
            for eqn in closed.jaxpr.eqns if eqn.primitive.name == "layout_constraint"
        }  # fmt: skip
        found = closed.memo["orders of results"] = [
            said.get(x) if isinstance(x, Var) else None for x in closed.jaxpr.outvars
        ]
    return found


def _in_order(where: Any, order: Any) -> Any:
    """Return the sharding object of a result that lies in an order, from that of NumPy's."""
    if order is None:
        return where
    if type(where) is gateway.SpreadOver:
        return gateway.laid_over(where.spread, order)
    return gateway.laid_over(SingleDeviceSharding(where._device), order, where.committed)


def order_of(x: ConcreteArray) -> gateway.Order:
    """Return the order in which an array lies on its devices, None for that of NumPy."""
    where = getattr(x.buffer, "_sharding", None)
    return where.order if type(where) is gateway.SpreadOver else None


def order_if_committed(x: ConcreteArray) -> gateway.Order:
    """Return the order in which an array lies that was put where it is, None for one that was not.

    That of NumPy is written out.
    """
    where = getattr(x.buffer, "_sharding", None)
    if where is None or not where.committed:
        return None
    order = order_of(x)
    return tuple(range(x.aval.ndim)) if order is None else order[: x.aval.ndim]


def put_in_order(x: ConcreteArray, sharding: Sharding, order: gateway.Order) -> ConcreteArray:
    """Return an array that is spread so, each piece in this order; None for that of NumPy."""
    if order is None:
        return in_order_of_numpy(x)
    if type(x.buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), x.buffer)
    return ConcreteArray(None, x.aval, spread_buffer(x, gateway.laid_over(sharding, order)))


def in_order_of_numpy(x: ConcreteArray) -> ConcreteArray:
    """Return the same elements in the same place, in the order of NumPy."""
    order = order_of(x)
    if order is None:
        return x
    where = gateway.placement_of(x.buffer)
    there = gateway.spread_over(where.spread)
    if isinstance(where.spread, SingleDeviceSharding):
        there = one_device(where.devices[0], where.committed).sharding
    buffer = gateway.turned(x.buffer, order, there, None, where.devices)
    return ConcreteArray(None, x.aval, buffer)
