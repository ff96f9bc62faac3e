"""That what rules and eager evaluation are given satisfies the contracts of `xprim`.

Nothing here runs. A member that an implementation lacks, or has with another signature, is an error
of the type checker at the line of that implementation.
"""

from __future__ import annotations

from xad._jvp import JVPHandle
from xad._linearize import Linearized, LinearizeHandle
from xad.transpose import TransposeHandle
from xbatch.batching import BatchAxis
from xjit.dispatch.eager_backend import EagerBackend, NoDevices
from xjit.lowering.stablehlo_text import Builder
from xprim import HostBackend, contracts
from xprim.eager import Backend
from xstack.compiler_on_demand import CompilerOnDemand


def backends() -> list[Backend]:
    return [HostBackend(), EagerBackend(), NoDevices(), CompilerOnDemand()]


def builder(made: Builder) -> contracts.Builder:
    return made


def axis(made: BatchAxis) -> contracts.BatchAxis:
    return made


def split(made: Linearized) -> contracts.SplitProgram:
    return made


def handles() -> tuple[contracts.JVPHandle, contracts.LinearizeHandle, contracts.TransposeHandle]:
    return JVPHandle(), LinearizeHandle(), TransposeHandle()
