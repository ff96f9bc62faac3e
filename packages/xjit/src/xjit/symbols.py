"""Names of the functions of a program, each given once.

Neighbour: `stablehlo_text` names functions after the user's.
"""

from __future__ import annotations

__all__ = ["Symbols"]

__dir__ = __all__.copy


class Symbols:
    """The symbols of one module.

    Example:
      >>> symbols = Symbols()
      >>> [symbols.new(name) for name in ("f", "f", "f_1", "<lambda>", "f")]
      ['f', 'f_1', 'f_1_1', '_lambda_', 'f_2']
    """

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # of each symbol, how many more begin with it

    def new(self, name: str) -> str:
        """Return a symbol for a name that no other function of the module has."""
        base = "".join([c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name])
        if not base or base[0].isdigit() or base == "main":
            base = f"_{base}"
        numbers = self._numbers
        symbol, number = base, numbers.get(base, 0)
        while symbol in numbers:
            number += 1
            symbol = f"{base}_{number}"
        numbers[base] = number
        numbers.setdefault(symbol, 0)
        return symbol
