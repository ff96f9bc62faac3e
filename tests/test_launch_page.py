"""The files to copy on the page "launch under a scheduler" start jobs."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.nets.cells import IN_FULL

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "howto" / "launch.md"
JOBS = DOCS / "tutorials" / "jobs.md"


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
import os
import numpy as np
import xstack
from xstack import NamedSharding, P
xstack.distributed.initialize(cluster_detection_method="ompi")
mesh = xstack.make_mesh((3,), ("data",))
x = xstack.make_array_from_process_local_data(
    NamedSharding(mesh, P("data")), np.full(1, xstack.process_index() + 1.0, np.float32))
total = float(xstack.jit(lambda x: x.sum())(x))
os.write(1, f"sum {total}\\n".encode())  # at once: all three write to one terminal
"""


@pytest.mark.fuzz
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not a dependency")
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


# ------------------------------------------------------------------------ Slurm and Kubernetes
# The jobs of "jobs that survive", of which a process is killed in its first attempt.

KILLED = "    if step == 110 and xstack.process_index() == 2 and not marker.exists():\n"


def training_that_is_killed_once(folder):
    """Write `train.py` of the tutorial, whose process 2 kills itself once at step 110."""
    (text,) = re.findall(r"<!-- run: [^\n]* -->\n```python\n(.*?)```", JOBS.read_text(), re.DOTALL)
    killed = (
        f"    marker = Path({str(folder / 'killed')!r})\n    {KILLED}            marker.touch()\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n        w = train(w, "
    )
    assert text.count("        w = train(w, ") == 1
    text = text.replace("        w = train(w, ", "    " + killed)
    begins = "    done, w = manager.restore_or(w)"
    assert text.count(begins) == 1
    text = text.replace(begins, f"{begins}; print('begins after', done, flush=True)")
    (folder / "train.py").write_text(f"import os, signal\nfrom pathlib import Path\n{text}")


def check_that_it_continued(printed, count):
    """Assert that the second attempt began at the last complete checkpoint, and ended."""
    begun = re.findall(r"begins after (\d+)", printed)
    assert begun[:count] == ["0"] * count, printed
    assert len(begun) == 2 * count and set(begun[count:]) <= {"80", "100"}, printed
    assert "process 2 of 4 has failed" in printed
    assert printed.count("w: [ 1.  -2.   0.5]") == 1


CLUSTER = """\
ClusterName=one
SlurmctldHost={host}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
SlurmctldPort={ports[0]}
NodeName={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES State=UP
"""
SLURM = ("slurmctld", "slurmd", "sbatch", "srun")


@pytest.fixture
def slurm(tmp_path):
    """Start a cluster of one node; yield the variables with which its commands find it."""
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    folder = tmp_path / "slurm"
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    conf = folder / "slurm.conf"
    conf.write_text(CLUSTER.format(host=socket.gethostname(), folder=folder, ports=ports))
    daemons = [
        subprocess.Popen([shutil.which(name), "-D", "-f", str(conf)], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
        for name in SLURM[:2]
    ]  # fmt: skip
    variables = {"SLURM_CONF": str(conf)}
    try:
        until = time.monotonic() + 60
        while run(["sinfo", "-h", "-o", "%t"], **variables).stdout.strip() != "idle":
            assert time.monotonic() < until, (folder / "slurmctld.log").read_text()
            time.sleep(0.5)
        yield variables
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(30)


@pytest.mark.fuzz
@pytest.mark.skipif(not IN_FULL, reason="it takes most of a minute: `nox -s fuzz` runs it")
@pytest.mark.skipif(
    os.getuid() != 0 or any(shutil.which(name) is None for name in SLURM),
    reason="Slurm is not a dependency, and its daemons are started as root",
)
def test_a_job_of_slurm_starts_again_when_a_process_is_killed(slurm, tmp_path):
    training_that_is_killed_once(tmp_path)
    (text,) = [text for text in blocks("sh") if "#SBATCH" in text]
    (tmp_path / "train.sbatch").write_text(text)
    python = tmp_path / "bin" / "python3"  # a link would not find the packages of a venv
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    # the file as it stands, but for four processes on the one node there is
    options = ["--nodes=1", "--ntasks-per-node=4", "--cpus-per-task=1", f"--chdir={tmp_path}"]
    ended = run(
        ["sbatch", "--wait", *options, str(tmp_path / "train.sbatch")],
        PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}", **slurm,
    )  # fmt: skip
    (log,) = tmp_path.glob("train-*.log")
    printed = log.read_text()
    assert ended.returncode == 0, ended.stderr + printed
    check_that_it_continued(printed, 4)


POD = """\
set -e
hostname {name}-{index}
mount --bind {hosts} /etc/hosts
exec {python} train.py
"""


@pytest.mark.fuzz
@pytest.mark.skipif(not IN_FULL, reason="it takes 15 seconds: `nox -s fuzz` runs it")
@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("unshare") is None, reason="it needs namespaces"
)
def test_the_pods_of_an_indexed_job_find_each_other_and_start_again(tmp_path):
    """Pods are processes with a host name and a file of hosts of their own, as in a cluster.

    What the control plane does is done here: a pod that fails is started again.
    """
    yaml = pytest.importorskip("yaml")
    training_that_is_killed_once(tmp_path)
    service, job = yaml.safe_load_all(blocks("yaml")[0])
    name, spec = job["metadata"]["name"], job["spec"]
    domain = f"{service['metadata']['name']}.default.svc.cluster.local"
    variables = {
        one["name"]: one["value"] for one in spec["template"]["spec"]["containers"][0]["env"]
    }
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(
        f"127.0.0.1 {name}-{i}.{domain} {name}-{i}.{domain.partition('.')[0]} {name}-{i}\n"
        for i in range(spec["completions"])
    ))  # fmt: skip
    log = tmp_path / "log"

    def start(index):
        environ = os.environ | variables | {
            "JOB_COMPLETION_INDEX": str(index), "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "XSTACK_PLATFORMS": "cpu", "XSTACK_NUM_CPU_DEVICES": "1",
        }  # fmt: skip
        script = POD.format(name=name, index=index, hosts=hosts, python=sys.executable)
        # the name in the file of hosts must be that of this pod where several have one address
        own = tmp_path / f"hosts{index}"
        lines = hosts.read_text().splitlines(keepends=True)
        own.write_text("".join([lines[index], *lines[:index], *lines[index + 1 :]]))
        script = script.replace(str(hosts), str(own))
        with log.open("a") as out:
            return subprocess.Popen(
                ["unshare", "--uts", "--mount", "sh", "-c", script], stdout=out, stderr=out,
                env=environ, cwd=tmp_path,
            )  # fmt: skip

    pods = {index: start(index) for index in range(spec["completions"])}
    failures = 0
    try:
        until = time.monotonic() + 180
        while any(pod.poll() != 0 for pod in pods.values()):
            assert time.monotonic() < until, log.read_text()
            for index, pod in pods.items():
                if pod.poll() not in (None, 0):
                    failures += 1
                    assert failures <= spec["backoffLimit"], log.read_text()
                    pods[index] = start(index)
            time.sleep(0.2)
    finally:
        for pod in pods.values():
            pod.kill()
            pod.wait()
    check_that_it_continued(log.read_text(), spec["completions"])
    assert failures == spec["completions"]
