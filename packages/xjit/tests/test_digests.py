"""Digests are those of `hashlib`, and small ones load no OpenSSL."""

import hashlib
import subprocess
import sys

import pytest

from xjit.byte_formats import sha256


@pytest.mark.parametrize("size", [0, 100, (1 << 21) + 1])
def test_digests_are_those_of_hashlib(size):
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert sha256(data).digest() == hashlib.sha256(data).digest()
    assert sha256(memoryview(data)).hexdigest() == hashlib.sha256(data).hexdigest()


@pytest.mark.usefixtures("unmeasured_processes")
def test_a_compiled_program_loads_no_openssl():
    program = (
        "import sys, xnp; from xjit import jit; jit(lambda x: x * 2)(xnp.ones(3)); "
        "print('_hashlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]
