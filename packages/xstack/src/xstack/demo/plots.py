"""The pictures: loss curve, confusion matrix, sample predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from xstack.demo.data import Dataset
from xstack.demo.training import Run

__all__ = ()

matplotlib.use("Agg")  # draws to files, needs no screen

from matplotlib import pyplot as plt

BLUE, ORANGE = "#1f5fa8", "#d9822b"


def loss_curve(run: Run, parallel: Run | None, path: Path) -> None:
    """Draw the loss of every step, and the held-out accuracy, over the steps."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    steps = np.arange(1, len(run.losses) + 1)
    marker = "." if len(steps) < 20 else ""  # a line of one point is not seen
    axes.semilogy(steps, run.losses, color=BLUE, lw=0.8, marker=marker, label="one device")
    if parallel is not None and parallel.losses:
        every = max(1, len(parallel.losses) // 40)
        axes.semilogy(
            np.arange(1, len(parallel.losses) + 1)[::every], parallel.losses[::every],
            color="black", marker="o", ms=4, mfc="none", ls="", label="data-parallel",
        )  # fmt: skip
    axes.set(xlabel="update", ylabel="training loss of the batch (log scale)")
    axes.grid(alpha=0.3)
    if run.accuracies:
        right = axes.twinx()
        x, y = zip(*run.accuracies, strict=True)
        right.plot(x, y, color=ORANGE, marker="o", ms=3, label="held-out accuracy")
        right.set_ylabel("held-out accuracy")
        right.set_ylim(min(0.8, *y), 1.0)
        handles = [*axes.get_lines(), *right.get_lines()]
        axes.legend(handles=handles, loc="center right")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def confusion_matrix(found: Any, data: Dataset, path: Path) -> None:
    """Draw how often each class of the held-out examples was taken for each class."""
    n = len(data.classes)
    counts = np.zeros((n, n), int)
    np.add.at(counts, (data.test_y, found), 1)
    side = max(4.5, 0.45 * n)
    figure, axes = plt.subplots(figsize=(side, side), layout="constrained")
    axes.imshow(counts, cmap="Blues", vmax=max(1, counts.max()))
    axes.set(xlabel="predicted", ylabel="true", xticks=range(n), yticks=range(n),
             xticklabels=data.classes, yticklabels=data.classes)  # fmt: skip
    axes.set_title(f"{int(np.trace(counts))} of {counts.sum()} held-out examples right")
    if n <= 20:
        for i, j in np.argwhere(counts > 0):
            color = "white" if counts[i, j] > counts.max() / 2 else "black"
            axes.text(j, i, str(counts[i, j]), ha="center", va="center", color=color)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def sample_predictions(found: Any, data: Dataset, path: Path) -> None:
    """Draw held-out examples with true and predicted labels, the wrong ones first."""
    wrong = np.flatnonzero(found != data.test_y)
    right = np.flatnonzero(found == data.test_y)
    chosen = np.concatenate([wrong[:12], right])[:24]
    figure, grid = plt.subplots(3, 8, figsize=(10, 4.8), layout="constrained")
    for axes in grid.flat:
        axes.axis("off")
    for axes, i in zip(grid.flat, chosen, strict=False):
        if data.image_shape is not None:
            axes.imshow(data.test_x[i].reshape(data.image_shape), cmap="gray_r")
        else:
            axes.plot(data.test_x[i], color=BLUE)
        truth, guess = data.classes[data.test_y[i]], data.classes[int(found[i])]
        good = truth == guess
        title = f"{guess}" if good else f"{guess}, is {truth}"
        axes.set_title(title, color="black" if good else "#b00020", fontsize=10)
    figure.suptitle("Predictions on held-out examples (wrong ones first, in red)")
    figure.savefig(path, dpi=120)
    plt.close(figure)
