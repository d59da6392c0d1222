"""When a cancel comes, and from whom."""

from dataclasses import dataclass, field

from domain.keys import Step
from tests.gates import Gate
from tests.matrix.dimensions import Caller, Case
from tests.matrix.policies import DEADLINE_SECONDS
from tests.shop import Shop


@dataclass
class Cancels:
    """One order's cancels. `sent` once any was; `answers` are those to the customer (202, 409)."""

    shop: Shop
    order_id: str
    case: Case
    sent: bool = False
    answers: list[int] = field(default_factory=list)
    _gate: Gate | None = None

    def prepare(self) -> None:
        """Before the order is placed: holds the moment."""
        if self.case.moment is None:
            return
        place, after = self.case.moment.place, self.case.moment.after
        step, item = (place.step, place.item) if place else (Step.OPEN_ORDER, None)
        self._gate = self.shop.gates.hold(self.order_id, step, item=item, after=after, times=1)

    async def send(self) -> None:
        """Cancels once the moment has come."""
        if self._gate is None or self.case.caller is None or self.case.moment is None:
            return
        if self.case.moment.place is not None:
            await self._gate.reached(within_seconds=DEADLINE_SECONDS)
        self.sent = True
        for by_customer in {
            Caller.CUSTOMER: (True,),
            Caller.TEMPORAL: (False,),
            Caller.BOTH: (True, False),
            Caller.BOTH_TURNED: (False, True),
        }[self.case.caller]:
            await (self._by_customer() if by_customer else self._in_temporal())
        self._gate.open()

    async def _by_customer(self) -> None:
        status, _ = await self.shop.cancel(self.order_id)
        self.answers.append(status)

    async def _in_temporal(self) -> None:
        await self.shop.started(self.order_id)
        await self.shop.saga(self.order_id).cancel()
