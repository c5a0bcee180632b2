"""Rollouts on disk: one Parquet row per step, text columns dictionary-encoded.

Needs pyarrow, imported only when a file is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from milegpo_algo.data.checks import COLUMNS, RolloutError
from milegpo_algo.data.keys import IntArray

REMEDY = "Parquet needs pyarrow. Run: pip install 'milegpo[report]'"


def write(
    path: str | Path,
    names: Mapping[str, tuple[Sequence[str], IntArray]],
    numbers: Mapping[str, NDArray[np.generic]],
) -> None:
    """Write a file.

    Args:
        path: Where to.
        names: Per text column its distinct values and the index of each row's; below 0 is null.
        numbers: Per other column its values.
    """
    arrow, files = _arrow()
    columns = {name: arrow.array(values) for name, values in numbers.items()}
    for name, (table, index) in names.items():
        codes = arrow.array(index.astype(np.int32), mask=index < 0)
        columns[name] = arrow.DictionaryArray.from_arrays(codes, arrow.array(table, arrow.string()))
    files.write_table(arrow.table({name: columns[name] for name in COLUMNS}), path)


def read(path: str | Path) -> dict[str, list[object]]:
    """Read the columns of a file; further ones are ignored.

    Raises:
        RolloutError: it is no Parquet file, or lacks a column.
    """
    arrow, files = _arrow()
    try:
        found = files.ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise RolloutError(f"{path} is not a Parquet file, or not a whole one: {error}") from error
    for name in COLUMNS:
        if name not in found.schema_arrow.names:
            raise RolloutError(f"{path}: no column {name!r}; a step needs {', '.join(COLUMNS)}")
    table = found.read(columns=list(COLUMNS))
    columns: dict[str, list[object]] = {}
    for name in COLUMNS:
        column = table.column(name).combine_chunks()
        if arrow.types.is_dictionary(column.type):
            texts = [*column.dictionary.to_pylist(), None]
            columns[name] = [texts[code] for code in column.indices.fill_null(-1).to_pylist()]
        else:
            columns[name] = column.to_pylist()
    return columns


def _arrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(REMEDY) from missing
    return pyarrow, pyarrow.parquet
