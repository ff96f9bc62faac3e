"""Ask a built site's search what people ask: `python tools/site_search.py docs/_build/html`.

Each question has pages that answer it; one of them must be among the first three that are found.
The site's own scripts are run by Node (`site_search.js`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ANSWERS = {
    "how do I use a GPU": "explain/gpus",
    "install on GPU": "explain/gpus",
    "find a NaN": "howto/find_a_nan",
    "where does my NaN come from": "howto/find_a_nan",
    "why does it recompile": "howto/find_recompiles",
    "recompilation": "howto/find_recompiles",
    "save and restore training": "tutorials/checkpoints",
    "save a checkpoint": "tutorials/checkpoints",
    "load data": "howto/load_data",
    "float64": "howto/float64",
    "double precision": "howto/float64",
    "profile a program": "howto/profile",
    "trace viewer": "howto/profile",
    "wrap a C function": "howto/wrap_c",
    "reproducible results": "howto/reproducible",
    "test my code": "howto/test_your_code",
    "several processes": "tutorials/processes howto/launch",
    "write a primitive": "tutorials/xprim explain/from_scratch",
    "move from PyTorch": "explain/coming_from_pytorch",
    "coming from JAX": "explain/coming_from_jax",
    "NumPy differences": "explain/coming_from_numpy",
    "sharp edges": "explain/sharp_edges",
    "sparse matrix": "tutorials/sparse",
    "random numbers": "tutorials/xrandom",
    "second derivative": "tutorials/xad tutorials/taylor",
    "pipeline parallel": "recipes/pipeline",
    "data parallel": "recipes/data_parallel",
    "gradient accumulation": "recipes/gradient_accumulation",
    "export a model": "explain/exported_programs gallery/exported_model",
    "supported Python versions": "support compatibility",
    "out of memory": "explain/gpus reference/errors",
    "flax": "ecosystem",
    "fast programs": "explain/fast_programs",
}
"""The pages that answer a question, by the question."""


def main(site: str) -> int:
    """Print the questions that find none of their pages, and return whether there are any."""
    found = subprocess.run(
        ["node", Path(__file__).with_suffix(".js"), site],
        input=json.dumps(list(ANSWERS)), stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    missed = 0
    for (question, answers), pages in zip(ANSWERS.items(), json.loads(found), strict=True):
        if not set(pages) & set(answers.split()):
            missed += 1
            print(f"{question}: expected {answers}, found {', '.join(pages) or 'nothing'}")
    print(f"search: {len(ANSWERS) - missed} of {len(ANSWERS)} questions find their page")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
