"""How exactly matrix products and convolutions are computed on hardware with a choice.

`Precision` names a level; `DotAlgorithm` and its presets say the exact types in which a product is
formed and accumulated. The `precision` param of a primitive is None (the default: full float32, on
every platform), a pair of `Precision`, one for each operand, or one algorithm. The option
`default_matmul_precision` enters where an operation is bound, so a jaxpr always shows what it will
run with.

Names and types of the algorithms: StableHLO specification, section dot_general.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from xprim import config, dtypes
from xprim.errors import ArgumentError, described, message
from xprim.requirements import require

__all__ = ["DotAlgorithm", "DotAlgorithmPreset"]

__dir__ = __all__.copy


class Precision(enum.Enum):
    """A level of exactness for matrix products; a CPU always computes in full.

    Members:
      DEFAULT: the fastest the hardware offers (bfloat16 or TensorFloat-32 products of float32).
      HIGH: slower and more exact (three passes of bfloat16, or TensorFloat-32).
      HIGHEST: full float32 or float64.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """The exact way in which a matrix product is computed.

    Attributes:
      lhs_precision_type: the dtype that parts of the first operand are rounded to.
      rhs_precision_type: the same for the second operand.
      accumulation_type: the dtype of sums.
      lhs_component_count: into how many parts the first operand is split.
      rhs_component_count: the same for the second operand.
      num_primitive_operations: how many products of parts are summed.
      allow_imprecise_accumulation: whether the sums may be kept in fewer bits.

    A type is a dtype or the name `"tf32"`.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """The algorithms in common use, named as types of the operands and of the accumulation.

    `BF16_BF16_F32_X3` splits float32 operands into bfloat16 parts and sums three products of them.
    """

    DEFAULT = 0
    ANY_F8_ANY_F8_F32 = 1
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 2
    ANY_F8_ANY_F8_ANY = 3
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 4
    F16_F16_F16 = 5
    F16_F16_F32 = 6
    BF16_BF16_BF16 = 7
    BF16_BF16_F32 = 8
    BF16_BF16_F32_X3 = 9
    BF16_BF16_F32_X6 = 10
    BF16_BF16_F32_X9 = 11
    TF32_TF32_F32 = 12
    TF32_TF32_F32_X3 = 13
    F32_F32_F32 = 14
    F64_F64_F64 = 15

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    def algorithm(self, lhs: np.dtype[Any], rhs: np.dtype[Any], out: np.dtype[Any]) -> (
        DotAlgorithm | None
    ):  # fmt: skip
        """Return the types spelled out for operands and result of these dtypes.

        Raises:
          TypeError: when an 8-bit algorithm is requested on other operands.
        """
        if self is DotAlgorithmPreset.DEFAULT:
            return None
        if self.name.startswith("ANY_F8"):
            require(
                lhs.itemsize == 1 and rhs.itemsize == 1, "dot_general",
                "the algorithm {} needs 8-bit floating operands.", self.name,
                got={"lhs": lhs, "rhs": rhs}, error=TypeError,
            )  # fmt: skip
            total = dtypes.float32 if "F8_F32" in self.name else out
            return DotAlgorithm(
                lhs, rhs, total, allow_imprecise_accumulation="FAST_ACCUM" in self.name
            )
        first, second, total = [_TYPE_BY_NAME[part] for part in self.name.split("_")[:3]]
        products = int(self.name.rsplit("_X", 1)[1]) if "_X" in self.name else 1
        return DotAlgorithm(first, second, total, num_primitive_operations=products)


PrecisionLike = (
    None | str | Precision | DotAlgorithm | DotAlgorithmPreset
    | tuple[str, str] | tuple[Precision, Precision]
)  # fmt: skip

_TYPE_BY_NAME: dict[str, Any] = {
    "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64,
    "TF32": "tf32",
}  # fmt: skip

_LEVEL_BY_NAME = {
    "default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST,
}  # fmt: skip


def normal_precision(precision: Any, operation: str = "dot_general") -> Any:
    """Return None, a pair of `Precision`, or an algorithm; None takes the configured default.

    Raises:
      ValueError: for a name that is not a precision.
      TypeError: for anything else that is none.

    Example:
      >>> normal_precision("highest")
      (Precision.HIGHEST, Precision.HIGHEST)
    """
    if precision is None:
        precision = config.values.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    if isinstance(precision, tuple | list) and len(precision) == 2:
        return _level(precision[0], operation), _level(precision[1], operation)
    level = _level(precision, operation)
    return level, level


def _level(value: Any, operation: str) -> Precision:
    if isinstance(value, Precision):
        return value
    if value is None:
        return Precision.DEFAULT
    if isinstance(value, str):
        found = _LEVEL_BY_NAME.get(value.lower())
        if found is not None:
            return found
        raise ValueError(message(
            operation, f"{value!r} is not the name of a precision.",
            expected=f"one of {', '.join(_LEVEL_BY_NAME)}, or the name of a dot algorithm",
        ))  # fmt: skip
    raise ArgumentError(message(
        operation, "precision must be a name, a Precision, a pair of them, or a dot algorithm.",
        got=described(value),
    ))  # fmt: skip


_FULL = (Precision.HIGHEST, Precision.HIGHEST)
_SINGLE = (dtypes.float32, dtypes.complex64)


def precision_for(platform: str, precision: Any, dtype: np.dtype[Any]) -> Any:
    """Return what a program for a platform says where `precision` is a primitive's param.

    Where nothing is said, a GPU rounds the operands to TensorFloat-32 (relative errors of 3e-4) and
    a TPU to bfloat16. So products of 32 bits say that they are full where no less was requested.

    Args:
      platform: what the program is written for.
      precision: the param.
      dtype: in which the products are formed.
    """
    if precision is None and platform != "cpu" and dtype in _SINGLE:
        return _FULL
    return precision


def precision_attribute(precision: Any) -> str:
    """Return the `precision_config` attribute of the StableHLO operation, or an empty text."""
    if precision is None:
        return ""
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        pair = ["DEFAULT", "DEFAULT"]
    else:
        pair = [p.name for p in precision]
    inside = ", ".join([f"#stablehlo<precision {name}>" for name in pair])
    return f"precision_config = [{inside}]"


def holds_products(dtype: Any, preferred: Any) -> bool:
    """Whether products of elements of a dtype may be summed in another one."""
    kinds = dtype_kind(dtype), dtype_kind(preferred)
    return kinds[0] in (kinds[1], "bool") or (
        kinds[0] == "integer" and kinds[1] in ("floating", "complex")
    )


def dtype_kind(dtype: np.dtype[Any]) -> str:
    """Return one of integer, floating, complex, bool."""
    if dtypes.is_integer(dtype):
        return "integer"
    if dtypes.is_floating(dtype):
        return "floating"
    return "complex" if dtypes.is_complex(dtype) else "bool"
