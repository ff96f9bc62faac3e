"""The command line of the demo."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ()

TASKS = ("digits", "linear-regression")


class DemoError(Exception):
    """Something the user can mend: shown as one line, exit code 2."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run of the demo."""

    task: str
    data: Path | None
    out: Path
    steps: int
    batch_size: int
    learning_rate: float
    hidden: int
    seed: int
    device: str
    replicas: int
    mesh: tuple[int, int] | None


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Return the settings that a command line asks for; exits with code 2 on bad ones."""
    parser = argparse.ArgumentParser(
        prog="python -m xstack.demo",
        description="Train a small neural network on 1,797 images of handwritten digits (or on "
        "your own data), on one device and then on several, and draw what it learned.",
    )
    parser.add_argument(
        "--task", choices=TASKS, default="digits", help="what to train (default: %(default)s)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FILE",
        help="your own data: an .npz file with arrays `x` (examples, features...) and `y` (integer "
        "labels), or a .csv file whose last column is the label; default: scikit-learn's digits",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), metavar="FOLDER",
        help="where the PNG files go (default: %(default)s)",
    )  # fmt: skip
    _add_training_options(parser)
    args = parser.parse_args(argv)
    _settle_devices(parser, args)
    if not args.learning_rate > 0:
        parser.error(f"--learning-rate must be positive, got {args.learning_rate}")
    return Settings(**vars(args))


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps", type=_positive, default=800, metavar="N",
        help="number of updates (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--batch-size", type=_positive, default=128, metavar="N",
        help="examples in each update, a multiple of --replicas (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--learning-rate", type=float, default=0.1, metavar="RATE",
        help="step length of the gradient descent (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--hidden", type=_positive, default=128, metavar="N",
        help="width of the hidden layer (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N",
        help="seed of all random numbers (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--device", default="cpu", metavar="PLATFORM",
        help="where the first training runs: cpu or gpu (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--replicas", type=_positive, metavar="N",
        help="virtual CPU devices for the data-parallel training (default: 8)",
    )  # fmt: skip
    parser.add_argument(
        "--mesh", type=_mesh, metavar="DATAxMODEL",
        help="train on a mesh instead, as 4x2: the batch sharded in four, the hidden layer in two; "
        "`python -m xpar launch -n 2 -m xstack.demo --mesh 4x2` has two processes do it",
    )  # fmt: skip


def _settle_devices(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Check what is said about devices against the sizes that are cut over them."""
    if args.mesh is not None and args.replicas is not None:
        parser.error("--mesh says how many devices there are: leave out --replicas")
    if args.mesh is None:
        args.replicas = args.replicas or 8
        parts = f"--replicas {args.replicas}", args.replicas
    else:
        args.replicas = args.mesh[0] * args.mesh[1]
        parts = f"{args.mesh[0]}, the first number of --mesh", args.mesh[0]
        if args.hidden % args.mesh[1]:
            parser.error(f"--hidden {args.hidden} must be a multiple of {args.mesh[1]}, "
                         "the second number of --mesh")  # fmt: skip
    if args.batch_size % parts[1]:
        parser.error(f"--batch-size {args.batch_size} must be a multiple of {parts[0]}")


def _mesh(text: str) -> tuple[int, int]:
    data, _, model = text.partition("x")
    try:
        return _positive(data), _positive(model)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be two numbers, as in 4x2, got {text!r}") from None


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return value
