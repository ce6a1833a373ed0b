"""The rows of a flat trace file in Parquet, a batch at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.traces.files import MAX_DOCUMENT_BYTES
from tracebridge.traces.problems import escaped, shown
from tracebridge.traces.readers.columns import absent_columns, find_columns
from tracebridge.traces.readers.row_block import RowBlock
from tracebridge.traces.readers.step_values import BOUNDS
from tracebridge.traces.readers.table import listing, stripped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence, Set

    from tracebridge.traces.files import InputFile

_BATCH_ROWS = 1 << 13
_MAX_METADATA_BYTES = 64 << 20
_MAX_METADATA_ITEMS = 1 << 20


class ParquetTable:
    """The rows of a Parquet file; only the columns of fields are read.

    Attributes:
        fields: the fields that have a column.
        columns: the columns.
        ignored: those of them that are no field.
        n_bytes: how many bytes the cells read so far have.

    Raises:
        TraceError: while iterating, for a damaged file, one without a column for the run or for what was mapped, a
            column of something else than texts, numbers and truth values, or too many rows; where pyarrow is missing.
    """

    def __init__(
        self,
        file: InputFile,
        *,
        max_bytes: int | None = MAX_DOCUMENT_BYTES,
        only: Callable[[Set[str]], Collection[str]] | None = None,
    ) -> None:
        """Of a file; more than ``max_bytes`` of cells are refused.

        Of the fields, blocks have those that ``only`` names, ``run_id`` among them; what is wrong with others is still
        told.
        """
        self._file = file
        self._only = only
        self._max_bytes = max_bytes
        self.fields: set[str] = set()
        self.columns: set[str] = set()
        self.ignored: set[str] = set()
        self.n_bytes = 0

    def __iter__(self) -> Iterator[RowBlock]:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise self._file.damaged(
                "this is a Parquet file, which only pyarrow can read", hint="pip install 'tracebridge[arrow]'"
            ) from error
        try:
            with pyarrow.parquet.ParquetFile(
                self._source(pyarrow),
                thrift_string_size_limit=_MAX_METADATA_BYTES,
                thrift_container_size_limit=_MAX_METADATA_ITEMS,
            ) as opened:
                places = self._places(opened.schema_arrow)
                yield from self._blocks(opened, places)
        except (pyarrow.ArrowException, OSError) as error:
            raise self._file.damaged(f"the Parquet file is damaged: {escaped(str(error), 200)}") from error

    def _source(self, pyarrow: Any) -> Any:
        """The file itself if it lies here as it is; else, as Parquet begins at its end, all of it."""
        if self._file.path is not None and not self._file.is_compressed and self._file.path.is_file():
            return self._file.path
        return pyarrow.BufferReader(self._file.document())

    def _places(self, schema: Any) -> dict[str, str]:
        """The column of each field."""
        names = list(schema.names)
        for name, count in Counter(names).items():
            if count > 1:
                raise TraceError(self._problem(f"the column {shown(name)} stands twice"))
        places = find_columns(names, self._file.mapping)
        if absent := absent_columns(places, self._file.mapping):
            listed = ", ".join(map(shown, absent))
            raise TraceError(self._problem(f"there is no column {listed}; there are {listing(names)}"))
        if "run_id" not in places:
            message = f"no column names the run; there are {listing(names)}"
            raise TraceError(self._problem(message, hint="--map run_id=COLUMN"))
        self.fields = set(places)
        self.columns = set(names)
        self.ignored = self.columns - set(places.values())
        return places

    def _blocks(self, opened: Any, places: dict[str, str]) -> Iterator[RowBlock]:
        needed = places.keys() if self._only is None else self._only(places.keys())
        number = 0
        for batch in opened.iter_batches(batch_size=_BATCH_ROWS, columns=list(places.values()), use_threads=False):
            cells = {}
            for name, column in places.items():
                if name in needed:
                    cells[name] = self._cells(name, batch.column(column), column, places)
                else:
                    self._require_texts(batch.column(column), column)
            block = RowBlock(range(number + 1, number + 1 + batch.num_rows), cells, {})
            self.n_bytes += batch.nbytes
            if self._max_bytes is not None and self.n_bytes > self._max_bytes:
                message = f"more than {self._max_bytes >> 20} MiB of cells"
                hint = "they must be held in memory: write them to a file, which can be read twice"
                raise TraceError(self._problem(message, line=number, hint=hint))
            if batch.num_rows:
                yield block
            number += batch.num_rows

    def _cells(self, name: str, values: Any, column: str, fields: Collection[str]) -> Sequence[Any]:
        """A column as a block has it: values, where they mean what their texts would, or the texts of a CSV file."""
        import pyarrow.compute as pc
        from pyarrow.types import is_boolean, is_float64, is_integer

        if name in BOUNDS and (is_integer(values.type) if name == "tokens" else is_float64(values.type)):
            found = pc.min_max(values).as_py()
            is_finite = name == "tokens" or pc.all(pc.is_finite(values)).as_py() is not False
            if found["min"] is None or (is_finite and found["min"] >= 0 and found["max"] <= BOUNDS[name]):
                return (values if name == "tokens" else pc.add(values, 0.0)).to_pylist()  # type: ignore[no-any-return]
        elif name == "error" and is_boolean(values.type):
            return values.fill_null(False).to_pylist()  # type: ignore[no-any-return]
        elif name == "step" and is_integer(values.type) and "state" in fields and not values.null_count:
            return values.to_pylist()  # type: ignore[no-any-return]
        return self._texts(values, column)

    def _require_texts(self, values: Any, column: str) -> None:
        """Refuse a column as `_texts` does, without making texts of it."""
        import pyarrow
        from pyarrow.types import is_boolean, is_float32, is_float64, is_integer

        if any(is_kind(values.type) for is_kind in (is_boolean, is_float32, is_float64, is_integer)):
            return
        try:
            values.cast(pyarrow.string()).validate(full=True)
        except pyarrow.ArrowException:
            self._texts(values, column)

    def _texts(self, values: Any, column: str) -> list[str]:
        """A column as the texts that a CSV file would have, each of them made once; blank where there is no value."""
        import numpy as np
        import pyarrow

        try:
            coded = values.cast(pyarrow.string()).dictionary_encode(null_encoding="encode")
            texts = stripped([text or "" for text in coded.dictionary.to_pylist()])
        except UnicodeDecodeError as error:
            message = f"byte 0x{error.object[error.start]:02x} is not valid UTF-8"
            raise TraceError(self._problem(message, field=escaped(column))) from error
        except pyarrow.ArrowException as error:
            message = f"the column holds {escaped(str(values.type))}: texts, numbers or truth values are needed"
            raise TraceError(self._problem(message, field=escaped(column))) from error
        found: list[str] = np.array(texts, dtype=object)[coded.indices.to_numpy()].tolist()
        return found

    def _problem(
        self, message: str, *, line: int | None = None, field: str | None = None, hint: str | None = None
    ) -> Problem:
        return Problem(location=Location(path=self._file.label, line=line, field=field), message=message, hint=hint)
