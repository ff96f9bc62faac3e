"""The numbers of `ocean_kernels`: coefficients of sea water's density, and of mixing.

Source of the density: T. J. McDougall and P. M. Barker, Getting started with TEOS-10, 2011,
appendix K, the 48 terms of density by Absolute Salinity, Conservative Temperature and pressure in
g / kg, degrees Celsius and dbar.
"""

from __future__ import annotations

NUMERATOR = (
    9.998420897506056e2, 2.839940833161907, -3.147759265588511e-2, 1.181805545074306e-3,
    -6.698001071123802, -2.986498947203215e-2, 2.327859407479162e-4,
    -3.988822378968490e-2, 5.095422573880500e-4, -1.426984671633621e-5, 1.645039373682922e-7,
)  # fmt: skip
"""By temperature; times salinity; times salinity to the power 3/2."""

ABOVE = (
    -2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6, -1.806789763745328e-4,
    6.876837219536232e-7, -3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11,
    1.550932729220080e-10,
)  # fmt: skip
"""Times pressure; times its square."""

DENOMINATOR = (
    1.0, 2.775927747785646e-3, -2.349607444135925e-5, 1.119513357486743e-6, 6.743689325042773e-10,
    -7.521448093615448e-3, -2.764306979894411e-5, 1.262937315098546e-7, 9.527875081696435e-10,
    -1.811147201949891e-11,
    -3.303308871386421e-5, 3.801564588876298e-7, -7.672876869259043e-9, -4.634182341116144e-11,
    2.681097235569143e-12,
    5.419326551148740e-6,
)  # fmt: skip
"""By temperature; times salinity; times its power 3/2; times its square."""

PRESSURE_TERM = (
    -2.742185394906099e-5, -3.212746477974189e-7, 3.191413910561627e-9, -1.931012931541776e-12,
    -1.105097577149576e-7, 6.211426728363857e-10, -1.119011592875110e-10, -1.941660213148725e-11,
    -1.864826425365600e-14, 1.119522344879478e-14, -1.200507748551599e-15, 6.057902487546866e-17,
)  # fmt: skip
"""Of the denominator: times pressure, its square, its cube."""

ZERO_CELSIUS = 9.85  # degrees, about which density is linear in temperature
EXPANSION, HALINE, THERMOBARIC = 1.024e-2, (0.171, 0.79872), 1.1e-4
SLOPE_LIMIT, SLOPE_WIDTH, STEEP, EPS_SLOPE = 1e-3, 1e-3, 50.0, 1e-20
DT, K_LATERAL = 1.0, 2000.0  # seconds; square metres a second
