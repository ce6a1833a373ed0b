"""Certificates by scope as they are told: scopes of which the same is said are told once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def told_once(standings: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Each different standing under its scopes, such as ``timing and path``.

    Args:
        standings: scope to ``Standing.to_dict``, as results.json has them.
    """
    scopes: dict[tuple[str, ...], list[str]] = {}
    for scope, standing in standings.items():
        scopes.setdefault((standing["verdict"], *standing["reasons"]), []).append(scope)
    return {" and ".join(names): standings[names[0]] for names in scopes.values()}
