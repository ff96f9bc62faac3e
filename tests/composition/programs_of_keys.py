"""Random programs that carry, batch and rearrange random keys, for keys of both forms.

A program is drawn as it runs: a `Block` has a seed of its own, so that it makes the same choices
each time it is traced, and chooses by shapes alone, which are the same for keys of dtype `key<fry>`
(`Typed`) and for their words (`Raw`, one more dimension). Whatever a program does with an array of
keys it must do with their words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_DEPTH = 3
MAX_SIZE = 24


@dataclass(frozen=True)
class Typed:
    """Keys as elements of their own dtype; `n` has the namespaces of the library."""

    n: Any
    impl: str = "threefry2x32"

    def first(self, seed: int) -> Any:
        return self.n.random.key(seed, impl=self.impl)

    def shape(self, k: Any) -> tuple[int, ...]:
        return tuple(k.shape)

    def sizes(self, k: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def mask(self, m: Any) -> Any:
        return m

    def axes(self, k: Any, permutation: tuple[int, ...]) -> tuple[int, ...]:
        return permutation

    def equal(self, a: Any, b: Any) -> Any:
        return a == b

    def starts(self, starts: tuple[Any, ...]) -> tuple[Any, ...]:
        return starts

    def words(self, k: Any) -> Any:
        return self.n.random.key_data(k)


@dataclass(frozen=True)
class Raw(Typed):
    """Keys as their words, in one dimension more, which comes last."""

    @property
    def count(self) -> int:
        return 2 if self.impl == "threefry2x32" else 4

    def first(self, seed: int) -> Any:
        return self.n.random.PRNGKey(seed, impl=self.impl)

    def shape(self, k: Any) -> tuple[int, ...]:
        return tuple(k.shape[:-1])

    def sizes(self, k: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape, self.count)

    def mask(self, m: Any) -> Any:
        return m[..., None]

    def axes(self, k: Any, permutation: tuple[int, ...]) -> tuple[int, ...]:
        return (*permutation, len(permutation))

    def equal(self, a: Any, b: Any) -> Any:
        return (a == b).all(-1)

    def starts(self, starts: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*starts, 0)

    def words(self, k: Any) -> Any:
        return k


@dataclass
class Values:
    """What a block can use: arrays of keys, of integers and of floating-point numbers."""

    keys: list[Any]
    ints: list[Any]
    floats: list[Any]

    def tree(self) -> tuple[list[Any], list[Any], list[Any]]:
        return list(self.keys), list(self.ints), list(self.floats)


@dataclass(frozen=True)
class Block:
    """A part of a program: some steps on the values that it is given."""

    form: Typed
    seed: int
    depth: int

    def __call__(self, values: Values) -> Values:
        """Return the values with those that the steps made, the latest last."""
        rng = np.random.default_rng(self.seed)
        out = Values(*values.tree())
        for _ in range(int(rng.integers(1, 4))):
            names = _MOVES if self.depth >= MAX_DEPTH or rng.random() < 0.5 else _CALLS
            step = names[int(rng.integers(len(names)))]
            step(self, rng, out)
        return out

    def inner(self, rng: Any) -> Block:
        return Block(self.form, int(rng.integers(2**31)), self.depth + 1)

    def conform(self, rng: Any, k: Any, shape: tuple[int, ...]) -> Any:
        """Return keys of a shape made of others, repeated or left out."""
        form, size = self.form, math.prod(self.form.shape(k))
        n = form.n
        flat = n.numpy.reshape(k, form.sizes(k, (size,)))
        places = np.arange(math.prod(shape), dtype=np.int32) % size
        how = int(rng.integers(3))
        if how == 0:
            flat = flat[places]
        elif how == 1:
            flat = n.numpy.concatenate([flat] * -(-math.prod(shape) // size), 0)
            flat = flat[: math.prod(shape)]
        else:
            flat = n.numpy.take(flat, n.numpy.asarray(places), axis=0)
        return n.numpy.reshape(flat, form.sizes(k, shape))


def _pick(rng: Any, items: list[Any]) -> Any:
    """Return one of the items, the latest more often."""
    return items[-1] if rng.random() < 0.5 else items[int(rng.integers(len(items)))]


def _some_shape(rng: Any, ndim: int | None = None) -> tuple[int, ...]:
    return tuple(
        [int(rng.integers(1, 4)) for _ in range(rng.integers(0, 3) if ndim is None else ndim)]
    )


# ------------------------------------------------------------------------- moves of keys


def _reshape(block: Block, rng: Any, v: Values) -> None:
    form, k = block.form, _pick(rng, v.keys)
    shape = form.shape(k)
    options = [(math.prod(shape),), (1, *shape), (*shape, 1), shape[::-1]]
    v.keys.append(form.n.numpy.reshape(k, form.sizes(k, options[int(rng.integers(4))])))


def _index(block: Block, rng: Any, v: Values) -> None:
    """Index by a number that is computed, by an array of them, by slices, in each mode."""
    form, k = block.form, _pick(rng, v.keys)
    shape = form.shape(k)
    if not shape:
        return
    n, size = form.n, shape[0]
    i = n.numpy.abs(n.numpy.asarray(_pick(rng, v.ints)).ravel()[0]) % size
    many = np.arange(int(rng.integers(1, 4)), dtype=np.int32)
    options: list[Callable[[], Any]] = [
        lambda: k[i],
        lambda: k[(i + many) % size],
        lambda: k[::-1],
        lambda: k[None],
        lambda: k.at[i + many].get(mode="clip"),
        lambda: n.lax.dynamic_index_in_dim(k, i, 0, keepdims=False),
        lambda: n.numpy.take(k, (i + many) % size, axis=0),
        lambda: n.lax.dynamic_slice_in_dim(k, i, max(1, size - 1), 0),
        lambda: n.numpy.roll(k, 1, 0),
    ]
    v.keys.append(options[int(rng.integers(len(options)))]())


def _index_last(block: Block, rng: Any, v: Values) -> None:
    """Index several dimensions at once, by numbers and arrays of numbers."""
    form, k = block.form, _pick(rng, v.keys)
    shape = form.shape(k)
    if len(shape) < 2:
        return
    n = form.n
    i = n.numpy.abs(n.numpy.asarray(_pick(rng, v.ints)).ravel()[0])
    a, b = i % shape[0], i % shape[1]
    many = np.arange(2, dtype=np.int32)
    options: list[Callable[[], Any]] = [
        lambda: k[a, b],
        lambda: k[:, b],
        lambda: k[(a + many) % shape[0], (b + many) % shape[1]],
        lambda: k[a, (b + many) % shape[1]],
        lambda: n.lax.dynamic_slice(
            k, form.starts((a, b, *[0] * (len(shape) - 2))), form.sizes(k, (1, 1, *shape[2:]))
        ),
    ]
    v.keys.append(options[int(rng.integers(len(options)))]())


def _update(block: Block, rng: Any, v: Values) -> None:
    form, k, other = block.form, _pick(rng, v.keys), _pick(rng, v.keys)
    shape = form.shape(k)
    if not shape:
        return
    n, size = form.n, shape[0]
    i = n.numpy.abs(n.numpy.asarray(_pick(rng, v.ints)).ravel()[0]) % size
    one = block.conform(rng, other, shape[1:])
    two = block.conform(rng, other, (2, *shape[1:]))
    zeros = (0,) * (len(shape) - 1)
    options: list[Callable[[], Any]] = [
        lambda: k.at[i].set(one),
        lambda: k.at[n.numpy.stack([i, i + 1])].set(two, mode="drop"),
        lambda: k.at[i].set(one, mode="clip"),
        lambda: n.lax.dynamic_update_slice(k, one[None], form.starts((i, *zeros))),
        lambda: n.lax.dynamic_update_index_in_dim(k, one, i, 0),
    ]
    v.keys.append(options[int(rng.integers(len(options)))]())


def _join(block: Block, rng: Any, v: Values) -> None:
    form, k, other = block.form, _pick(rng, v.keys), _pick(rng, v.keys)
    shape = form.shape(k)
    if math.prod(shape) > MAX_SIZE // 2:
        return
    n, like = form.n, block.conform(rng, other, shape)
    axis = int(rng.integers(len(shape) + 1))
    options: list[Callable[[], Any]] = [lambda: n.numpy.stack([k, like], axis)]
    if shape:
        axis = axis % len(shape)
        options += [
            lambda: n.numpy.concatenate([k, like], axis),
            lambda: n.numpy.repeat(k, 2, axis=axis),
            lambda: n.lax.pad(
                k, *_filled(form, k), [(int(d == axis), 0, 0) for d in range(len(k.shape))]
            ),
        ]
    v.keys.append(options[int(rng.integers(len(options)))]())


def _filled(form: Typed, k: Any) -> tuple[Any]:
    return (form.n.numpy.zeros((), k.dtype),)


def _spread(block: Block, rng: Any, v: Values) -> None:
    form, k = block.form, _pick(rng, v.keys)
    shape = form.shape(k)
    if math.prod(shape) > MAX_SIZE // 2:
        return
    n, sizes = form.n, form.sizes(k, (2, *shape))
    options: list[Callable[[], Any]] = [
        lambda: n.numpy.broadcast_to(k, sizes),
        lambda: n.lax.broadcast(k, (2,)),
        lambda: n.lax.broadcast_in_dim(k, sizes, tuple(range(1, len(sizes)))),
        lambda: n.numpy.expand_dims(k, 0),
        lambda: n.numpy.squeeze(k[None], 0),
    ]
    v.keys.append(options[int(rng.integers(len(options)))]())


def _permute(block: Block, rng: Any, v: Values) -> None:
    form, k = block.form, _pick(rng, v.keys)
    order = tuple(int(d) for d in rng.permutation(len(form.shape(k))))
    moved = form.n.numpy.transpose(k, form.axes(k, order))
    v.keys.append(form.n.lax.rev(moved, tuple(range(len(order)))))


def _select(block: Block, rng: Any, v: Values) -> None:
    form, k, other = block.form, _pick(rng, v.keys), _pick(rng, v.keys)
    n, shape = form.n, form.shape(k)
    like = block.conform(rng, other, shape)
    number = n.numpy.asarray(_pick(rng, v.ints)).ravel()[0]
    mask = (np.arange(math.prod(shape), dtype=np.int32).reshape(shape) + number) % 2 == 0
    options: list[Callable[[], Any]] = [
        lambda: n.numpy.where(form.mask(mask), k, like),
        lambda: n.lax.select(number > 0, k, like),
        lambda: n.lax.select_n(number > 0, k, like),
        lambda: n.numpy.where(number > 0, k, like),
    ]
    v.keys.append(options[int(rng.integers(len(options)))]())
    v.ints.append(form.equal(v.keys[-1], k).sum().astype("int32"))


def _draw(block: Block, rng: Any, v: Values) -> None:
    """Make keys and numbers of a key: of one of an array, or of each."""
    form, k = block.form, _pick(rng, v.keys)
    n, shape = form.n, form.shape(k)
    one = block.conform(rng, k, ())
    number = n.numpy.asarray(_pick(rng, v.ints)).ravel()[0]
    how = int(rng.integers(5))
    if how == 0:
        v.keys.append(n.random.split(one, int(rng.integers(1, 4))))
    elif how == 1:
        v.keys.append(n.random.fold_in(one, n.numpy.abs(number)))
    elif how == 2:
        v.floats.append(n.random.uniform(one, _some_shape(rng)))
    elif how == 3:
        v.ints.append(n.random.randint(one, _some_shape(rng), 0, 9).astype("int32"))
    else:
        draw = n.random.fold_in
        for _ in shape:
            draw = n.vmap(draw, in_axes=(0, None))
        v.keys.append(draw(k, 3))


def _compute(block: Block, rng: Any, v: Values) -> None:
    n = block.form.n
    a, b = _pick(rng, v.floats), _pick(rng, v.floats)
    v.floats.append(n.numpy.sin(a.mean() * b) + 0.5 * b)


_MOVES = [_reshape, _index, _index_last, _update, _join, _spread, _permute, _select, _draw, _draw,
          _compute]  # fmt: skip


# ------------------------------------------------------------- transformations and control flow


def _chosen(rng: Any, v: Values) -> Values:
    """Return the values that a call is given: a few of each kind."""
    return Values([_pick(rng, v.keys) for _ in range(rng.integers(1, 3))], [_pick(rng, v.ints)],
                  [_pick(rng, v.floats)])  # fmt: skip


def _fitted(block: Block, seed: int, made: Values, like: Values) -> tuple[Any, Any, Any]:
    """Return the latest values in the shapes that a carry, or a branch, must have."""
    rng, form = np.random.default_rng(seed), block.form
    n = form.n
    keys = [block.conform(rng, _pick(rng, made.keys), form.shape(k)) for k in like.keys]
    ints = [
        n.numpy.broadcast_to(_pick(rng, made.ints).sum() % 7, i.shape).astype("int32")
        for i in like.ints
    ]
    floats = [
        n.numpy.broadcast_to(n.numpy.sin(_pick(rng, made.floats).mean()), f.shape)
        for f in like.floats
    ]
    return keys, ints, floats


def _keep(v: Values, results: Any) -> None:
    keys, ints, floats = results
    v.keys += keys
    v.ints += ints
    v.floats += floats


def _latest(made: Values) -> tuple[Any, Any, Any]:
    return made.keys[-2:], made.ints[-1:], made.floats[-1:]


def _scan(block: Block, rng: Any, v: Values) -> None:
    carry, inner, n = _chosen(rng, v), block.inner(rng), block.form.n
    seed, reverse = int(rng.integers(2**31)), bool(rng.integers(2))
    xs = block.conform(rng, _pick(rng, v.keys), (2, *_some_shape(rng, 1)))

    def body(c: Any, x: Any) -> Any:
        keys, ints, floats = c
        like = Values(keys, ints, floats)
        made = inner(Values([*keys, x], ints, floats))
        return _fitted(block, seed, made, like), (made.keys[-1], made.ints[-1])

    end, (keys, ints) = n.lax.scan(body, carry.tree(), xs, reverse=reverse)
    _keep(v, end)
    if math.prod(block.form.shape(keys)) <= MAX_SIZE:
        v.keys.append(keys)
    v.ints.append(ints)


def _while(block: Block, rng: Any, v: Values) -> None:
    carry, inner, n = _chosen(rng, v), block.inner(rng), block.form.n
    seed = int(rng.integers(2**31))
    bound = _pick(rng, v.ints).sum() % 4

    def body(c: Any) -> Any:
        i, (keys, ints, floats) = c
        like = Values(keys, ints, floats)
        return i + 1, _fitted(block, seed, inner(like), like)

    def goes_on(c: Any) -> Any:
        i, (keys, _, _) = c
        word = block.form.words(keys[0]).ravel()[-1]
        return (i < bound) & (word % 5 != 0)

    _, end = n.lax.while_loop(goes_on, body, (0, carry.tree()))
    _keep(v, end)


def _fori(block: Block, rng: Any, v: Values) -> None:
    carry, inner, n = _chosen(rng, v), block.inner(rng), block.form.n
    seed = int(rng.integers(2**31))

    def body(i: Any, c: Any) -> Any:
        like = Values(*c)
        return _fitted(block, seed, inner(Values(c[0], [*c[1], i], c[2])), like)

    _keep(v, n.lax.fori_loop(0, 2, body, carry.tree()))


def _switch(block: Block, rng: Any, v: Values) -> None:
    given, n = _chosen(rng, v), block.form.n
    inners = [block.inner(rng) for _ in range(rng.integers(2, 4))]
    seed, like = int(rng.integers(2**31)), _chosen(rng, v)

    def branch(inner: Block) -> Any:
        return lambda *tree: _fitted(block, seed, inner(Values(*tree)), like)

    index = _pick(rng, v.ints).sum() % len(inners)
    branches = [branch(inner) for inner in inners]
    if len(inners) == 2:
        _keep(v, n.lax.cond(index == 0, *branches, *given.tree()))
    else:
        _keep(v, n.lax.switch(index, branches, *given.tree()))


def _vmap(block: Block, rng: Any, v: Values) -> None:
    """Map over an axis of some of the values; the others are shared."""
    given, inner, form = _chosen(rng, v), block.inner(rng), block.form
    size, axis = int(rng.integers(1, 4)), int(rng.integers(2))
    keys, axes = [], []
    for i, k in enumerate(given.keys):
        shape = form.shape(k)
        if (i and rng.random() < 0.5) or math.prod(shape) > MAX_SIZE // size:
            keys.append(block.conform(rng, k, _some_shape(rng)))
            axes.append(None)
        else:
            at = axis if shape else 0
            keys.append(block.conform(rng, k, (*shape[:at], size, *shape[at:])))
            axes.append(at)
    numbers, mapped = [np.arange(size, dtype=np.int32)], 0
    out = form.n.vmap(
        lambda *tree: _latest(inner(Values(*tree))), in_axes=(axes, [mapped], [None])
    )(keys, numbers, given.floats)
    _keep(v, [[x for x in out[0] if math.prod(form.shape(x)) <= MAX_SIZE], *out[1:]])


def _call(block: Block, rng: Any, v: Values) -> None:
    given, inner, n = _chosen(rng, v), block.inner(rng), block.form.n
    wrap = n.jit if rng.random() < 0.5 else n.checkpoint
    _keep(v, wrap(lambda *tree: _latest(inner(Values(*tree))))(*given.tree()))


def _derivative(block: Block, rng: Any, v: Values) -> None:
    given, inner, n = _chosen(rng, v), block.inner(rng), block.form.n
    keys, ints, floats = given.tree()
    reverse = rng.random() < 0.5

    def loss(x: Any) -> Any:
        made = inner(Values(keys, ints, [x]))
        return n.numpy.sin(made.floats[-1]).sum(), _latest(made)

    if reverse and not _has_while(n, loss, floats[0]):
        slope, kept = n.grad(loss, has_aux=True)(floats[0])
    else:
        _, slope, kept = n.jvp(loss, (floats[0],), (floats[0],), has_aux=True)
    _keep(v, kept)
    v.floats.append(slope)


def _has_while(n: Any, function: Any, x: Any) -> bool:
    """Whether reverse mode would meet a `while_loop`, which it cannot differentiate."""
    return "while" in str(n.make_jaxpr(function)(x))


_CALLS = [_scan, _while, _fori, _switch, _switch, _vmap, _vmap, _call, _derivative]


def program(form: Typed, seed: int) -> Callable[[int, int], Any]:
    """Return the program of a seed, which makes keys, integers and numbers of two integers."""

    def run(first: Any, second: Any) -> Any:
        n = form.n
        key = form.first(seed)
        key = n.random.fold_in(key, first)
        values = Values([n.random.split(key, 3), key], [n.numpy.asarray(second)],
                        [n.numpy.asarray(0.5, "float32")])  # fmt: skip
        made = Block(form, seed, 0)(Block(form, seed + 1, 0)(values))
        return [form.words(k) for k in made.keys], made.ints, made.floats

    return run
