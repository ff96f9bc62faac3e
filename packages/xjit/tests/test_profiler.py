"""Records of the profiler: files, data in memory, annotations, memory, the server."""

import gzip
import json
import socket
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

from xjit import jit
from xjit.debug import profiler, profiler as perfetto


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A session that wrote its files, and its folder."""
    folder = tmp_path_factory.mktemp("profile")
    f = jit(lambda x: x @ x)
    x = np.ones((64, 64), np.float32)
    f(x).block_until_ready()
    with profiler.trace(folder, create_perfetto_trace=True) as session:
        for i in range(2):
            with profiler.StepTraceAnnotation("train", step_num=i):
                profiler.annotate_function(f, name="product", size=64)(x).block_until_ready()
    return session, folder


def _events(data):
    return [e for plane in data.planes for line in plane.lines for e in line.events]


def test_annotations_are_in_the_record_with_their_values_and_times(recorded):
    session, _ = recorded
    events = _events(session.profile_data)
    steps = [e for e in events if e.name == "train"]
    inner = [e for e in events if e.name == "product"]
    assert len(steps) == len(inner) == 2
    for step, call in zip(steps, inner, strict=True):
        assert step.start_ns <= call.start_ns <= call.end_ns <= step.end_ns
    assert not session.is_running


def test_the_file_for_perfetto_has_the_same_events(recorded):
    session, folder = recorded
    (file,) = folder.glob("plugins/profile/*/perfetto_trace.json.gz")
    written = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    steps = [e for e in written if e["name"] == "train"]
    assert [e["args"]["step_num"] for e in steps] == [0, 1]
    expected = [e.start_ns for e in _events(session.profile_data) if e.name == "train"]
    np.testing.assert_allclose([e["ts"] * 1e3 for e in steps], expected, rtol=1e-9)
    assert all(e["ph"] in "XM" and e["pid"] and "name" in e for e in written)
    named = {e["pid"] for e in written if e["name"] == "process_name"}
    assert named == {e["pid"] for e in written}
    assert list(folder.glob("plugins/profile/*/*.xplane.pb"))


def test_a_session_is_written_again_under_a_name(recorded, tmp_path):
    session, _ = recorded
    profiler.export_profile_data(session, tmp_path, session_id="again")
    (file,) = tmp_path.glob("plugins/profile/again/*.xplane.pb")
    names = [e.name for e in _events(profiler.ProfileData.from_file(str(file)))]
    assert names.count("train") == 2
    profiler.export_profile_data(
        session.profile_data, tmp_path, create_perfetto_trace=True, session_id="data"
    )
    assert (tmp_path / "plugins/profile/data/perfetto_trace.json.gz").exists()


def test_there_is_one_record_at_a_time(tmp_path):
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="only one can be"):
            profiler.start_trace(tmp_path)
    finally:
        data = profiler.stop_trace()
    assert isinstance(data, profiler.ProfileData)
    with pytest.raises(RuntimeError, match="no record is in the making"):
        profiler.stop_trace()
    with pytest.raises(RuntimeError, match="has no record yet"):
        profiler.ProfileSession().export_profile_data(tmp_path)
    with pytest.raises(ValueError, match="needs a folder"):
        profiler.ProfileSession(create_perfetto_trace=True)
    with pytest.raises(TypeError, match="a session that has ended"):
        profiler.export_profile_data(3, tmp_path)
    with pytest.raises(AttributeError):
        profiler.ProfileOptions().pyton_tracer_level = 1


def test_perfettos_page_reads_the_file_from_this_process(tmp_path, capfd):
    file = tmp_path / "trace.json.gz"
    file.write_bytes(b"content")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = threading.Thread(target=perfetto.serve_once, args=(file, port), daemon=True)
    server.start()
    for _ in range(100):
        try:
            address = f"http://127.0.0.1:{port}/trace.json.gz"
            with urllib.request.urlopen(address, timeout=10) as answer:
                assert answer.read() == b"content"
                assert answer.headers["Access-Control-Allow-Origin"] == "*"
            break
        except urllib.error.URLError:
            server.join(0.05)
    server.join(10)
    assert f"url=http://127.0.0.1:{port}/trace.json.gz" in capfd.readouterr().out


def test_a_memory_profile_is_a_compressed_protocol_buffer_of_pprof(tmp_path):
    held = jit(lambda x: x + 1)(np.ones(1000, np.float32))
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    profile = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert b"space" in profile and b"bytes" in profile  # the names of its samples
    assert held.shape == (1000,)


def test_the_server_is_started_and_stopped():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profiler.start_server(port)
    with pytest.raises(ValueError, match="there is a server already"):
        profiler.start_server(port)
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    profiler.stop_server()
    with pytest.raises(ValueError, match="there is no server"):
        profiler.stop_server()
