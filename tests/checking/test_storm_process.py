"""The worker process under every kind of mishap."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from tests.checking.storm_chains import F, evaluate, operator_of, three_transient_states
from tests.closedform.strategies import number

from tracebridge.chain.markov import MarkovChain
from tracebridge.checking import storm_process
from tracebridge.checking.prism_program import build_prism_chain
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormUnavailableError, StormWorker, lent_worker
from tracebridge.checking.storm_worker.protocol import AskVersion, Evaluate
from tracebridge.errors import EngineError, EngineTimeoutError, PropertyError
from tracebridge.pctl.ast import Eventually, Label, Probability, StepBound

pytestmark = pytest.mark.storm

FOREVER = Probability(Eventually(Label("success"), StepBound(upper=number(10**12))))


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as shared:
        yield shared


@pytest.fixture(scope="module")
def chain_g() -> MarkovChain:
    return three_transient_states()


def test_a_hanging_check_is_stopped_and_the_next_one_works(chain_g: MarkovChain) -> None:
    with StormWorker() as worker:
        session_start = worker.ensure_running()
        started = time.monotonic()
        with pytest.raises(EngineTimeoutError, match=r"0\.5 s"):
            evaluate(chain_g, FOREVER, worker, exact=False, time_limit=0.5)
        assert time.monotonic() - started < 10
        assert evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True).value[0] == F(24, 79)
        assert worker.ensure_running() == session_start + 1


def test_a_session_outlives_the_death_of_its_worker(chain_g: MarkovChain) -> None:
    with StormWorker() as worker:
        session = StormSession(chain_g, exact=True, worker=worker)
        operator = operator_of('P=? [ F "success" ]')
        before = session.evaluate(operator, lambda _: chain_g.label("success")).value.tolist()
        assert worker._process is not None
        os.kill(worker._process.popen.pid, signal.SIGKILL)
        worker._process.popen.wait()
        assert session.evaluate(operator, lambda _: chain_g.label("success")).value.tolist() == before


def test_a_crash_in_the_middle_is_an_error_that_names_the_signal(chain_g: MarkovChain) -> None:
    with StormWorker() as worker:
        worker.ensure_running()
        assert worker._process is not None
        pid = worker._process.popen.pid
        killer = threading.Timer(0.5, os.kill, (pid, signal.SIGSEGV))
        killer.start()
        with pytest.raises(EngineError, match="SIGSEGV"):
            evaluate(chain_g, FOREVER, worker, exact=False)
        killer.join()
        assert evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True).value[0] == F(24, 79)


def test_deep_text_kills_the_worker_not_us(worker: StormWorker) -> None:
    with pytest.raises(EngineError, match="process was killed by"):
        worker.parse_properties("P=? [ F " + "!(" * 200_000 + '"a"' + ")" * 200_000 + " ]")
    assert worker.parse_properties('P=? [ F "a" ]; "n": P>=0.5 [ G "b" ]') == ['P=? [F "a"]', 'P>=1/2 [G "b"]']


def test_storm_refuses_a_property_text(worker: StormWorker) -> None:
    with pytest.raises(PropertyError, match="1:6"):
        worker.parse_properties("P=? [")


def test_native_output_is_captured(
    chain_g: MarkovChain, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = """
import ctypes
from tracebridge.checking.storm_worker import loop, protocol, server
def answer(self, request, known=server.Server.answer):
    if isinstance(request, protocol.AskVersion):
        return known(self, request)
    ctypes.CDLL(None).printf(b"WARN: from C\\n")
    raise RuntimeError("FooException: it broke")
server.Server.answer = answer
loop.main()
"""
    monkeypatch.setattr(storm_process, "_COMMAND", ("-c", program))
    with StormWorker() as worker, pytest.raises(EngineError, match="it broke; it printed: WARN: from C"):
        evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True)
    assert capfd.readouterr() == ("", "")


def test_an_unexpected_error_in_the_worker_is_reported_with_its_traceback(
    worker: StormWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
from tracebridge.checking.storm_worker import loop, server
def explore(request):
    raise KeyError("unforeseen")
server.explore = explore
loop.main()
"""
    monkeypatch.setattr(storm_process, "_COMMAND", ("-c", program))
    with StormWorker() as broken, pytest.raises(EngineError, match=r"(?s)status 1.*Traceback.*unforeseen"):
        build_prism_chain("dtmc", worker=broken)


