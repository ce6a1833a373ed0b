"""Storm asked what an explicit file says, in a process of its own: JSON in on standard input, JSON out.

A request is a list of ``{"drn": path, "exact": bool}`` or ``{"tra": ..., "lab": ..., "srew": ..., "trew": ...}``. An
answer holds the rows, labels and rewards of the model that Storm built; numbers are texts.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import stormpy


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if "drn" in request:
        model = stormpy.build_model_from_drn[stormpy.Rational if request["exact"] else float](request["drn"])
    else:
        model = stormpy.build_model_from_explicit(
            request["tra"], request["lab"], state_rewards=request["srew"], transition_rewards=request["trew"]
        )
    matrix = model.transition_matrix
    number = str if request.get("exact") else repr
    return {
        "rows": [[[entry.column, number(entry.value)] for entry in matrix.get_row(i)] for i in range(model.nr_states)],
        "labels": {label: list(model.labeling.get_states(label)) for label in model.labeling.get_labels()},
        "rewards": {
            name: {
                "state": [number(x) for x in reward.state_rewards] if reward.has_state_rewards else None,
                "action": [number(x) for x in reward.state_action_rewards] if reward.has_state_action_rewards else None,
            }
            for name, reward in model.reward_models.items()
        },
    }


if __name__ == "__main__":
    out = os.dup(1)
    os.dup2(2, 1)  # Storm's own messages
    text = json.dumps([answer(request) for request in json.load(sys.stdin)])
    os.write(out, text.encode())
