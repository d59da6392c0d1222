"""A small evaluator of PromQL over recorded scrapes: what our alerts and panels use, and nothing more.

It reads what `promql_parser` parses, and computes as Prometheus documents it: rates are extrapolated to the range's
borders, a counter that falls was set back, a series that is missing from the newest scrape of its target has ended.
Anything else raises NotImplementedError, so that no rule is judged by half.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import promql_parser as ast

from tests.observability.scraping import Sample

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Scrape:
    """What all targets answered at one instant, in seconds of the replay; by name."""

    at: float
    samples: Mapping[str, Sequence[Sample]]


def evaluate(expression: str, scrapes: Sequence[Scrape], at: float) -> Vector:
    """The expression's instant vector. The scrapes are in their order, none later than `at` counts."""
    found = _evaluate(ast.parse(expression), [scrape for scrape in scrapes if scrape.at <= at], at)
    assert isinstance(found, dict)
    return found


def _evaluate(node: ast.Expr, scrapes: Sequence[Scrape], at: float) -> Vector | float:
    match node:
        case ast.NumberLiteral():
            return float(node.val)
        case ast.ParenExpr():
            return _evaluate(node.expr, scrapes, at)
        case ast.VectorSelector():
            return _instant(node, scrapes)
        case ast.Call():
            return _call(node, scrapes, at)
        case ast.AggregateExpr():
            return _aggregate(node, _vector(_evaluate(node.expr, scrapes, at)))
        case ast.BinaryExpr():
            return _binary(node, _evaluate(node.lhs, scrapes, at), _evaluate(node.rhs, scrapes, at))
    raise NotImplementedError(type(node).__name__)


def _instant(node: ast.VectorSelector, scrapes: Sequence[Scrape]) -> Vector:
    if node.offset is not None or node.at is not None:
        raise NotImplementedError("offset or @")
    newest = scrapes[-1].samples.get(node.name or "", ()) if scrapes else ()
    matchers = node.matchers.matchers
    return {
        sample.series: sample.value
        for sample in newest
        if all(_matches(matcher, sample.labels.get(matcher.name, "")) for matcher in matchers)
    }


def _matches(matcher: ast.Matcher, value: str) -> bool:
    if matcher.op in (ast.MatchOp.Re, ast.MatchOp.NotRe):
        same = re.fullmatch(matcher.value, value) is not None
    else:
        same = value == matcher.value
    return same is (matcher.op in (ast.MatchOp.Equal, ast.MatchOp.Re))


def _call(node: ast.Call, scrapes: Sequence[Scrape], at: float) -> Vector:
    name = node.func.name
    if name in _OVER_TIME:
        (matrix,) = node.args
        assert isinstance(matrix, ast.MatrixSelector)
        span = matrix.range.total_seconds()
        changes = {
            labels: _OVER_TIME[name](points, at, span)
            for labels, points in _range(matrix, scrapes, at, span).items()
            if len(points) > 1
        }
        return _nameless(changes.items())
    if name == "absent":
        (selector,) = node.args
        return {} if _evaluate(selector, scrapes, at) else {frozenset(): 1.0}
    if name == "histogram_quantile":
        quantile, buckets = (_evaluate(argument, scrapes, at) for argument in node.args)
        assert isinstance(quantile, float)
        return _quantiles(quantile, _vector(buckets))
    raise NotImplementedError(name)


def _range(node: ast.MatrixSelector, scrapes: Sequence[Scrape], at: float, span: float) -> dict[Labels, Points]:
    series: dict[Labels, Points] = defaultdict(list)
    for scrape in scrapes:
        if scrape.at > at - span:
            for labels, value in _instant(node.vector_selector, [scrape]).items():
                series[labels].append((scrape.at, value))
    return series


