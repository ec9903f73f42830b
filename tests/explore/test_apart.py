"""Programs of a search that another process derives: none holds SymPy and arrays at once."""

import os
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import pytest

from symbolic_cost.apart import apart, receive
from symbolic_cost.cache import read_bytes, write_bytes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied here")

LINE = (
    "search gpt2 --system h100 --gpus 8 --global-batch 16 --choose cp=1 --choose pp=1 "
    "--choose zero=0,1"
)
LONG = "search llama-3-70b --system h100 --gpus 256 --global-batch 512"
EVERY = (
    "search gpt3-175b --system h100 --gpus 64 --global-batch 64 --choose cp=1 --choose zero=0,1 "
    "--choose overlap=tp=none+dp=none,tp=full+dp=full+host=full --choose order=all "
    "--choose offload=none,weight,saved,optimizer,weight+saved+optimizer"
)
LOADED = """
import os, sys
from symbolic_cost.__main__ import main
from symbolic_cost.explore import apart
fork = os.fork
def forked():
    child = fork()
    if not child:
        end = os._exit
        os._exit = lambda code: (print("child", *large(), file=sys.stderr, flush=True), end(code))
    return child
def large():
    return sorted({"sympy", "numpy"} & {*sys.modules})
if sys.argv[1] == "alone":
    apart.goes_apart = lambda: False
else:
    os.fork = forked
sys.argv = sys.argv[1:]
try:
    main()
except SystemExit as ended:
    print("parent", *large(), file=sys.stderr)
"""

PEAK = """
import os, sys
search = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(search, 0)
print(used.ru_maxrss)
sys.exit(status)
"""
"""In between: what is started holds what its parent holds, for a moment."""


def ran(folder, way="apart", line=LINE):
    """What a fresh process prints, and what it and its child have loaded."""
    words = [sys.executable, "-c", LOADED, way, *line.split()]
    env = {**os.environ, "SYMBOLIC_COST_CACHE": str(folder)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.splitlines()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    text, loaded = ran(folder, "alone")
    assert loaded == ["parent numpy sympy"]
    return folder, text


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["own", "", "/proc/none"])
def test_what_derives_has_no_arrays_and_what_evaluates_no_sympy(alone, folder, tmp_path):
    place = tmp_path if folder == "own" else folder
    assert ran(place) == (alone[1], ["child sympy", "parent numpy"])
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    same = {path.name: path.read_bytes() for path in alone[0].iterdir()}
    assert kept == (same if folder == "own" else {})
    if folder == "own":  # all is kept, or a part of it
        other = f"{LINE} --top 3"
        assert ran(place, line=other)[1] == ["parent numpy"]
        next(path for path in tmp_path.iterdir() if path.suffix == ".layers").unlink()
        assert ran(place, line=f"{LINE} --top 4")[1] == ["child sympy", "parent numpy"]


@pytest.mark.slow
def test_what_is_refused_is_told_once(tmp_path):
    for line in (LINE.replace("gpt2", "gpt3000"), f"{LINE} --choose tp=3"):
        words = [sys.executable, "-m", "symbolic_cost", *line.split()]
        env = {**os.environ, "SYMBOLIC_COST_CACHE": str(tmp_path)}
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1


def begun(folder):
    """A search of some seconds that has begun to derive, and its child."""
    words = [sys.executable, "-m", "symbolic_cost", *LONG.split()]
    env = {**os.environ, "SYMBOLIC_COST_CACHE": str(folder)}
    pipe = subprocess.PIPE
    search = subprocess.Popen(
        words,
        env=env,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
        # A script's background job ignores Ctrl-C, and what it starts would do so too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads
    )
    children = Path(f"/proc/{search.pid}/task/{search.pid}/children")
    until(lambda: children.read_text() and list(folder.glob("*.layers")))
    return search, int(children.read_text())


def until(true, seconds=60):
    """Wait for something."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def gone(process):
    """Whether a process has ended, though nobody may have asked for its status."""
    status = Path(f"/proc/{process}/status")
    try:
        return "State:\tZ" in status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks Linux for children")


@linux
@pytest.mark.slow
@pytest.mark.parametrize("group", [True, False])
def test_ctrl_c_ends_both(tmp_path, group):
    search, child = begun(tmp_path)
    (os.killpg if group else os.kill)(search.pid, signal.SIGINT)
    assert search.wait(60) == 130
    assert search.communicate()[0] == b""
    assert gone(child)


@linux
@pytest.mark.slow
def test_a_child_does_not_outlive_its_parent(tmp_path):
    search, child = begun(tmp_path)
    search.kill()
    search.communicate()
    until(lambda: gone(child))
    assert all(read_whole(tmp_path, path.name) for path in tmp_path.iterdir())


def read_whole(folder, name):
    """Whether what is kept can be believed."""
    os.environ["SYMBOLIC_COST_CACHE"] = str(folder)
    return read_bytes(name) is not None


@linux
@pytest.mark.slow
def test_two_searches_and_a_child_that_is_killed_give_the_same(tmp_path):
    searches = [begun(tmp_path), begun(tmp_path)]
    os.kill(searches[0][1], signal.SIGKILL)
    told = [search.communicate(timeout=300) for search, _ in searches]
    assert told[0] == told[1]
    assert b"rank" in told[0][0]
    assert [search.returncode for search, _ in searches] == [0, 0]


@linux
@pytest.mark.slow
def test_a_search_of_many_options_takes_less_than_100_mb(tmp_path):
    words = [sys.executable, "-c", PEAK, sys.executable, "-m", "symbolic_cost", *EVERY.split()]
    env = {**os.environ, "SYMBOLIC_COST_CACHE": str(tmp_path)}
    peak = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    assert 50e6 < 1024 * int(peak.split()[-1]) < 100e6  # of the larger of both processes


def test_what_arrives_short_is_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path))
    for end in (b"", b"half", b"half 4", b"half 4\nab"):
        receive(BytesIO(b"whole 3\nabc" + end))
    assert {path.name for path in tmp_path.iterdir()} == {"whole"}
    assert read_bytes("whole") == b"abc"


def test_what_a_child_kept_before_it_was_killed_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path))

    def work():
        write_bytes("first", b"abc")
        os.kill(os.getpid(), signal.SIGKILL)

    apart(work)
    assert {path.name for path in tmp_path.iterdir()} == {"first"}
