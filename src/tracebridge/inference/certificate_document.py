"""Reading the documents of certificates: what follows from other fields must be what is written."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from tracebridge.errors import Location, ModelError


class _Certificate(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_dict(self) -> dict[str, Any]: ...


CertificateT = TypeVar("CertificateT", bound=_Certificate)


def read_certificate(
    certificate_type: type[CertificateT], data: Any, *, kind: str, version: int, path: str | None
) -> CertificateT:
    """The certificate in what its ``to_dict`` wrote.

    Raises:
        ModelError: naming the field: another kind or version, a wrong type, or what does not follow from the rest.
    """
    place = Location(path=path)
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise ModelError(f"this is no document {kind!r}", location=place)
    found = data.get("schema_version")
    if found != version or isinstance(found, bool):
        message = f"version {str(found)[:80]} of {kind!r} is unknown, {version} is known"
        raise ModelError(message, location=Location(path=path, field="schema_version"))
    body = {key: data[key] for key in certificate_type.__dataclass_fields__ if key in data}
    try:
        certificate = msgspec.convert(body, certificate_type, strict=True)
    except msgspec.ValidationError as error:
        raise ModelError(str(error), location=place) from error
    written = certificate.to_dict()
    for key in sorted({*written, *map(str, data)}):
        if _without_wording(written.get(key)) != _without_wording(data.get(key)) and key != "reasons":
            message = (
                f"{key[:80]} does not follow from the other fields" if key in written else f"{key[:80]!r} is unknown"
            )
            raise ModelError(message, location=Location(path=path, field=key[:80]))
    return certificate


def _without_wording(value: Any) -> Any:
    """A field without reasons, whose wording may change from version to version."""
    if isinstance(value, dict):
        return {key: _without_wording(item) for key, item in value.items() if key != "reasons"}
    return value
