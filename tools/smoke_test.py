"""Try the installed family in a clean environment: every package imports, and the parts compose.

The session `build` runs it from a folder outside the tree, so what answers is what the wheels hold.
"""

import importlib
import importlib.metadata
import sys
from pathlib import Path

PACKAGES = ("xtree", "xprim", "xnp", "xrandom", "xad", "xbatch", "xjit", "xpar", "xstack")


def check_packages() -> None:
    """Import every package from the environment and read its version and its type marker."""
    for name in PACKAGES:
        distribution = "xstack" if name == "xstack" else f"xstack-{name}"
        version = importlib.metadata.version(distribution)
        folder = Path(importlib.import_module(name).__file__ or "").parent
        if "site-packages" not in folder.parts:
            sys.exit(f"{name} comes from {folder}, not from its wheel")
        if not (folder / "py.typed").exists():
            sys.exit(f"{name} has lost its py.typed")
        print(f"{distribution} {version}")


def check_composition() -> None:
    """Differentiate, batch and compile one program through the meta package."""
    xstack = importlib.import_module("xstack")
    xnp = importlib.import_module("xstack.numpy")
    per_example = xstack.vmap(xstack.grad(lambda w, x: (xnp.sin(w) * x).sum()), (None, 0))
    w, x = xnp.arange(3.0), xnp.ones((4, 3))
    compiled = xstack.jit(per_example)(w, x)
    difference = float(abs(compiled - per_example(w, x)).max())
    if compiled.shape != (4, 3) or difference > 1e-6:
        sys.exit(f"the compiled result has shape {compiled.shape} and differs by {difference}")
    print("grad, vmap and jit compose")


def check_absence_of_jax() -> None:
    """Nothing may have pulled JAX in."""
    if "jax" in sys.modules:
        sys.exit("jax was imported")


if __name__ == "__main__":
    check_packages()
    check_composition()
    check_absence_of_jax()
