"""Make the shared samples importable whatever directory the tests run in."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
