"""All pairs: few rows in which any two values of two dimensions meet, if they meet in any row at all."""

import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import TypeVar

Row = TypeVar("Row", bound=tuple[Hashable, ...])

#: So many rows that have the wanted pair are compared; the one with the most new pairs is taken.
COMPARED = 12


def cover_pairs(rows: Sequence[Row], seed: int) -> list[Row]:
    """Some of the rows, the same ones for the same seed: all pairs of values that the rows have are in them.

    Greedy: of some rows with a pair that is still missing, the one with the most missing pairs is next.
    """
    chance = random.Random(seed)
    pairs = [list(combinations(enumerate(row), 2)) for row in rows]
    having: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, found in enumerate(pairs):
        for pair in found:
            having[pair].append(number)
    missing = dict.fromkeys(having)
    chosen: list[Row] = []
    while missing:
        candidates = having[next(iter(missing))]
        compared = candidates if len(candidates) <= COMPARED else chance.sample(candidates, COMPARED)
        best = max(compared, key=lambda number: sum(pair in missing for pair in pairs[number]))
        for pair in pairs[best]:
            missing.pop(pair, None)
        chosen.append(rows[best])
    return chosen