def _increase(points: Points, at: float, span: float, *, counter: bool = True) -> float:
    """The change over the whole range: that between its first and last sample, carried on to the range's borders."""
    change = points[-1][1] - points[0][1]
    if counter:
        change += sum(before for (_, before), (_, after) in pairwise(points) if after < before)
    sampled = points[-1][0] - points[0][0]
    between = sampled / (len(points) - 1)
    to_start, to_end = points[0][0] - (at - span), at - points[-1][0]
    if to_start >= between * 1.1:
        to_start = between / 2
    if counter and change > 0 and points[0][1] >= 0:
        to_start = min(to_start, sampled * points[0][1] / change)
    if to_end >= between * 1.1:
        to_end = between / 2
    return change * (sampled + to_start + to_end) / sampled


_OVER_TIME: dict[str, Callable[[Points, float, float], float]] = {
    "increase": _increase,
    "rate": lambda points, at, span: _increase(points, at, span) / span,
    "delta": lambda points, at, span: _increase(points, at, span, counter=False),
}


def _quantiles(quantile: float, buckets: Vector) -> Vector:
    histograms: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"])
        histograms[frozenset(pair for pair in labels if pair[0] not in {"le", "__name__"})].append((bound, count))
    return {labels: _quantile(quantile, sorted(found)) for labels, found in histograms.items()}


def _quantile(quantile: float, buckets: list[tuple[float, float]]) -> float:
    rank = quantile * buckets[-1][1]
    if not buckets[-1][1]:
        return math.nan
    place = next(number for number, (_, count) in enumerate(buckets) if count >= rank)
    if place == len(buckets) - 1:
        return buckets[-2][0]
    low, before = buckets[place - 1] if place else (0.0, 0.0)
    bound, count = buckets[place]
    return low + (bound - low) * (rank - before) / (count - before)


_AGGREGATES: dict[str, Callable[[Iterable[float]], float]] = {"sum": math.fsum, "max": max, "min": min}


def _aggregate(node: ast.AggregateExpr, vector: Vector) -> Vector:
    if node.param is not None or (node.modifier and node.modifier.type != ast.AggModifierType.By):
        raise NotImplementedError("aggregation with a parameter or `without`")
    kept = set(node.modifier.labels) if node.modifier else set()
    groups: dict[Labels, list[float]] = defaultdict(list)
    for labels, value in vector.items():
        groups[frozenset(pair for pair in labels if pair[0] in kept)].append(value)
    return {labels: _AGGREGATES[str(node.op)](values) for labels, values in groups.items()}


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
}
_COMPUTE: dict[str, Callable[[float, float], float]] = {
    "*": lambda a, b: a * b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b if b else math.nan,
}


def _binary(node: ast.BinaryExpr, left: Vector | float, right: Vector | float) -> Vector | float:
    if node.modifier is not None and (node.modifier.matching or node.modifier.return_bool):
        raise NotImplementedError("vector matching or `bool`")
    sign = str(node.op)
    if isinstance(left, float) and isinstance(right, float):
        return _COMPUTE[sign](left, right)
    vector = _vector(left)
    if sign in {"and", "or"}:
        other = _keys(_vector(right))
        both = {labels: value for labels, value in vector.items() if _key(labels) in other}
        added = {labels: value for labels, value in _vector(right).items() if _key(labels) not in _keys(vector)}
        return both if sign == "and" else {**vector, **added}
    against = dict.fromkeys(_keys(vector), right) if isinstance(right, float) else _by_key(right)
    pairs = [(labels, value, against[_key(labels)]) for labels, value in vector.items() if _key(labels) in against]
    if sign in _COMPARE:
        return {labels: value for labels, value, other in pairs if _COMPARE[sign](value, other)}
    return _nameless((labels, _COMPUTE[sign](value, other)) for labels, value, other in pairs)


def _vector(found: Vector | float) -> Vector:
    assert isinstance(found, Mapping)
    return found


def _key(labels: Labels) -> Labels:
    return frozenset(pair for pair in labels if pair[0] != "__name__")


def _keys(vector: Vector) -> set[Labels]:
    return {_key(labels) for labels in vector}


def _by_key(vector: Vector) -> Vector:
    return {_key(labels): value for labels, value in vector.items()}


def _nameless(rows: Iterable[tuple[Labels, float]]) -> Vector:
    return {_key(labels): value for labels, value in rows}
