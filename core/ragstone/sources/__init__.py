"""What people have becomes rows of samples: lists, tables, files and standard input."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.sample import BadLine as BadLine, Row as Row
    from ragstone.sources.base import SourceError as SourceError
    from ragstone.sources.reader import RowReader as RowReader
    from ragstone.sources.rows import rows_of as rows_of, traces as traces
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone.sample": "BadLine Row",
            "ragstone.sources.base": "SourceError",
            "ragstone.sources.reader": "RowReader",
            "ragstone.sources.rows": "rows_of traces",
        },
    )
