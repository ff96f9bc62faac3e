"""The files to copy on the page "launch under a scheduler" start jobs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "launch.md"


def blocks(language):
    """Return the texts of the page's fenced blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_shell_files_have_no_faults_of_syntax():
    for text in blocks("sh"):
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_the_job_of_kubernetes_has_as_many_pods_as_processes():
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all(blocks("yaml")[0])
    assert service["spec"]["clusterIP"] == "None"
    spec = job["spec"]
    pod = spec["template"]["spec"]
    assert spec["completionMode"] == "Indexed" and pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"]["job-name"] == job["metadata"]["name"]
    (count,) = [
        int(variable["value"])
        for variable in pod["containers"][0]["env"]
        if variable["name"] == "XSTACK_NUM_PROCESSES"
    ]
    assert spec["completions"] == spec["parallelism"] == count


def run(command, **variables):
    """Return what a command printed whose processes have one device each."""
    environment = os.environ | {"XSTACK_PLATFORMS": "cpu", "XSTACK_NUM_CPU_DEVICES": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=180, env=environment | variables,
        check=False,
    )  # fmt: skip


MPI = """
import numpy as np
import xstack
from xstack import NamedSharding, P
xstack.distributed.initialize(cluster_detection_method="ompi")
mesh = xstack.make_mesh((3,), ("data",))
x = xstack.make_array_from_process_local_data(
    NamedSharding(mesh, P("data")), np.full(1, xstack.process_index() + 1.0, np.float32))
print("sum", float(xstack.jit(lambda x: x.sum())(x)))
"""


@pytest.mark.fuzz
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is no dependency")
def test_processes_of_open_mpi_find_each_other():
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", sys.executable]
    ended = run([*command, "-c", MPI])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("sum 6.0") == 3


RAY = """
import os, sys
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
sys.path.insert(0, {folder!r})
import ray
import train_ray

def work(marker={marker!r}):
    import os, signal
    import numpy as np
    import xstack
    from xstack import NamedSharding, P
    number = xstack.process_index()
    if number == 1 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    mesh = xstack.make_mesh((2,), ("data",))
    x = xstack.make_array_from_process_local_data(
        NamedSharding(mesh, P("data")), np.full(1, number + 1.0, np.float32))
    return number, float(xstack.jit(lambda x: x.sum())(x))

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
print(train_ray.run_on_hosts(work, 2, restarts=1, num_cpus=1))
ray.shutdown()
"""


@pytest.mark.fuzz
def test_actors_of_ray_run_a_job_and_start_again(tmp_path):
    pytest.importorskip("ray", reason="Ray is an optional dependency")
    (text,) = blocks("python")
    (tmp_path / "train_ray.py").write_text(text)
    program = RAY.format(folder=str(tmp_path), marker=str(tmp_path / "killed"))
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    ended = run([sys.executable, "-c", program], PYTHONPATH=paths)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == "[(0, 3.0), (1, 3.0)]"
    assert (tmp_path / "killed").exists()
