"""The tests of Jacobians once more, with directions mapped by `xbatch` instead of one by one."""

import pytest

from packages.xad.tests.test_jacobian import (  # noqa: F401
    test_hessian_is_the_matrix_of_second_derivatives,
    test_holomorphic_jacobians_are_complex_derivatives,
    test_integer_arguments_have_a_derivative_of_dtype_float0,
    test_jacobians_compose_with_each_other_and_with_grad,
    test_jacobians_have_the_shape_of_result_and_argument,
    test_jacobians_of_trees_nest_the_trees,
    test_jacobians_pass_auxiliary_outputs_through,
    test_wrong_dtypes_are_refused_with_a_hint,
)
from xprim import optional_transforms


@pytest.fixture(autouse=True)
def _batching():
    import xbatch

    assert optional_transforms.find("vmap") is xbatch.vmap
