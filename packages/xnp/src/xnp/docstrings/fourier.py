"""What the docstrings of the Fourier transforms of arrays share, and examples."""

from xnp.docstrings import Family

__all__ = ()

# fmt: off

FOURIER = (  # of xnp.fft
    Family((
        "n: the length of the transform.",
        "d: the distance of two samples; a traced scalar, too.",
        "dtype: of the result, floating; None for the default.",
        "device: where the result shall be; None for the default.",
    ),
        "",
        {"fftfreq": None, "rfftfreq": None}),
    Family((
        "x: an array.",
        "axes: an int or a sequence of ints; None for all.",
    ),
        "An array of the shape and dtype of `x`.",
        {"fftshift": None, "ifftshift": None}),
    Family((
        "a: an array; floats of 16 bits and integers are transformed in float32.",
        "n: the length; the axis is cut or filled with zeros to it. None takes that\n"
            "        of the axis.",
        "axis: the dimension to transform.",
        "norm: as for `fft`.",
    ),
        "An array of complex numbers: complex64, where NumPy has complex128, unless\n"
            "    `a` has 64 bits.",
        {
            "ifft": ("xnp.fft.ifft(xnp.array([4.0, 0.0, 0.0, 0.0]))",
                "Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)"),
        }),
    Family((
        "a: a real array; floats of 16 bits and integers are transformed in float32.",
        "n: the length; the axis is cut or filled with zeros to it. None takes that\n"
            "        of the axis.",
        "axis: the dimension to transform.",
        "norm: as for `fft`.",
    ),
        "An array of complex numbers, of n // 2 + 1 elements along the axis.",
        {
            "rfft": ("xnp.fft.rfft(xnp.array([1.0, 0.0, -1.0, 0.0]))",
                "Array([0.+0.j, 2.+0.j, 0.+0.j], dtype=complex64)"),
            "ihfft": ("xnp.fft.ihfft(xnp.array([1.0, 0.0, -1.0, 0.0]))",
                "Array([0. -0.j, 0.5-0.j, 0. -0.j], dtype=complex64)"),
        }),
    Family((
        "a: an array of n // 2 + 1 elements along the axis.",
        "n: the length of the result; None takes the even one, 2 (m - 1) for m\n"
            "        elements.",
        "axis: the dimension to transform.",
        "norm: as for `fft`.",
    ),
        "An array of real numbers.",
        {
            "irfft": ("xnp.fft.irfft(xnp.array([0.0, 2.0, 0.0]))",
                "Array([ 1.,  0., -1.,  0.], dtype=float32)"),
            "hfft": ("xnp.fft.hfft(xnp.array([0.0, 0.5, 0.0]))",
                "Array([ 1.,  0., -1.,  0.], dtype=float32)"),
        }),
    Family((
        "a: an array, as for `fft`; of `rfft2` and `rfftn` a real one.",
        "s: the lengths, one for each axis; -1 and None leave the axis as it is. Of\n"
            "        `irfft2` and `irfftn` the last one is the length of the result there; None\n"
            "        takes the even one.",
        "axes: the dimensions; None takes the last ones, as many as `s` has, or all.",
        "norm: as for `fft`; n is the product of the lengths.",
    ),
        "An array of complex numbers, of `irfft2` and `irfftn` of real ones.",
        {
            "fft2": ("xnp.fft.fft2(xnp.ones((2, 2))).real",
                "Array([[4., 0.],\n"
                "       [0., 0.]], dtype=float32)"),
            "ifft2": ("xnp.fft.ifft2(xnp.ones((2, 2))).real",
                "Array([[1., 0.],\n"
                "       [0., 0.]], dtype=float32)"),
            "ifftn": ("xnp.fft.ifftn(xnp.ones((2, 2))).real",
                "Array([[1., 0.],\n"
                "       [0., 0.]], dtype=float32)"),
            "rfft2": ("xnp.fft.rfft2(xnp.ones((2, 4))).shape",
                "(2, 3)"),
            "rfftn": ("xnp.fft.rfftn(xnp.ones((2, 2, 4))).shape",
                "(2, 2, 3)"),
            "irfft2": ("xnp.fft.irfft2(xnp.ones((2, 3))).shape",
                "(2, 4)"),
            "irfftn": ("xnp.fft.irfftn(xnp.ones((2, 2, 3))).shape",
                "(2, 2, 4)"),
        }),
)
