"""The errors that users meet."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xprim.errors import (
        ArgumentError as ArgumentError, AxisError as AxisError, CheckError as CheckError,
        ConcretizationTypeError as ConcretizationTypeError,
        DiscreteDerivativeError as DiscreteDerivativeError,
        DiscreteDerivativeWarning as DiscreteDerivativeWarning,
        InconclusiveDimensionOperation as InconclusiveDimensionOperation,
        IndexCheckError as IndexCheckError, IndexTypeError as IndexTypeError,
        JAXIndexError as JAXIndexError, JaxprTypeError as JaxprTypeError,
        JaxRuntimeError as JaxRuntimeError, JAXTypeError as JAXTypeError,
        KeyReuseError as KeyReuseError, MissingRuleError as MissingRuleError,
        NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
        OutOfMemoryError as OutOfMemoryError, ShapeError as ShapeError,
        TracerArrayConversionError as TracerArrayConversionError,
        TracerBoolConversionError as TracerBoolConversionError,
        TracerIntegerConversionError as TracerIntegerConversionError,
        TypePromotionError as TypePromotionError, UndefinedRuleError as UndefinedRuleError,
        UnexpectedTracerError as UnexpectedTracerError, XStackError as XStackError,
    )  # fmt: skip
