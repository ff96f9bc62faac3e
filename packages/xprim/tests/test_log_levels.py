"""The option logging_level shows what the packages log, and puts loggers back."""

import logging
import subprocess
import sys

import pytest

from xprim import config
from xprim.strict_options import logging_level


@pytest.fixture(autouse=True)
def _put_back():
    yield
    config.update("logging_level", None)


def test_a_level_sets_loggers_and_none_puts_them_back(capsys):
    logger = logging.getLogger("xjit")
    logger.setLevel(logging.ERROR)
    config.update("jax_logging_level", "DEBUG")
    logger.debug("shown")
    config.update("logging_level", "INFO")
    assert logger.level == logging.INFO and len(logger.handlers) == 1
    config.update("logging_level", None)
    assert logger.level == logging.ERROR and not logger.handlers
    logger.setLevel(logging.NOTSET)


def test_records_are_written_to_standard_error_with_their_logger():
    code = "import logging, xprim; logging.getLogger('xnp').info('told')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={"XSTACK_LOGGING_LEVEL": "INFO"})  # fmt: skip
    assert run.stderr.startswith("INFO:") and ":xnp:1: told" in run.stderr


def test_a_level_is_not_for_a_block():
    with pytest.raises(TypeError, match=r"loggers belong to the process(.|\n)*config.update"):
        logging_level("DEBUG")
    with pytest.raises(ValueError, match="logging_level: the option does not take this value"):
        config.update("logging_level", "debug")
