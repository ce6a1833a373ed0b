"""``evidence.json``: one document that holds everything an assessment found and everything it needs to be found again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tracebridge.chain import ChainFit
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.pctl import ast, parse_properties


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """An assessment as a reviewer receives it.

    Attributes:
        document: the JSON values of evidence.json.
    """

    document: Mapping[str, Any]

    @property
    def results(self) -> Mapping[str, Any]:
        """What results.json holds; see `results_document`."""
        results: Mapping[str, Any] = self.document["results"]
        return results

    @cached_property
    def fit(self) -> ChainFit | ExpandedFit:
        """The fit, restored from its document.

        Raises:
            ModelError: it is none.
        """
        chain = self.document["chain"]
        return ExpandedFit.from_dict(chain) if "form" in chain else ChainFit.from_dict(chain)

    @cached_property
    def properties(self) -> ast.PropertyFile:
        """The properties as they were given, their constants not yet resolved."""
        return parse_properties(self.document["properties"]["source"])
