"""Jobs that survive: processes are killed and stopped, and the job comes back where it was.

The reference is the same training in NumPy (`surviving_job.exact_training`).
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from packages.xpar.tests.surviving_job import HEARTBEAT, SAVE_INTERVAL, exact_training
from packages.xpar.tests.test_launch import start
from tests.processes import communicate
from xpar import checkpoints

pytest.importorskip("safetensors")
JOB = Path(__file__).with_name("surviving_job.py")


def environment(**more):
    """Return the environment of a job: that of the tests, without what is set for them."""
    others = {k: v for k, v in os.environ.items() if not k.startswith("XSTACK_")}
    return others | {"XSTACK_ENABLE_COMPILATION_CACHE": "0", "XSTACK_PLATFORMS": "cpu",
                     "XSTACK_RETRACES": "allow", **more}  # fmt: skip


class RunningJob:
    """A launched job, and what its processes say."""

    def __init__(self, folder, steps, *options, before=()):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.launcher = subprocess.Popen(
            [*before, sys.executable, "-m", "xpar", "launch", *options, str(JOB), str(folder),
             str(steps)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
        )  # fmt: skip

    def said(self, attempt=None):
        """Return what the processes have said, by their numbers."""
        found = {}
        for path in self.folder.glob("said-*.jsonl"):
            lines = [json.loads(line) for line in path.read_text().splitlines() if line[-1:] == "}"]
            found[int(path.stem[5:])] = [
                line for line in lines if attempt is None or line["attempt"] == attempt
            ]
        return found

    def wait_for(self, is_there, seconds=90):
        """Wait until something is said in this attempt; return whether the job still runs."""
        end = time.monotonic() + seconds
        while not is_there():
            if self.launcher.poll() is not None:
                return False
            assert time.monotonic() < end, "the job hangs"
            time.sleep(0.01)
        return True

    def has_begun(self, attempt, count):
        """Return whether all processes of an attempt run."""
        return sum([bool(lines) for lines in self.said(attempt).values()]) == count

    def pid(self, attempt, process):
        """Return the process id of a process."""
        return self.said(attempt)[process][0]["pid"]

    def finish(self):
        """Wait for the end; return what the launcher printed."""
        return communicate(self.launcher, 120)[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """End the launcher and its processes, also those that are stopped."""
        self.launcher.terminate()  # first, so that no attempt follows
        for lines in self.said().values():
            for line in lines:
                if "pid" in line and is_running(line["pid"]):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(line["pid"], signal.SIGKILL)
        try:
            self.launcher.wait(timeout=30)
        finally:
            self.launcher.kill()
            self.launcher.stdout.close()


def is_running(pid):
    """Return whether there is a process of this number that a launcher can have started."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def check_history(job, steps, killed_at, printed):
    """Check that no step was lost beyond the last checkpoint, and that all numbers are right."""
    said = job.said()
    reference = exact_training(steps)
    done, complete = 0, 0
    for line in sorted(said[0], key=lambda line: line["at"]):
        if "restored" in line:
            # the last checkpoint that was due is there, or the one before, which was complete
            # when the last one began
            assert done - 2 * SAVE_INTERVAL < line["restored"] <= done, (line, done, printed)
            assert line["restored"] % SAVE_INTERVAL == 0 and line["restored"] >= complete
            done = complete = line["restored"]
        elif "step" in line:
            assert line["step"] == done + 1, (line, done, printed)
            done = line["step"]
            assert line["values"] == reference[done - 1], (line, reference[done - 1], printed)
    assert done == steps and job.launcher.returncode == 0, printed
    for lines in said.values():
        for line in lines:
            if "step" in line:
                assert line["values"] == reference[line["step"] - 1]
    assert checkpoints.steps(job.folder / "steps")[-1] == steps // SAVE_INTERVAL * SAVE_INTERVAL
    begun = {}
    for lines in said.values():
        for line in lines:
            if "pid" in line:
                begun.setdefault(line["attempt"], []).append(line["at"])
    return [min(begun[attempt + 1]) - at for attempt, at in killed_at.items()]


def run_with_kills(folder, seed, kills, count, steps=60, *options):
    """Run a job, and kill or stop a random process in each attempt at a random moment."""
    chance = random.Random(seed)
    killed_at = {}
    with RunningJob(folder, steps, "-n", str(count), "--restarts", str(kills),
                    "--heartbeat", str(HEARTBEAT), *options) as job:  # fmt: skip
        for attempt in range(kills):
            if not job.wait_for(lambda a=attempt: job.has_begun(a, count)):
                break
            by = chance.choice([signal.SIGKILL] * 3 + [signal.SIGSTOP])
            if by == signal.SIGSTOP or chance.random() < 0.7:  # in the loop, else anywhere
                at_step = chance.randrange(1, 12)

                def is_there(attempt=attempt, at_step=at_step):
                    lines = job.said(attempt)[0]
                    return sum(["step" in line for line in lines]) >= at_step

                job.wait_for(is_there)
            time.sleep(chance.random() * 0.2)
            victims = chance.sample(range(count), 1 + (chance.random() < 0.2))
            pids = [job.pid(attempt, victim) for victim in victims]
            if job.launcher.poll() is None:
                killed_at[attempt] = time.time()
                for pid in pids:
                    os.kill(pid, by)
        printed = job.finish()
    return job, killed_at, printed