def test_the_memory_limit_holds() -> None:
    program = "dtmc\nmodule m\n s: [0..1000000000] init 0;\n [] true -> (s'=s+1);\nendmodule\n"
    with StormWorker(memory_limit=400 << 20) as worker:
        with pytest.raises(EngineError, match=r"out of memory within its limit of 419,430,400 bytes"):
            build_prism_chain(program, worker=worker)
        assert worker.version()


def open_descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_closing_leaves_no_process_and_no_descriptor() -> None:
    before = open_descriptors()
    worker = StormWorker()
    worker.ensure_running()
    assert worker._process is not None
    popen = worker._process.popen
    worker.close()
    worker.close()
    assert popen.returncode == -signal.SIGKILL
    assert open_descriptors() == before
    abandoned = StormWorker()
    abandoned.ensure_running()
    assert abandoned._process is not None
    popen = abandoned._process.popen
    del abandoned
    assert popen.returncode == -signal.SIGKILL


CLIENT = """
import signal
import sys
from fractions import Fraction
import numpy as np
from tracebridge.chain.markov import MarkovChain
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.pctl.ast import Eventually, Label, Number, Probability, StepBound
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell lets its children ignore it
chain = MarkovChain(states=("s", "t"), transitions=np.array([[0.5, 0.5], [0, 1]]), initial=[1.0, 0.0])
worker = StormWorker()
worker.ensure_running()
print(worker._process.popen.pid, flush=True)
operator = Probability(Eventually(Label("t"), StepBound(upper=Number(Fraction(10**12), integer=True))))
StormSession(chain, exact=False, worker=worker).evaluate(operator, lambda formula: chain.label("t"))
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_ends_a_hanging_check_at_once_and_nobody_is_orphaned(kind: signal.Signals) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", CLIENT], stdout=pipe, stderr=pipe, text=True) as client:
        try:
            assert client.stdout is not None
            pid = int(client.stdout.readline())
            time.sleep(1)
            assert is_running(pid)
            sent = time.monotonic()
            client.send_signal(kind)
            _, errors = client.communicate(timeout=30)
            elapsed = time.monotonic() - sent
        finally:
            client.kill()
    assert elapsed < 1 + 2 * (os.getloadavg()[0] > 2)
    assert client.returncode == -kind
    if kind is signal.SIGINT:
        assert errors.rstrip().endswith("KeyboardInterrupt")
    for _ in range(100):
        if not is_running(pid):
            return
        time.sleep(0.05)
    pytest.fail("the worker goes on without its client")


def test_threads_take_turns(chain_g: MarkovChain, worker: StormWorker) -> None:
    found: list[Fraction] = []

    def ask() -> None:
        found.append(evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True).value[0])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [F(24, 79)] * 4


def test_a_forked_child_starts_its_own_process(chain_g: MarkovChain, worker: StormWorker) -> None:
    generation = worker.ensure_running()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            value = evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True).value[0]
            status = 0 if value == F(24, 79) else 2
            worker.close()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert worker.ensure_running() == generation
    assert evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True).value[0] == F(24, 79)


def test_forgotten_sessions_free_their_chains(chain_g: MarkovChain) -> None:
    with StormWorker() as worker:
        evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True)  # this session is gone after the call
        evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True)
        with pytest.raises(EngineError, match="there is no chain 0"):
            worker.request(Evaluate(0, "P=? [ F true ]", "exact", []))
        worker.request(AskVersion())


def test_an_idle_worker_is_lent_again_and_never_to_two() -> None:
    with lent_worker() as first, lent_worker() as second:
        process = first.ensure_running(), first._process
        assert second.version() == first.version()
        assert second._process != process[1]
    assert second._process is not None  # it came back first, and is the one that is kept
    assert first._process is None
    with lent_worker() as again:
        assert again is second
        popen = again._process.popen
        popen.kill()
        popen.wait()
        assert again.version()
        assert again._process.popen.pid != popen.pid


def test_a_worker_that_took_much_ends_with_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm_process, "_KEPT_WHEN_SENT", 100)
    with lent_worker() as worker, pytest.raises(PropertyError):
        worker.parse_properties("P=? [ F " * 100)
    assert worker._process is None
    with lent_worker() as other:
        assert other is not worker


def test_importing_the_client_does_not_import_stormpy() -> None:
    code = "import sys, tracebridge.checking.storm; sys.exit('stormpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_stormpy_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with StormWorker() as worker, pytest.raises(StormUnavailableError, match="pip install"):
        worker.version()


def test_a_storm_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm_process, "_COMMAND", ("-c", "raise ImportError('GLIBC_2.34 not found')"))
    with StormWorker() as worker, pytest.raises(StormUnavailableError, match=r"GLIBC_2\.34 not found"):
        worker.version()
