"""How processes find each other, who is missing, and what schedulers say of them."""

import contextlib
import json
import selectors
import socket
import struct
import threading
import time
import warnings

import pytest

from packages.xpar.tests.several_processes import free_address
from xpar import distributed, distributed as clusters, launch


@pytest.fixture(autouse=True)
def _no_devices_in_use(monkeypatch):
    """Let `initialize` begin in a process that other tests have used."""
    monkeypatch.setattr(distributed.gateway, "has_clients", lambda: False)


@contextlib.contextmanager
def coordinator(count, seconds):
    """Gather processes in a thread of this one; yield the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    found = distributed.Gathering(listener, count)

    def run():
        if found.gather(time.monotonic() + seconds, seconds):
            found.start()
            found.wait_for_the_end(lambda: False)

    address = f"127.0.0.1:{listener.getsockname()[1]}"
    thread = threading.Thread(target=run)
    thread.start()
    yield address
    thread.join(60)
    assert not thread.is_alive()
    found.close()


def check_in_all(address, numbers, count, seconds=60.0):
    """Check in from threads; return what each learned, or its error."""
    results = [None] * len(numbers)

    def run(place, number):
        try:
            found = distributed.check_in(
                address, number, count, seconds, time.monotonic() + seconds, f"place {place}"
            )
            found.lines.connection.close()
            results[place] = found.names
        except RuntimeError as error:
            results[place] = str(error)

    threads = []
    for place, number in enumerate(numbers):
        threads.append(threading.Thread(target=run, args=(place, number)))
        threads[-1].start()
        time.sleep(0.05)  # so that it is known who comes first
    for thread in threads:
        thread.join(60)
    return results


class PatientSelector(selectors.DefaultSelector):
    """A selector that finds several connections ready in one round."""

    def select(self, timeout=None):
        super().select(timeout)
        time.sleep(0.2)
        return super().select(0)


def say(connection, **what):
    connection.sendall(json.dumps(what).encode() + b"\n")


def test_a_connection_that_breaks_in_the_round_of_another_one_ends_no_gathering(monkeypatch):
    monkeypatch.setattr(distributed.selectors, "DefaultSelector", PatientSelector)
    hello = {"protocol": distributed.PROTOCOL, "of": 3, "name": "here"}
    with coordinator(3, 30) as address:
        place = clusters.split_address(address)
        broken, other = [socket.create_connection(place) for _ in range(2)]
        say(broken, process=0, **hello)
        assert b"missing" in broken.recv(1000)
        say(other, process=1, **hello)
        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        broken.close()  # with a reset, which the coordinator meets when it answers the other one
        assert b"missing" in other.recv(1000)
        found = check_in_all(address, [0, 2], 3)
        other.close()
    assert found == [["place 0", "here", "place 1"]] * 2


def test_a_host_that_comes_back_while_its_old_connection_speaks_ends_no_rendezvous(monkeypatch):
    monkeypatch.setattr(launch.selectors, "DefaultSelector", PatientSelector)
    address = free_address()
    place = clusters.split_address(address)
    meeting = launch.Rendezvous(address, 2, None, 0, 30, 30)
    old, new, other = [socket.create_connection(place) for _ in range(3)]
    say(old, host=1, processes=1, name="here")
    for connection in (old, new, other):  # all are accepted before the rounds that count
        assert b"alive" in connection.recv(1000)
    say(new, host=1, processes=1, name="here")
    say(old, alive=True)
    say(other, host=0, processes=1, name="there")
    heard = b""
    while b"start" not in heard:
        new.settimeout(10)
        heard += new.recv(1000)
    meeting.close(0)
    for connection in (old, new, other):
        connection.close()


def test_all_learn_the_names_of_all():
    with coordinator(3, 60) as address:
        found = check_in_all(address, [2, 0, 1], 3)
    assert found == [["place 1", "place 2", "place 0"]] * 3


def test_who_does_not_come_in_time_is_named_to_the_others():
    with coordinator(4, 2) as address:
        found = check_in_all(address, [0, 2], 4)
    for text in found:
        assert text.splitlines()[0] == "initialize: processes 1, 3 have not come."
        assert "2 of 4 processes within 2 s" in text


def test_the_second_process_of_a_number_is_refused_and_told_who_has_it():
    with coordinator(2, 2) as address:
        first, second = check_in_all(address, [1, 1], 2)
    assert second.splitlines() == [
        "initialize: there are two processes of number 1.",
        "  got       process_id=1 in place 1 and in place 0",
        "  expected  each of 0 to 1 once",
    ]
    assert first.startswith("initialize: process 0 has not come.")


def test_processes_agree_on_their_number():
    with coordinator(3, 2) as address:
        (text,) = check_in_all(address, [1], 4)
    assert "num_processes=4 in process 1 (place 0)" in text
    assert "3, as in process 0" in text


def test_a_process_that_went_before_the_others_came_may_come_again():
    with coordinator(2, 60) as address:
        gone = socket.create_connection(distributed.split_address(address))
        gone.sendall(b'{"protocol": "xpar gathering 1", "process": 1, "of": 2, "name": "gone"}\n')
        gone.recv(1000)
        gone.close()
        assert check_in_all(address, [0, 1], 2) == [["place 0", "place 1"]] * 2


def test_strangers_at_the_port_are_left_alone():
    with coordinator(1, 60) as address:
        stranger = socket.create_connection(distributed.split_address(address))
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.recv(100) == b""
        stranger.close()
        assert check_in_all(address, [0], 1) == [["place 0"]]


def test_a_coordinator_that_is_not_there_is_named_within_the_time():
    address, start = free_address(), time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        distributed.initialize(address, 2, 1, initialization_timeout=1)
    assert 0.8 < time.monotonic() - start < 60  # the machine may be busy
    text = str(caught.value)
    assert text.startswith(f"initialize: no answer at {address}, where the coordinator")
    assert "after 1 s" in text and not distributed.is_initialized()


def test_another_server_at_the_address_is_not_taken_for_the_coordinator():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as connection:
                connection.sendall(b"HTTP/1.1 400\r\n")
                connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RuntimeError, match="the coordinator ended the conversation"):
            distributed.initialize(f"127.0.0.1:{server.getsockname()[1]}", 2, 1,
                                   initialization_timeout=60)  # fmt: skip
        thread.join(60)


def test_a_port_that_is_taken_is_said_by_process_0():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RuntimeError) as caught:
            distributed.initialize(address, 2, 0, initialization_timeout=60)
    assert f"the coordinator cannot listen at {address}." in str(caught.value)
    assert "ddress already in use" in str(caught.value)


@pytest.mark.parametrize("address", ["", "host", "host:", ":12", "host:0", "host:65536", "host:x"])
def test_an_address_is_a_host_with_a_port(address):
    with pytest.raises(ValueError, match=r"is not a host with a port|is not known"):
        distributed.initialize(address, 2, 1)


def test_arguments_are_checked():
    given = {"coordinator_address": "127.0.0.1:1234", "num_processes": 2, "process_id": 1}
    for change, text in (
        ({"process_id": 2}, "process_id=2, num_processes=2"),
        ({"process_id": -1}, "process_id=-1"),
        ({"initialization_timeout": 0}, "initialization_timeout is not a number of seconds"),
        ({"heartbeat_timeout_seconds": 1.5}, "heartbeat_timeout_seconds is not a number"),
        ({"cluster_detection_method": "x", "process_id": None}, "cluster_detection_method 'x'"),
        ({"process_id": None}, "process_id is not known."),
    ):
        with pytest.raises(ValueError) as caught:
            distributed.initialize(**given | change)
        assert text in str(caught.value)
    with pytest.raises(TypeError, match="process_id is not an integer"):
        distributed.initialize(**given | {"process_id": True})
    with pytest.raises(RuntimeError, match="was not started by slurm"):
        distributed.initialize(
            **given | {"process_id": None}, cluster_detection_method="slurm")  # fmt: skip


@pytest.mark.parametrize("address", ["10.0.0.1:99", "node1:99", "[::]:99"])
def test_an_open_door_is_told(address):
    with pytest.warns(UserWarning, match="has no authentication"):
        distributed._tell_of_the_open_door(address)


@pytest.mark.parametrize("address", ["127.0.0.1:99", "localhost:99", "[::1]:99"])
def test_a_door_within_the_machine_is_not(address):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distributed._tell_of_the_open_door(address)


SLURM = {
    "SLURM_JOB_ID": "12345", "SLURM_STEP_NODELIST": "node[003-005],gpu1", "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5", "SLURM_LOCALID": "1",
}  # fmt: skip
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "6", "OMPI_COMM_WORLD_RANK": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (SLURM, clusters.Job(f"node003:{61440 + 12345 % 4096}", 8, 5, (1,))),
        (SLURM | {"SLURM_STEP_NODELIST": "a,b"}, clusters.Job("a:61497", 8, 5, (1,))),
        (SLURM | {"SLURM_STEP_NODELIST": "n-1[7,9-11]"}, clusters.Job("n-17:61497", 8, 5, (1,))),
        (
            OMPI | {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911"},
            clusters.Job(f"10.96.0.1:{61440 + 1531576320 // 4096 % 4096}", 6, 4, (0,)),
        ),
        (
            OMPI | {"OMPI_MCA_orte_hnp_uri": "1314521088.0;tcp6://[fe80::b9b,2620:10d::2]:43370"},
            clusters.Job(f"[fe80::b9b]:{61440 + 1314521088 // 4096 % 4096}", 6, 4, (0,)),
        ),
        (
            OMPI | {"PMIX_NAMESPACE": "prterun-node-7-9000@1", "PMIX_RANK": "4"},
            clusters.Job(f"node-7:{61440 + 9000 % 4096}", 6, 4, (0,)),
        ),
        (
            {"PMIX_NAMESPACE": "prterun-n7-9000@1", "PMIX_RANK": "2", "XSTACK_NUM_PROCESSES": "3"},
            clusters.Job(f"n7:{61440 + 9000 % 4096}", 3, 2),
        ),
        (
            SLURM | {"XSTACK_COORDINATOR_ADDRESS": "me:1", "XSTACK_LOCAL_DEVICE_IDS": "2,3"},
            clusters.Job("me:1", 8, 5, (2, 3)),
        ),
        ({}, clusters.Job()),
    ],
)
def test_the_environment_says_who_works_together(environ, expected):
    assert clusters.job_of_environment(None, environ) == expected


def test_a_job_of_kubernetes_is_found_by_its_host_name(monkeypatch):
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "3"}
    monkeypatch.setattr(socket, "getfqdn", lambda: "train-3.pods.default.svc.cluster.local")
    monkeypatch.setattr(clusters, "_kubernetes_job", lambda *_: {"spec": {"parallelism": 5}})
    assert clusters.job_of_environment(None, environ) == clusters.Job("train-0.pods:55527", 5, 3)
    monkeypatch.setattr(socket, "getfqdn", lambda: "train-3")
    with pytest.raises(RuntimeError, match="cannot find each other"):
        clusters.job_of_environment(None, environ)


def test_kubernetes_that_does_not_answer_is_said():
    with pytest.raises(RuntimeError, match="does not say how many pods"):
        clusters._kubernetes_job({}, "train")


def test_a_variable_without_a_number_is_named():
    with pytest.raises(ValueError, match="XSTACK_PROCESS_ID has no number"):
        clusters.job_of_environment(None, {"XSTACK_PROCESS_ID": "two"})
