"""Run the demo: `python -m xstack.demo`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xstack.demo.settings import DemoError, Settings, parse
from xstack.demo.training import CtrlC
from xtree.namespaces import import_by_name, late_import

_regression = late_import("xstack.demo.linear_regression", "it loads the compiler: not for --help")
_training = late_import("xstack.demo.training", "it loads the compiler: not for --help")
_plots = late_import("xstack.demo.plots", "the extra demo installs what it needs")
_console = late_import("rich.console", "the extra demo installs it")
_bars = late_import("rich.progress", "the extra demo installs it")

BAR = 24  # columns of a progress bar: with the figures a line has fewer than 80
_LIBRARIES = {"matplotlib": "matplotlib", "rich": "rich", "sklearn": "scikit-learn"}
STOPPED = 130  # the exit status of what Ctrl-C ended, by the shells' custom


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo with a command line; returns the exit status."""
    try:
        settings = parse(argv)
        if settings.task == "linear-regression":
            return _linear_regression(settings)
        with CtrlC() as ctrl_c:
            return _digits(settings, ctrl_c)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("demo: stopped", file=sys.stderr)
        return STOPPED


def _linear_regression(settings: Settings) -> int:
    true_loss, table = _regression.losses(settings.seed, min(settings.steps, 100))
    print(f"loss of the true parameters: {true_loss:.8f}")
    print(" step        loss")
    for step, value in table:
        print(f"{step:5d}  {value:10.7f}")
    return 0


def _digits(settings: Settings, ctrl_c: CtrlC) -> int:
    out = _writable(settings.out)
    _require_libraries(["matplotlib", "rich"] if settings.data else list(_LIBRARIES))
    start = time.perf_counter()
    for name in ("xstack.numpy", "xstack.random"):
        import_by_name(name)
    xjit = import_by_name("xjit")
    importing = time.perf_counter() - start
    data_module, training, mesh_training = (
        import_by_name(f"xstack.demo.{n}") for n in ("data", "training", "mesh_training")
    )
    mesh_training.join(settings)
    is_first = xjit.process_index() == 0  # of several processes one speaks
    data = data_module.load(settings.data, settings.seed)
    console, bar = _progress(settings.steps, is_first)
    console.print(
        f"{len(data.train_x)} training and {len(data.test_x)} held-out examples of "
        f"{data.train_x.shape[1]} features, {len(data.classes)} classes"
    )
    with bar("one device") as report:
        run = training.train(data, settings, report, ctrl_c)
    parallel = None
    if settings.mesh is not None:
        with bar("mesh {}x{}".format(*settings.mesh)) as report:
            parallel = mesh_training.train_over_mesh(data, settings, report, ctrl_c)
    elif not ctrl_c.pressed:
        with bar(f"{settings.replicas} devices") as report:
            parallel = training.train_data_parallel(data, settings, report, ctrl_c)
    seconds = {"import": importing, **run.seconds_by_phase}
    label = "data-parallel" if settings.mesh is None else "over the mesh"
    _summary(console, seconds, run, parallel, label)
    if ctrl_c.pressed:
        console.print("stopped by the user, drawing what there is")
    if is_first:
        _draw(run, parallel, data, out, console)
    return STOPPED if ctrl_c.pressed else 0


def _require_libraries(names: Sequence[str]) -> None:
    """Say before the training which libraries are missing, all of them at once."""
    reasons = {}
    for name in names:
        try:
            import_by_name(name)
        except ImportError as error:
            reasons[_LIBRARIES[name]] = str(error)
    if reasons:
        missing = " ".join(reasons)
        raise DemoError(
            f"these cannot be imported ({'; '.join(reasons.values())}): "
            f"python3 -m pip install {missing}"
        )


def _writable(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DemoError(f"{out}: cannot be written to: {error.strerror or error}") from error
    return out


def _progress(steps: int, is_shown: bool) -> tuple[Any, Any]:
    """Return a console and a function that makes a progress bar with loss and accuracy."""
    console = _console.Console(highlight=False, quiet=not is_shown)

    @contextmanager
    def bar(label: str) -> Any:
        columns = (_bars.TextColumn("{task.description:<10}"), _bars.BarColumn(BAR),
                   _bars.MofNCompleteColumn(),
                   _bars.TextColumn("{task.fields[figures]}"))  # fmt: skip
        with _bars.Progress(*columns, console=console) as progress:
            task = progress.add_task(label, total=steps, figures="")

            def report(step: int, loss: float, accuracy: float) -> None:
                figures = f"loss {loss:.4f}  accuracy {accuracy:.3f}"
                progress.update(task, completed=step, figures=figures)

            yield report

    return console, bar


def _summary(console: Any, seconds: dict[str, float], run: Any, parallel: Any, label: str) -> None:
    timing = ", ".join(f"{phase} {value:.2f} s" for phase, value in seconds.items())
    console.print(timing)
    if run.accuracies:
        console.print(f"held-out accuracy {run.accuracies[-1][1]:.4f}, loss {run.losses[-1]:.5f}")
    if parallel is not None and parallel.losses and len(parallel.losses) == len(run.losses):
        difference = abs(parallel.losses[-1] - run.losses[-1]) / abs(run.losses[-1])
        console.print(
            f"{label}: accuracy {parallel.accuracies[-1][1]:.4f}, "
            f"loss {parallel.losses[-1]:.5f} (relative difference {difference:.1e})"
        )
        seconds = parallel.seconds_by_phase["training"]
        console.print(f"{label}: training {seconds:.2f} s with compilation")


def _draw(run: Any, parallel: Any, data: Any, out: Path, console: Any) -> None:
    found = _training.find_classes(run.params, data)
    paths = [out / name for name in ("loss.png", "confusion.png", "predictions.png")]
    _plots.loss_curve(run, parallel, paths[0])
    _plots.confusion_matrix(found, data, paths[1])
    _plots.sample_predictions(found, data, paths[2])
    for path in paths:
        console.print(f"wrote {path}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
