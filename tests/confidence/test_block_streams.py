"""A corpus as streams and as responses, and back."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.confidence.hand_fixture import hand_table

from tracebridge.confidence.block_streams import block_responses, block_streams
from tracebridge.confidence.composition import fit_composition
from tracebridge.confidence.composition_streams import calibrated_streams, fitting_questions
from tracebridge.confidence.margin import Margin
from tracebridge.confidence.online import prequential_confidence
from tracebridge.confidence.reading import read_confidence
from tracebridge.confidence.table import UNKNOWN
from tracebridge.confidence.tabulate import tabulate
from tracebridge.errors import InputError, UsageError
from tracebridge.studies.broadcast_notation import Block, Run, build_table


def test_valid_polls_become_streams_and_go_back() -> None:
    """Blocks c90:4 w80:5 i1, w85:7 c85:9 c70:9, i95 c60:2 w60:3, and one without a valid poll."""
    table = hand_table()
    found = block_streams(table)
    assert found.block.tolist() == [0, 1, 2]
    assert found.poll.tolist() == [[0, 1, UNKNOWN], [3, 4, 5], [UNKNOWN, 7, 8]]
    assert found.streams.questions == ("p0", "p1", "p2")
    assert found.streams.correct.tolist() == [[1, 0, UNKNOWN], [0, 1, 1], [UNKNOWN, 1, 0]]
    assert found.streams.n_candidates().tolist() == [2, 2, 2]
    column = found.of_polls(found.streams.confidence, len(table.polls.block))
    assert np.array_equal(column[table.polls.valid], table.polls.confidence[table.polls.valid])
    assert np.isnan(column[~table.polls.valid]).all()
    composed = fit_composition(found.streams, "sum", base_rate=0.5)(found.streams)
    assert composed.correct[1] == 1


def test_labelled_polls_become_responses_in_the_order_of_blocks() -> None:
    found = block_responses(hand_table(), delay=2)
    assert found.responses.round.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert found.poll.tolist() == [0, 1, 3, 4, 5, 7, 8]
    assert set(found.responses.delay.tolist()) == {2}
    corrected = prequential_confidence(Margin(), found.responses)
    assert corrected == pytest.approx(found.responses.confidence)  # nothing is known before the third block ends


def test_an_unlabelled_poll_is_a_stream_and_no_response() -> None:
    table = build_table([Run(blocks=[Block("c90:4 u80:5 w70:6")])])
    assert block_streams(table).streams.correct.tolist() == [[1, UNKNOWN, 0]]
    assert block_responses(table).poll.tolist() == [0, 2]


def test_what_cannot_be_a_stream_is_refused() -> None:
    table = build_table([Run(blocks=[Block("c90:4 w80:5")])], n_agents=2)
    object.__setattr__(table.polls, "agent", np.array([1, 1]))
    for job in (block_streams, block_responses):
        with pytest.raises(InputError, match="trace 't0': agent 'a1' has two valid polls"):
            job(table)
    with pytest.raises(InputError, match="two labels"):
        block_streams(build_table([Run(blocks=[Block("c90:4 w80:4")])]))
    with pytest.raises(UsageError, match="delay"):
        block_responses(hand_table(), delay=-1)
    with pytest.raises(UsageError, match="shape"):
        block_streams(hand_table()).of_polls(np.zeros((1, 1)), 12)


@pytest.mark.shared_data
def test_real_polls_compose_better_than_the_most_confident_agent_routes(shared_data: Path) -> None:
    """On these 5,650 items the most confident agent is right in .784, ties at random, and the best agent in .806."""
    table = tabulate(read_confidence(shared_data / "polls" / "routing_polls.jsonl").traces)
    streams = block_streams(table).streams
    assert len(streams.questions) == 5_650
    fit = fitting_questions(streams.questions)
    calibrated, _ = calibrated_streams(streams[fit], streams, "isotonic")
    composed = fit_composition(calibrated[fit], "discount", choice="posterior")(calibrated[~fit])
    assert math.isclose(np.mean(streams.correct == 1, axis=0).max(), 0.806, abs_tol=5e-4)
    assert np.mean(composed.correct == 1) > 0.806
