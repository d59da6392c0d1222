"""Workflow code, and the domain that it calls unsandboxed, give the same answer on every replay."""

import pytest

from tests.imports import modules
from tests.workflow_rules import findings

DETERMINISTIC = {name: path for name, path in modules().items() if name.partition(".")[0] in {"workflows", "domain"}}


@pytest.mark.parametrize("module", sorted(DETERMINISTIC))
def test_nothing_in_it_differs_from_one_replay_to_the_next(module: str) -> None:
    assert findings(DETERMINISTIC[module].read_text()) == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("began = time.time()", "time.time"),
        ("at = datetime.now(UTC)", "datetime.now"),
        ("at = datetime.datetime.utcnow()", "datetime.utcnow"),
        ("day = date.today()", "date.today"),
        ("pause = random.uniform(1, 2)", "random.uniform"),
        ("key = uuid.uuid4()", "uuid.uuid4"),
        ("home = os.environ['HOME']", "os.environ"),
        ("text = open('prices.csv').read()", "open()"),
        ("shard = hash(order_id) % 4", "hash()"),
        ("threading.Thread(target=run).start()", "threading.Thread"),
        ("done, open_ = await asyncio.wait(tasks)", "asyncio.wait"),
        ("workflow.sleep(3)", "sleep is not awaited"),
        ("pause = asyncio.sleep(3)", "sleep is not awaited"),
        ("workflow.execute_activity('reserve_stock')", "execute_activity is not awaited"),
        ("for sku in {'a', 'b'}: reserve(sku)", "iterates over a set"),
        ("for sku in set(skus) - {'a'}: reserve(sku)", "iterates over a set"),
        ("calls = [reserve(sku) for sku in frozenset(skus)]", "iterates over a set"),
        ("places = list({'a', 'b'})", "list() of a set"),
        ("places = [*{'a', 'b'}]", "unpacks a set"),
        ("PLACES = {'a', 'b'}\nfor place in PLACES: book(place)", "iterates over a set"),
        ("self.seen: set[str] = make()\nfor one in self.seen: book(one)", "iterates over a set"),
        ("try: pay()\nexcept Exception: undo()", "except Exception"),
        ("try: pay()\nexcept (ValueError, BaseException): undo()", "except BaseException"),
        ("try: pay()\nexcept: undo()", "except"),
        ("with suppress(Exception): pay()", "suppress(Exception)"),
    ],
)
def test_what_breaks_a_rule_is_found(line: str, what: str) -> None:
    body = "".join(f"    {part}\n" for part in line.split("\n"))
    found = findings(f"async def run():\n{body}")
    assert [text.partition(": ")[2] for text in found] == [what]


@pytest.mark.parametrize(
    "line",
    [
        "at = workflow.now()",
        "pause = 0.8 + 0.4 * workflow.random().random()",
        "key = workflow.uuid4()",
        "await workflow.sleep(3)",
        "task = asyncio.create_task(workflow.sleep(3))",
        "await asyncio.gather(workflow.execute_activity('a'), workflow.execute_activity('b'))",
        "for sku in sorted({'a', 'b'}): reserve(sku)",
        "known = 'a' in {'a', 'b'}",
        "names = {name.lower() for name in {'A', 'B'}}",
        "for order in orders: ship(order)",
        "try: pay()\nexcept FailureError: undo()",
        "since = datetime.fromisoformat(text)",
    ],
)
def test_what_keeps_the_rules_is_not_reported(line: str) -> None:
    body = "".join(f"    {part}\n" for part in line.split("\n"))
    assert findings(f"async def run():\n{body}") == []