def test_no_process_is_left_of_a_job_that_a_test_leaves(tmp_path):
    with RunningJob(tmp_path / "job", 10**6, "-n", "2", "--restarts", "5") as job:
        assert job.wait_for(lambda: job.has_begun(0, 2))
        pids = [job.pid(0, process) for process in range(2)]
        os.kill(pids[1], signal.SIGSTOP)
        assert all(is_running(pid) for pid in pids)
    assert job.launcher.returncode and not any(is_running(pid) for pid in pids)


def test_a_job_comes_back_from_its_last_checkpoint_with_equal_numbers(tmp_path):
    job, killed_at, printed = run_with_kills(tmp_path / "job", seed=1, kills=1, count=2)
    assert len(killed_at) == 1
    check_history(job, 60, killed_at, printed)
    assert "launch: attempt 2 begins with 2 processes." in printed


@pytest.mark.fuzz
@pytest.mark.skipif("FUZZ_PROGRAMS" not in os.environ, reason="it starts processes: half a minute")
@pytest.mark.parametrize("seed", range(20))
def test_a_job_survives_random_kills(seed, tmp_path):
    count = 2 + seed % 2
    job, killed_at, printed = run_with_kills(tmp_path / "job", seed, 5, count, 90)
    seconds = check_history(job, 90, killed_at, printed)
    assert len(killed_at) == 5, printed
    # from the kill to the processes of the next attempt: a heartbeat, the launcher's grace of 5 s,
    # and what a busy machine takes
    sys.stdout.write(
        f"{len(killed_at)} kills, longest {max(seconds):.1f} s, mean "
        f"{sum(seconds) / len(seconds):.1f} s until the next attempt\n"
    )
    assert max(seconds) < HEARTBEAT + 20, seconds


@pytest.mark.fuzz
@pytest.mark.skipif("FUZZ_PROGRAMS" not in os.environ, reason="it starts processes: some seconds")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP])
def test_a_job_goes_on_with_fewer_processes_where_that_is_permitted(by, tmp_path):
    options = ("-n", "3", "--restarts", "2", "--min-processes", "2")
    with RunningJob(tmp_path / "job", 40, *options) as job:
        for attempt, count in ((0, 3), (1, 2)):
            assert job.wait_for(
                lambda a=attempt, c=count: (
                    job.has_begun(a, c) and sum(["step" in line for line in job.said(a)[0]]) > 5
                )
            )
            os.kill(job.pid(attempt, 1), by)
        printed = job.finish()
    check_history(job, 40, {}, printed)
    counts = [line["processes"] for line in job.said()[0] if "restored" in line]
    assert counts == [3, 2, 2], printed
    if by == signal.SIGSTOP:
        assert "launch: process 1 of 3 gave no sign of life; the others were ended." in printed


class Network:
    """Hosts that are network namespaces on one bridge, which is that of host 0."""

    def __init__(self, count):
        self.names = [f"xpar{os.getpid()}-{i}" for i in range(count)]
        self.run("link", "add", "br0", "type", "bridge", create=self.names, at=0)
        for i in range(count):
            self.run("link", "set", "lo", "up", at=i)
            if i:
                self.run("link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns",
                         self.names[i], at=0)  # fmt: skip
                self.run("link", "set", f"v{i}", "master", "br0", at=0)
                self.run("link", "set", f"v{i}", "up", at=0)
            where = "eth0" if i else "br0"
            self.run("addr", "add", f"10.77.0.{i + 1}/24", "dev", where, at=i)
            self.run("link", "set", where, "up", at=i)

    def run(self, *command, at, create=()):
        """Run a command of `ip` at a host."""
        for name in create:
            subprocess.run(["ip", "netns", "add", name], check=True)
        subprocess.run(["ip", "-n", self.names[at], *command], check=True)

    def start(self, host, folder, steps, *options):
        """Start a launcher at a host."""
        return RunningJob(
            folder, steps, "--host", str(host), "--coordinator-address", "10.77.0.1:7777", *options,
            before=("ip", "netns", "exec", self.names[host]),
        )  # fmt: skip

    def close(self):
        """Remove the hosts."""
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.fixture
def network():
    """Three hosts; root alone can make them."""
    made = None
    try:
        made = Network(3)
        yield made
    finally:
        if made is not None:
            made.close()


