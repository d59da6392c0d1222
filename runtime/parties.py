"""What one party's worker needs: its database role, its provider, its activities, and nothing of the others."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from temporalio.client import Client

from activities.inventory import InventoryActivities
from activities.late_money import LateMoneyActivities
from activities.loyalty import LoyaltyActivities
from activities.orders import OrdersActivities
from activities.payments import PaymentsActivities
from activities.provider_books import CourierBooksActivities, GatewayBooksActivities
from activities.reconciliation import ReconciliationActivities
from activities.shipping import ShippingActivities
from adapters.courier import Courier
from adapters.database import Database
from adapters.fraud_scorer import FraudScorer
from adapters.holds import Holding
from adapters.payment_gateway import PaymentGateway
from domain.holds import Held
from domain.policy import OrderPolicy
from events.runs import Runs
from runtime.settings import Settings
from workflows.names import Queue

Activities = Sequence[Callable[..., Any]]


@asynccontextmanager
async def open_party(
    queue: Queue, settings: Settings, client: Client, policy: OrderPolicy | None = None
) -> AsyncIterator[Activities]:
    """The activities of one queue, with their connections open until the block ends.

    `client`: what the guard looks at runs with. `policy` holds the numbers of new orders that are no settings. Raises
    SettingsError when a setting of this party is missing; those of other parties are not looked at.
    """
    async with AsyncExitStack() as stack:
        database = Database(settings.database_for(queue), application=f"worker-{queue}")
        stack.push_async_callback(database.close)
        seconds = settings.provider_timeout_seconds
        match queue:
            case Queue.ORDERS:
                base = settings.need(settings.fraud_api_base, "FRAUD_API_BASE")
                scorer = FraudScorer(base, timeout_seconds=seconds)
                stack.push_async_callback(scorer.close)
                orders = OrdersActivities(database, scorer, settings, policy)
                books = ReconciliationActivities(database, Runs(client), settings)
                yield [
                    orders.open_order,
                    orders.screen_order,
                    orders.record_status,
                    orders.record_decision,
                    orders.confirm_order,
                    orders.record_refund,
                    orders.park_step,
                    orders.close_park,
                    books.begin_run,
                    books.look_at_runs,
                    books.compare_books,
                    books.repair_findings,
                    books.end_run,
                ]
            case Queue.INVENTORY:
                inventory = InventoryActivities(database)
                yield [inventory.reserve_stock, inventory.release_stock, inventory.commit_stock]
            case Queue.LOYALTY:
                loyalty = LoyaltyActivities(database)
                yield [
                    loyalty.burn_points,
                    loyalty.restore_points,
                    loyalty.apply_store_credit,
                    loyalty.refund_store_credit,
                ]
            case Queue.PAYMENTS:
                key = settings.need(settings.stripe_api_key, "STRIPE_API_KEY")
                gateway = PaymentGateway(
                    key,
                    base_url=settings.stripe_api_base,
                    timeout_seconds=seconds,
                    before_effect=Holding(database).before(Held.GATEWAY),
                )
                stack.push_async_callback(gateway.close)
                payments = PaymentsActivities(database, gateway)
                late = LateMoneyActivities(database, gateway, payments)
                yield [
                    payments.authorize_payment,
                    payments.read_payment,
                    payments.abandon_payment,
                    payments.capture_payment,
                    payments.release_payment,
                    late.settle_late_money,
                    late.open_refund,
                    late.refund_payment,
                    GatewayBooksActivities(database, gateway).read_gateway_books,
                ]
            case Queue.SHIPPING:
                base = settings.need(settings.courier_api_base, "COURIER_API_BASE")
                look = Holding(database).before(Held.COURIER)
                courier = Courier(base, timeout_seconds=seconds, before_effect=look)
                stack.push_async_callback(courier.close)
                shipping = ShippingActivities(database, courier)
                yield [
                    shipping.book_shipment,
                    shipping.cancel_shipment,
                    CourierBooksActivities(database, courier).read_courier_books,
                ]
