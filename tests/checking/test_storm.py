"""Storm's answers against independent ones, and the worker process under every kind of mishap."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.closedform.reference import Reference
from tests.closedform.strategies import chains, number, operators

from tracebridge.chain.markov import MarkovChain, RewardStructure
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.checking import storm
from tracebridge.checking.storm import (
    StormSession,
    StormUnavailableError,
    StormWorker,
    build_prism_chain,
    storm_formulation,
    storm_version,
)
from tracebridge.checking.worker import AskVersion, Evaluate
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import EngineError, EngineTimeoutError, ModelError, PropertyError, UnsupportedError
from tracebridge.pctl import parse_formula
from tracebridge.pctl.ast import Eventually, Formula, Label, Operator, Probability, Reward, StepBound, Truth, walk

pytestmark = [
    pytest.mark.storm,
    pytest.mark.skipif(importlib.util.find_spec("stormpy") is None, reason="stormpy is not installed"),
]

F = Fraction
FOREVER = Probability(Eventually(Label("success"), StepBound(upper=number(10**12))))


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as shared:
        yield shared


@pytest.fixture(scope="module")
def chain_g() -> MarkovChain:
    """Three transient states; h = (24, 36, 9)/79 and expected steps (1000, 710, 770)/237 by hand."""
    return MarkovChain(
        states=("s0", "s1", "s2", "success", "failure"),
        transitions=RationalMatrix.from_rows(
            [
                {0: F(1, 10), 1: F(5, 10), 2: F(4, 10)},
                {0: F(1, 10), 1: F(2, 10), 2: F(3, 10), 3: F(3, 10), 4: F(1, 10)},
                {1: F(1, 10), 2: F(6, 10), 4: F(3, 10)},
                {3: F(1)},
                {4: F(1)},
            ]
        ),
        initial=RationalVector.from_fractions([1, 0, 0, 0, 0]),
        labels={"end": np.array([False, False, False, True, True])},
        rewards={"steps": RewardStructure.from_fractions([1, 1, 1, 0, 0])},
    )


def evaluate(
    chain: MarkovChain, operator: Operator | str, worker: StormWorker, *, exact: bool, time_limit: float = 60
) -> EnclosureVector:
    def holds(formula: Formula) -> np.ndarray:
        if isinstance(formula, Truth):
            return np.full(chain.n_states, formula.value)
        assert isinstance(formula, Label)
        return chain.label(formula.name)

    parsed = parse_formula(operator) if isinstance(operator, str) else operator
    assert isinstance(parsed, Operator)
    return StormSession(chain, exact=exact, worker=worker, time_limit=time_limit).evaluate(parsed, holds)


def sticky(stay: Fraction) -> MarkovChain:
    """One state that stays, or leaves to either side with the same probability."""
    leave = (1 - stay) / 2
    return MarkovChain(
        states=("s", "success", "failure"),
        transitions=RationalMatrix.from_rows([{0: stay, 1: leave, 2: leave}, {1: F(1)}, {2: F(1)}]),
        initial=RationalVector.from_fractions([1, 0, 0]),
    )


def walk_of(n: int, up: Fraction) -> MarkovChain:
    """Gambler's ruin on 0..n: states 0 and n absorb."""
    rows: list[dict[int, Fraction]] = [{0: F(1)}]
    rows += [{i - 1: 1 - up, i + 1: up} for i in range(1, n)]
    rows.append({n: F(1)})
    top = np.arange(n + 1) == n
    return MarkovChain(
        states=tuple(str(i) for i in range(n + 1)),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([F(int(i == n // 2)) for i in range(n + 1)]),
        labels={"top": top},
        rewards={"steps": RewardStructure.from_fractions([F(int(0 < i < n)) for i in range(n + 1)])},
    )


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('P=? [ F "success" ]', [F(24, 79), F(36, 79), F(9, 79), 1, 0]),
        ('R=? [ F "end" ]', [F(1000, 237), F(710, 237), F(770, 237), 0, 0]),
        ("R=? [ C ]", [F(1000, 237), F(710, 237), F(770, 237), 0, 0]),
        ('R=? [ F "success" ]', [float("inf")] * 3 + [0, float("inf")]),
        ('P=? [ X "success" ]', [0, F(3, 10), 0, 1, 0]),
        ('P=? [ F<=1 "success" ]', [0, F(3, 10), 0, 1, 0]),
        ('P=? [ F<3 "success" ]', [F(15, 100), F(36, 100), F(3, 100), 1, 0]),
        ('P=? [ F=2 "s0" ]', [F(6, 100), F(3, 100), F(1, 100), 0, 0]),
        ('P=? [ F[2,1] "s0" ]', [0] * 5),
        ('P=? [ G[2,1] "s0" ]', [1] * 5),
        ('P=? [ G "s0" ]', [0] * 5),
        ('P=? [ G<=2 "s0" ]', [F(1, 100), 0, 0, 0, 0]),
        ('P=? [ "s0" W "s1" ]', [F(5, 9), 1, 0, 0, 0]),
        ('P=? [ "s1" R "s0" ]', [0] * 5),
        ('P=? [ "s0" U>=1 "s1" ]', [F(5, 9), 0, 0, 0, 0]),
        ('P=? [ "s0" U>1 "s1" ]', [F(5, 90), 0, 0, 0, 0]),
        ('S=? [ "success" ]', [F(24, 79), F(36, 79), F(9, 79), 1, 0]),
        ("R=? [ S ]", [0] * 5),
        ("R=? [ C<=2 ]", [2, F(16, 10), F(17, 10), 0, 0]),
        ("R=? [ C<1 ]", [0] * 5),
        ("R=? [ I=1 ]", [1, F(6, 10), F(7, 10), 0, 0]),
    ],
)
def test_values_by_hand(chain_g: MarkovChain, worker: StormWorker, text: str, expected: list[Fraction]) -> None:
    assert evaluate(chain_g, text, worker, exact=True).value.tolist() == expected
    floating = evaluate(chain_g, text, worker, exact=False)
    assert all(expected[i] in floating[i] for i in range(5))
    finite = np.isfinite(floating.value)
    assert np.all(floating.upper[finite] - floating.lower[finite] < 1e-12)


def test_reliability_by_hand(chain_g: MarkovChain, worker: StormWorker) -> None:
    curve = [evaluate(chain_g, f'P=? [ F<={d} "success" ]', worker, exact=True).value[0] for d in range(7)]
    assert curve == [0, 0, F(15, 100), F(207, 1000), F(2403, 10**4), F(26088, 10**5), F(274437, 10**6)]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(chain=chains(5), operator=operators())
def test_equals_the_reference(worker: StormWorker, chain: MarkovChain, operator: Operator) -> None:
    expected = Reference(chain).value(operator)
    assert evaluate(chain, operator, worker, exact=True).value.tolist() == expected, storm_formulation(operator)
    floating = evaluate(chain, operator, worker, exact=False)
    assert all(expected[i] in floating[i] for i in range(chain.n_states)), storm_formulation(operator)


def test_a_run_may_not_leave_the_left_side_before_the_window_opens(worker: StormWorker) -> None:
    """Storm's own ``"a" U[1,1] "b"`` says 1 here."""
    chain = MarkovChain(
        states=("s",), transitions=np.eye(1), initial=[1.0], labels={"a": np.array([False]), "b": np.array([True])}
    )
    assert evaluate(chain, 'P=? [ "a" U[1,1] "b" ]', worker, exact=False).value.tolist() == [0]


@pytest.mark.parametrize("digits", [6, 9, 12, 15])
def test_sticky_chains_are_inside_the_assumed_accuracy(worker: StormWorker, digits: int) -> None:
    chain = sticky(1 - F(1, 10**digits))
    assert evaluate(chain, 'P=? [ F "success" ]', worker, exact=True).value[0] == F(1, 2)
    floating = evaluate(chain, 'P=? [ F "success" ]', worker, exact=False)
    assert F(1, 2) in floating[0]
    assert floating[0].width < 10.0 ** (digits - 14)


def test_almost_sure_is_certain_in_doubles(worker: StormWorker) -> None:
    chain = sticky(1 - F(1, 10**12))
    reached = evaluate(chain, "P=? [ F true ]", worker, exact=False)
    assert reached.lower.tolist() == [1, 1, 1]
    ended = MarkovChain(
        states=chain.states, transitions=chain.transitions, initial=chain.initial, labels={"end": [False, True, True]}
    )
    assert evaluate(ended, 'P=? [ F "end" ]', worker, exact=False).lower.tolist() == [1, 1, 1]
    assert evaluate(ended, 'P=? [ G !"end" ]'.replace("!", ""), worker, exact=False).value[0] == 0


@pytest.mark.parametrize(("n", "up"), [(20, F(1, 2)), (400, F(1, 2)), (700, F(6, 10))])
def test_gamblers_ruin(worker: StormWorker, n: int, up: Fraction) -> None:
    """h_i = (1 - r^i) / (1 - r^n) with r = (1-p)/p, or i/n where p = 1/2, where i (n - i) steps are expected."""
    chain = walk_of(n, up)
    r = (1 - up) / up
    expected = [F(i, n) if r == 1 else (1 - r**i) / (1 - r**n) for i in range(n + 1)]
    hit = evaluate(chain, 'P=? [ F "top" ]', worker, exact=False)
    assert all(expected[i] in hit[i] for i in range(n + 1))
    assert np.all((hit.upper - hit.lower) <= 1e-6)
    settled = evaluate(chain, 'S=? [ "top" ]', worker, exact=False)  # by state elimination, or by gmm++ for n = 700
    assert all(expected[i] in settled[i] for i in range(n + 1))
    assert settled.value == pytest.approx(hit.value, rel=1e-5)
    if r == 1:
        steps = evaluate(chain, "R=? [ C ]", worker, exact=False)
        assert all(F(i * (n - i)) in steps[i] for i in range(n + 1))


def test_underflow_is_not_zero(worker: StormWorker) -> None:
    chain = MarkovChain(
        states=("s", "t"),
        transitions=RationalMatrix.from_rows([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}]),
        initial=RationalVector.from_fractions([1, 0]),
    )
    late = evaluate(chain, 'P=? [ F=2000 "s" ]', worker, exact=False)
    assert F(1, 2**2000) in late[0]
    assert late.upper[0] < 1e-300
    assert evaluate(chain, 'P=? [ F<=3 "s" ]', worker, exact=False).upper[1] == 0  # unreachable is zero


@pytest.mark.shared_data
def test_the_recorded_answers_of_prism(shared_data: Path, worker: StormWorker) -> None:
    """Every recorded property that is one operator over labels, against PRISM's explicit engine (4e-6 relative)."""
    recorded = json.loads((shared_data / "property_syntax.json").read_text())
    chain = build_prism_chain(recorded["model"], worker=worker)
    compared = 0
    for row in recorded["rows"]:
        text, answer = row["property"], row["prism"].get("value", "")
        try:
            formula = parse_formula(text)
            expected = float(answer.split()[0])
        except (PropertyError, ValueError, IndexError):
            continue
        if not isinstance(formula, Operator) or formula.threshold is not None:
            continue
        allowed = {Label, Truth, type(number(1))}
        parts = [node for node in walk(formula) if isinstance(node, Formula) and node is not formula]
        if any(type(part) not in allowed for part in parts) or (isinstance(formula, Reward) and not formula.structure):
            continue
        value = float(evaluate(chain, formula, worker, exact=True).value[0])
        assert value == pytest.approx(expected, rel=2e-5), text
        compared += 1
    assert compared >= 15
    assert evaluate(chain, 'P=? [ F "success" ]', worker, exact=True).value[0] == F(6, 11)
    assert evaluate(chain, 'R{"steps"}=? [ F "done" ]', worker, exact=True).value[0] == F(30, 11)
    assert evaluate(chain, 'R{"cost"}=? [ F "done" ]', worker, exact=True).value[0] == F(50, 11)


def test_exact_results_may_have_many_digits(worker: StormWorker) -> None:
    chain = sticky(1 - F(1, 3**40))
    value = evaluate(chain, 'P=? [ F<=300 "success" ]', worker, exact=True).value[0]
    assert value == (1 - (1 - F(1, 3**40)) ** 300) / 2  # more than the 4,300 digits of int()


def test_state_and_action_rewards(worker: StormWorker) -> None:
    chain = MarkovChain(
        states=("s", "t"),
        transitions=RationalMatrix.from_rows([{0: F(2, 3), 1: F(1, 3)}, {1: F(1)}]),
        initial=RationalVector.from_fractions([1, 0]),
        rewards={
            "first": RewardStructure.from_fractions([7, 0]),
            "cost": RewardStructure.from_fractions([F(1, 7), 0], [F(1, 2), 0]),
        },
    )
    per_step = F(1, 7) + F(1, 2)
    assert evaluate(chain, 'R{"cost"}=? [ F "t" ]', worker, exact=True).value.tolist() == [3 * per_step, 0]
    assert evaluate(chain, 'R{"cost"}=? [ I=1 ]', worker, exact=True).value.tolist() == [F(2, 21), 0]
    with pytest.raises(PropertyError, match='"first", "cost"'):
        evaluate(chain, "R=? [ C ]", worker, exact=True)
    with pytest.raises(PropertyError, match='no reward structure "costs"'):
        evaluate(chain, 'R{"costs"}=? [ C ]', worker, exact=True)


def test_step_bounds_are_whole_numbers_of_64_bits(chain_g: MarkovChain, worker: StormWorker) -> None:
    with pytest.raises(PropertyError, match="whole number"):
        evaluate(chain_g, 'P=? [ F<=2.5 "success" ]', worker, exact=False)
    with pytest.raises(UnsupportedError, match="64 bits"):
        evaluate(chain_g, f'P=? [ F<={2**63} "success" ]', worker, exact=False)


def test_the_formulation_says_how_storm_was_asked() -> None:
    def asked(text: str) -> str:
        formula = parse_formula(text)
        assert isinstance(formula, Operator)
        return storm_formulation(formula)

    assert asked('P=? [ F "a" ]') == 'P=? [ F ("a") ]'
    assert asked('P=? [ G<=3 "a" ]') == '1 - (P=? [ F<=3 !("a") ])'
    assert asked('P=? [ "a" U>=2 "b" ]').startswith('R{v}=? [ I=2 ] with v = P=? [ ("a") U ("b") ]')


# ---------------------------------------------------------------- the process


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
        operator = parse_formula('P=? [ F "success" ]')
        assert isinstance(operator, Operator)
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
from tracebridge.checking import worker
def answer(self, request, known=worker._Server.answer):
    if isinstance(request, worker.AskVersion):
        return known(self, request)
    ctypes.CDLL(None).printf(b"WARN: from C\\n")
    raise RuntimeError("FooException: it broke")
worker._Server.answer = answer
worker.main()
"""
    monkeypatch.setattr(storm, "_COMMAND", ("-c", program))
    with StormWorker() as worker, pytest.raises(EngineError, match="it broke; it printed: WARN: from C"):
        evaluate(chain_g, 'P=? [ F "success" ]', worker, exact=True)
    assert capfd.readouterr() == ("", "")


def test_an_unexpected_error_in_the_worker_is_reported_with_its_traceback(
    worker: StormWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
from tracebridge.checking import worker
def explore(request):
    raise KeyError("unforeseen")
worker._explore = explore
worker.main()
"""
    monkeypatch.setattr(storm, "_COMMAND", ("-c", program))
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
import sys
from fractions import Fraction
import numpy as np
from tracebridge.chain.markov import MarkovChain
from tracebridge.checking.storm import StormSession, StormWorker
from tracebridge.pctl.ast import Eventually, Label, Number, Probability, StepBound
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
    client = subprocess.Popen([sys.executable, "-c", CLIENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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


def test_importing_the_client_does_not_import_stormpy() -> None:
    code = "import sys, tracebridge.checking.storm; sys.exit('stormpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_stormpy_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert storm_version() is None
    with StormWorker() as worker, pytest.raises(StormUnavailableError, match="pip install"):
        worker.version()


def test_a_storm_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "_COMMAND", ("-c", "raise ImportError('GLIBC_2.34 not found')"))
    with StormWorker() as worker, pytest.raises(StormUnavailableError, match=r"GLIBC_2\.34 not found"):
        worker.version()


# ---------------------------------------------------------------- PRISM programs

HEAD = "dtmc\nmodule m\n  s : [0..2] init 0;\n  b : bool init false;\n"
TAIL = "  [] s>0 -> true;\nendmodule\n"


def test_a_program_becomes_an_exact_chain_with_names(worker: StormWorker) -> None:
    text = """dtmc
const int k; const double p; const bool on;
global g : [0..1] init 0;
module m
  x : [0..k] init 0;
  b : bool init on;
  [go] x=0 -> p:(x'=1)&(b'=false) + 1-p:(x'=2);
  [] x>0 -> true;
endmodule
label "done" = x>0;
rewards "cost"
  x=0 : 0.1;
  [go] true : 2;
endrewards
rewards
  true : 1;
endrewards
"""
    chain = build_prism_chain(text, constants={"k": "2", "p": "1/3", "on": "true"}, worker=worker)
    assert chain.states == ("g=0,x=0,b=true", "g=0,x=1,b=false", "g=0,x=2,b=true")
    assert chain.is_exact
    assert chain.rationals is not None
    assert chain.rationals.row(0) == {1: F(1, 3), 2: F(2, 3)}
    assert chain.initial.tolist() == [1, 0, 0]
    assert {name: mask.tolist() for name, mask in chain.labels.items()} == {"done": [False, True, True]}
    assert chain.rewards["cost"].fractions(action=False) == [F(1, 10), 0, 0]
    assert chain.rewards["cost"].fractions(action=True) == [F(21, 10), 0, 0]
    assert sorted(chain.rewards) == ["cost", "rewards"]
    floating = build_prism_chain(text, constants={"k": "2", "p": "0.25", "on": "false"}, worker=worker, exact=False)
    assert not floating.is_exact
    assert floating.transitions.toarray()[0].tolist() == [0, 0.25, 0.75]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  [] s=0 -> 1/2:(s'=1) + 1/3:(s'=2);\n", r"state 's=0,b=false': its row sums to 5/6"),
        ("  [] s=0 -> 1/2:(s'=1) + 1/2:(s'=5);\n", r"out-of-bounds value \(5\) for the variable 's'"),
        ("  [] s=0 -> (s'=1);\n  [] s<1 -> (s'=2);\n", r"several commands are enabled in state 's=0,b=false'"),
        ("  [] s=0 & b -> (s'=1);\n", r"state 's=0,b=false' has no transition"),
        ("  [] s=0 -> 1+(s+1)/5:(s'=1) + -((s+1)/5):(s'=2);\n", r"evaluates to value 6/5"),
        ("  [] s=0 -> (s'=1)\n", r"Parsing error at 6:4"),
        ("  [] s=0 -> p:(s'=1) + 1-p:(s'=2);\n", r"Parsing error at 5:12"),
    ],
)
def test_unsound_programs_are_refused(worker: StormWorker, body: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build_prism_chain(HEAD + body + TAIL, worker=worker)


def test_sums_within_rounding_become_doubles(worker: StormWorker) -> None:
    chain = build_prism_chain(
        HEAD + "  [] s=0 -> 0.3333333333333333:(s'=1) + 0.6666666666666666:(s'=2);\n" + TAIL, worker=worker
    )
    assert not chain.is_exact
    assert chain.exact_transitions().row(0)[1] == F(3333333333333333, 9999999999999999)
    with pytest.raises(ModelError, match=r"out-of-bounds value \(7\)|out of bounds"):
        build_prism_chain(
            HEAD + "  [] s=0 -> 0.3333333333333333:(s'=7) + 0.6666666666666666:(s'=2);\n" + TAIL, worker=worker
        )


def test_irrational_probabilities_become_doubles(worker: StormWorker) -> None:
    chain = build_prism_chain(HEAD + "  [] s=0 -> pow(0.5,0.5):(s'=1) + 1-pow(0.5,0.5):(s'=2);\n" + TAIL, worker=worker)
    assert chain.transitions.toarray()[0].tolist() == pytest.approx([0, 0.5**0.5, 1 - 0.5**0.5], abs=1e-15)


def test_deadlocks_may_be_fixed(worker: StormWorker) -> None:
    chain = build_prism_chain(HEAD + "  [] s=0 -> (s'=1);\nendmodule\n", worker=worker, fix_deadlocks=True)
    assert chain.absorbing.tolist() == [False, True]


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({}, "constants without a value: k, p"),
        ({"k": "2"}, "constants without a value: p"),
        ({"k": "2", "p": "0.5", "q": "1"}, r"no undefined constant 'q' \(undefined: k, p\)"),
        ({"k": "2", "p": "0.5,k=3"}, "does not give a constant a number"),
        ({"k": "2", "p": "true"}, "Storm cannot build"),
    ],
)
def test_constants_that_do_not_fit(worker: StormWorker, constants: dict[str, str], message: str) -> None:
    text = (
        "dtmc\nconst int k;\nconst double p;\nmodule m\n s:[0..k] init 0;\n [] true -> p:(s'=1)+1-p:(s'=0);\nendmodule"
    )
    with pytest.raises(ModelError, match=message):
        build_prism_chain(text, constants=constants, worker=worker)


def test_other_kinds_of_model_are_refused(worker: StormWorker) -> None:
    with pytest.raises(ModelError, match="type mdp"):
        build_prism_chain("mdp\nmodule m\n s:[0..1] init 0;\n [] true -> true;\nendmodule\n", worker=worker)
    with pytest.raises(ModelError, match="3 initial states"):
        build_prism_chain(
            "dtmc\nmodule m\n s:[0..2];\n [] true -> true;\nendmodule\ninit true endinit\n", worker=worker
        )


def test_an_endless_program_runs_into_the_time_limit() -> None:
    program = "dtmc\nmodule m\n s: [0..1000000000] init 0;\n [] true -> (s'=s+1);\nendmodule\n"
    with StormWorker(memory_limit=4 << 30) as worker, pytest.raises(EngineTimeoutError):
        build_prism_chain(program, worker=worker, time_limit=1)
