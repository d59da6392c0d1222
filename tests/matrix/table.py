"""The row of docs/failure-table.md that each part of a case falls under."""

from collections.abc import Iterator