needs_namespaces = pytest.mark.skipif(
    "FUZZ_PROGRAMS" not in os.environ or shutil.which("ip") is None or os.getuid() != 0,
    reason="it makes network namespaces, which needs root and `ip`, and takes a minute",
)


@pytest.mark.fuzz
@needs_namespaces
def test_a_host_that_is_lost_is_left_out_and_its_processes_end(network, tmp_path):
    options = ("-n", "1", "--hosts", "3", "--restarts", "3", "--min-processes", "2", "--wait", "5",
               "--heartbeat", "6")  # fmt: skip
    with contextlib.ExitStack() as stack:
        hosts = [
            stack.enter_context(network.start(i, tmp_path / "job", 60, *options)) for i in range(3)
        ]
        job = hosts[0]
        assert job.wait_for(
            lambda: job.has_begun(0, 3) and sum(["step" in x for x in job.said(0)[0]]) > 5
        )
        network.run("link", "set", "v2", "down", at=0)
        printed = [host.finish() for host in hosts]
    check_history(job, 60, {}, printed[0])
    counts = [line["processes"] for line in job.said()[0] if "restored" in line]
    assert counts == [3, 2], printed
    assert [host.launcher.returncode for host in hosts] == [0, 0, 1], printed
    assert "launch: no launcher answers at 10.77.0.1:7777." in printed[2]
    lost = job.said(0)[2][0]["pid"]
    with pytest.raises(ProcessLookupError):
        os.kill(lost, 0)


@pytest.mark.fuzz
@needs_namespaces
def test_a_process_that_fails_on_one_host_has_all_hosts_start_again(network, tmp_path):
    options = ("-n", "1", "--hosts", "2", "--restarts", "1", "--heartbeat", "10")
    with contextlib.ExitStack() as stack:
        hosts = [
            stack.enter_context(network.start(i, tmp_path / "job", 30, *options)) for i in range(2)
        ]
        job = hosts[0]
        assert job.wait_for(
            lambda: job.has_begun(0, 2) and sum(["step" in x for x in job.said(0)[0]]) > 5
        )
        os.kill(job.pid(0, 1), signal.SIGKILL)
        printed = [host.finish() for host in hosts]
    check_history(job, 30, {}, printed[0])
    assert [host.launcher.returncode for host in hosts] == [0, 0], printed
    assert "launch: process 1 of 2 ended by SIGKILL; the others were ended." in printed[1]
    assert all("launch: attempt 2 begins with 2 processes." in text for text in printed)


@pytest.mark.fuzz
@needs_namespaces
def test_the_others_name_a_process_whose_host_is_cut_off(network, tmp_path):
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(
                ["ip", "netns", "exec", network.names[i], sys.executable, str(JOB), str(tmp_path),
                 "1000000"],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                env=environment(XSTACK_COORDINATOR_ADDRESS="10.77.0.1:7777", XSTACK_ATTEMPT="0",
                                XSTACK_NUM_PROCESSES="3", XSTACK_PROCESS_ID=str(i)),
            ))
            for i in range(3)
        ]  # fmt: skip
        for process in processes:
            stack.callback(process.kill)
        end = time.monotonic() + 90
        while len(checkpoints.steps(tmp_path / "steps")) < 2:
            assert time.monotonic() < end and all(p.poll() is None for p in processes)
            time.sleep(0.05)
        network.run("link", "set", "v2", "down", at=0)
        for process in processes[:2]:
            said = communicate(process, HEARTBEAT + 30)[1]
            assert "ProcessFailureError: distributed: process 2 of 3" in said, said


def test_no_attempt_follows_the_last_one_or_a_request_to_end(tmp_path):
    script = """
        import os, signal, sys, time
        print("attempt", os.environ["XSTACK_ATTEMPT"])
        if os.environ["XSTACK_PROCESS_ID"] == "0":
            sys.exit(3) if sys.argv[1] == "one" else None
        time.sleep(600)
    """
    launcher = start(tmp_path, script, "-n", "2", "--restarts", "2")
    printed, errors = communicate(launcher, 60)
    assert launcher.returncode == 3
    assert [f"[0] attempt {i}" in printed for i in range(4)] == [True] * 3 + [False]
    assert errors.count("process 0 of 2 ended with status 3; the others were ended.") == 3
    launcher = start(tmp_path, script.replace('"one"', '"two"'), "-n", "2", "--restarts", "2")
    assert launcher.stdout.readline().endswith("attempt 0\n")
    launcher.send_signal(signal.SIGTERM)
    printed, errors = communicate(launcher, 60)
    assert launcher.returncode == 128 + 15 and "attempt 1" not in printed + errors
