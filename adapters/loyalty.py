"""Points and store credit: two ledgers of one shape, balances that never go below zero, and their books.

A balance is changed by one conditional statement that locks its row, so two orders of one customer cannot spend the
same points. A customer without an account has zero.
"""

from dataclasses import dataclass
from uuid import uuid4

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Column, ColumnElement, Table, and_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import Database
from adapters.tables import credit_accounts, credit_movements, orders, points_accounts, points_movements
from domain.intake import Amount, CurrencyCode
from domain.keys import EffectKey


class CustomerLevel(BaseModel):
    """What an operator says a customer has. Currencies of store credit that are not named stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    points: Amount
    store_credit: dict[CurrencyCode, Amount] = {}


class CustomerView(BaseModel):
    """What a customer has: points, and store credit by currency in smallest units."""

    customer_id: str
    points: int
    store_credit: dict[str, int]


@dataclass(frozen=True)
class Ledger:
    """Accounts and their movements. Who holds an account is its primary key, by the same names in all three tables."""

    accounts: Table
    balance: Column[int]
    movements: Table
    #: What an order spends of it.
    price: Column[int]
    #: The kinds of an order's movement and of its reversal.
    spent: str
    returned: str

    @property
    def holder_names(self) -> list[str]:
        """The columns that say whose account it is."""
        return [column.name for column in self.accounts.primary_key]

    def account(self, holder: dict[str, str]) -> ColumnElement[bool]:
        """The condition that finds one account."""
        return and_(*(self.accounts.c[name] == value for name, value in holder.items()))


POINTS = Ledger(points_accounts, points_accounts.c.points, points_movements, orders.c.points, "burned", "restored")
CREDIT = Ledger(
    credit_accounts, credit_accounts.c.balance, credit_movements, orders.c.store_credit, "applied", "refunded"
)


async def spend(connection: AsyncConnection, ledger: Ledger, key: EffectKey) -> bool:
    """Takes what the order spends from its customer; False: there is not enough, and nothing was taken.

    The caller holds the effect's lock and stamps it.
    """
    columns = [orders.c[name] for name in ledger.holder_names]
    query = select(ledger.price.label("price"), *columns).where(orders.c.order_id == key.order_id)
    order = (await connection.execute(query)).one()
    if not order.price:
        return True
    holder = {name: getattr(order, name) for name in ledger.holder_names}
    taken = await connection.execute(
        update(ledger.accounts)
        .values({ledger.balance: ledger.balance - order.price})
        .where(ledger.account(holder), ledger.balance >= order.price)
    )
    if not taken.rowcount:
        return False
    await connection.execute(
        insert(ledger.movements).values(
            key=str(key), kind=ledger.spent, amount=-order.price, order_id=key.order_id, **holder
        )
    )
    return True


async def give_back(connection: AsyncConnection, ledger: Ledger, undo: EffectKey) -> None:
    """Returns what the order's movement says was taken; nothing where there is none.

    The caller holds the effect's lock and makes sure that it happens once; the movement's key does so again.
    """
    query = select(ledger.movements).where(
        ledger.movements.c.order_id == undo.order_id, ledger.movements.c.kind == ledger.spent
    )
    spent = (await connection.execute(query)).one_or_none()
    if spent is None:
        return
    holder = {name: getattr(spent, name) for name in ledger.holder_names}
    await connection.execute(
        update(ledger.accounts).values({ledger.balance: ledger.balance - spent.amount}).where(ledger.account(holder))
    )
    await connection.execute(
        insert(ledger.movements).values(
            key=str(undo), kind=ledger.returned, amount=-spent.amount, order_id=undo.order_id, **holder
        )
    )


async def put_customer(database: Database, customer_id: str, level: CustomerLevel, actor: str) -> CustomerView:
    """Sets the balances to what the operator says; each difference is a movement `granted`.

    Idempotent by its meaning: a second call finds no difference.
    """
    async with database.begin() as connection:
        await _set_balance(connection, POINTS, {"customer_id": customer_id}, level.points, actor)
        for currency, amount in sorted(level.store_credit.items()):
            holder = {"customer_id": customer_id, "currency": currency}
            await _set_balance(connection, CREDIT, holder, amount, actor)
        return await _view(connection, customer_id)


async def read_customer(database: Database, customer_id: str) -> CustomerView:
    """The balances at one instant; zero for a customer who was never given anything."""
    async with database.snapshot() as connection:
        return await _view(connection, customer_id)


async def _set_balance(
    connection: AsyncConnection, ledger: Ledger, holder: dict[str, str], amount: int, actor: str
) -> None:
    await connection.execute(insert(ledger.accounts).values(**holder).on_conflict_do_nothing())
    account = ledger.account(holder)
    before = (await connection.execute(select(ledger.balance).where(account).with_for_update())).scalar_one()
    if amount == before:
        return
    await connection.execute(update(ledger.accounts).values({ledger.balance: amount}).where(account))
    await connection.execute(
        insert(ledger.movements).values(
            key=f"granted:{uuid4()}", kind="granted", amount=amount - before, actor=actor, **holder
        )
    )


async def _view(connection: AsyncConnection, customer_id: str) -> CustomerView:
    points = await connection.scalar(
        select(points_accounts.c.points).where(points_accounts.c.customer_id == customer_id)
    )
    credit = await connection.execute(
        select(credit_accounts.c.currency, credit_accounts.c.balance)
        .where(credit_accounts.c.customer_id == customer_id)
        .order_by(credit_accounts.c.currency)
    )
    return CustomerView(
        customer_id=customer_id, points=points or 0, store_credit={row.currency: row.balance for row in credit}
    )
