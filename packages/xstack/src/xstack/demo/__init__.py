"""The demo: train a classifier of handwritten digits, then again on eight devices at once.

    python -m xstack.demo --help

Modules: `settings` reads the command line, `data` the images, `classifier` is the model and its
update step, `training` runs it, `plots` draws the results, `linear_regression` is the second task.
"""

__all__ = ()

__tracebackhide__ = False  # a program to be read: its lines are shown, as those of a user are
