"""All pairs: few cases in which any two values of two dimensions meet somewhere."""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

Row = tuple[Any, ...]

#: Fillings of the other dimensions that are tried for one pair before the best is taken, and before it is given up.
TRIED, GIVEN_UP = 6, 60


def all_pairs(dimensions: Sequence[Sequence[Any]], valid: Callable[[Row], bool], seed: int) -> list[Row]:
    """Rows with one value a dimension, each valid, the same ones for the same seed.

    Greedy: takes the next pair that no row has, and of some random fillings the one with the most new pairs. A pair
    for which no filling is valid is left out.
    """
    chance = random.Random(seed)
    wanted = dict.fromkeys(
        ((i, a), (j, b))
        for i, j in itertools.combinations(range(len(dimensions)), 2)
        for a in range(len(dimensions[i]))
        for b in range(len(dimensions[j]))
    )
    rows: list[Row] = []
    while wanted:
        pair = next(iter(wanted))
        best, most, found = None, 0, 0
        for _ in range(GIVEN_UP):
            chosen = [chance.randrange(len(values)) for values in dimensions]
            for dimension, value in pair:
                chosen[dimension] = value
            if not valid(tuple(values[at] for values, at in zip(dimensions, chosen, strict=True))):
                continue
            new = sum(met in wanted for met in itertools.combinations(enumerate(chosen), 2))
            if new > most:
                best, most = chosen, new
            found += 1
            if found == TRIED:
                break
        if best is None:
            del wanted[pair]
            continue
        for met in itertools.combinations(enumerate(best), 2):
            wanted.pop(met, None)
        rows.append(tuple(values[at] for values, at in zip(dimensions, best, strict=True)))
    return rows
