"""`python -m xpar launch -n 4 script.py`: several processes of one program on this machine."""

import sys

from xpar.launch import main

__all__ = ()

sys.exit(main())
