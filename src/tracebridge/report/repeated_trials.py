"""What a chain with classes of tasks says of repeated trials of a task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.inference.expanded.task_classes import class_reliabilities, pass_hat_k, pass_hat_k_property
from tracebridge.report.markdown import table

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit

_MOST_TRIALS = 8


def repeated_trials_markdown(fit: ChainFit | ExpandedFit) -> Iterator[str]:
    """The success of all of k trials of a task, as blocks of Markdown; nothing for a chain without classes."""
    if not isinstance(fit, ExpandedFit) or fit.form.classes == 1:
        return
    classes = class_reliabilities(fit.model).tolist()
    weights = fit.model.class_weights.tolist()
    shares = ", ".join(
        f"{weight:.0%} of tasks succeed {rate:.4g} of the time" for weight, rate in zip(weights, classes, strict=True)
    )
    yield (
        f"Classes of tasks: {shares}. Trials of a task share its class, so that all of k trials succeed with another "
        "probability than R_inf^k:"
    )
    single = pass_hat_k(fit.model, 1)
    rows = [[str(k), f"{pass_hat_k(fit.model, k):.4g}", f"{single**k:.4g}"] for k in range(1, _MOST_TRIALS + 1)]
    yield table(["k", "pass^k", "R_inf^k"], rows)
    yield f"As a property of this chain, for k = 4: `{pass_hat_k_property(fit.model, 4)}`"
