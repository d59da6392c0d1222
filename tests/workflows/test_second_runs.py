"""An order whose run was terminated or reset: the next run finds each effect of the first one, or undoes it."""

import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.common import WorkflowIDReusePolicy

from domain.keys import Step
from domain.messages import OrderInput
from tests.baskets import Basket
from tests.builders import an_order_document
from tests.gates import Gate
from tests.shop import Shop
from workflows.names import Queue
from workflows.order import OrderWorkflow


async def terminated_at(shop: Shop, basket: Basket, step: Step, **changes: object) -> Gate:
    """The order's first run, terminated while this step is under way. The step's attempt still stands at its gate."""
    gate = shop.gates.hold(basket.order_id, step)
    await shop.place(basket, **changes)
    await gate.reached()
    await shop.saga(basket.order_id).terminate("a test")
    return gate


async def run_again(shop: Shop, basket: Basket) -> None:
    """Starts the order's second run."""
    await shop.client.start_workflow(
        OrderWorkflow.run,
        OrderInput(order_id=basket.order_id),
        id=shop.saga(basket.order_id).id,
        task_queue=Queue.ORDERS,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )


async def test_a_second_run_finds_what_the_first_one_did_and_ends_as_it_would_have(shop: Shop) -> None:
    """S73: a restarted run repeats no payment."""
    basket = await shop.basket()
    gate = await terminated_at(shop, basket, Step.CAPTURE_PAYMENT)
    gate.open()
    await run_again(shop, basket)
    await shop.ended(basket.order_id)
    await shop.assert_clean(basket, basket.order_id)


async def test_a_cancel_at_the_start_of_a_second_run_undoes_what_the_first_one_began(shop: Shop) -> None:
    basket = await shop.basket()
    booking = await terminated_at(shop, basket, Step.BOOK_SHIPMENT)
    screening = shop.gates.hold(basket.order_id, Step.SCREEN_ORDER)
    await run_again(shop, basket)
    await screening.reached()
    assert (await shop.cancel(basket.order_id))[0] == 202
    screening.open()
    booking.open()
    await shop.ended(basket.order_id)
    await shop.assert_undone(basket, basket.order_id, "CANCELLED_BY_CUSTOMER")


async def test_a_second_run_of_an_order_that_was_being_undone_goes_on_undoing_it(shop: Shop) -> None:
    basket = await shop.basket()
    nowhere = an_order_document()["shipping_address"] | {"postcode": "00000"}
    gate = await terminated_at(shop, basket, Step.RELEASE_PAYMENT, shipping_address=nowhere)
    gate.open()
    await run_again(shop, basket)
    await shop.ended(basket.order_id)
    assert shop.gates.calls(basket.order_id, Step.CAPTURE_PAYMENT) == 0
    await shop.assert_undone(basket, basket.order_id, "NO_SERVICE_TO_ADDRESS")


async def test_a_second_run_of_a_confirmed_order_only_sells_its_stock(shop: Shop) -> None:
    basket = await shop.basket()
    gate = await terminated_at(shop, basket, Step.COMMIT_STOCK)
    gate.open()
    await run_again(shop, basket)
    await shop.ended(basket.order_id)
    assert shop.gates.calls(basket.order_id, Step.RESERVE_STOCK) == 1
    await shop.assert_clean(basket, basket.order_id)


async def test_a_cancel_after_a_reset_never_unconfirms_an_order(shop: Shop) -> None:
    basket = await shop.basket()
    await shop.place(basket)
    await shop.ended(basket.order_id)
    gate = shop.gates.hold(basket.order_id, Step.AUTHORIZE_PAYMENT)
    await reset_before(shop, basket, Step.AUTHORIZE_PAYMENT)
    await gate.reached()
    await shop.saga(basket.order_id).cancel()
    gate.open()
    # The cancel came before this run's pivot, and still the only way is forward.
    await shop.gates.ended(basket.order_id, Step.CONFIRM_ORDER, 2)
    await shop.ended(basket.order_id)
    await shop.assert_clean(basket, basket.order_id)


async def test_a_reset_to_before_the_payment_repeats_no_payment_no_shipment_and_no_event(shop: Shop) -> None:
    """S72: the same payment, parcel and event."""
    basket = await shop.basket()
    await shop.place(basket)
    await shop.ended(basket.order_id)
    await reset_before(shop, basket, Step.AUTHORIZE_PAYMENT)
    await shop.ended(basket.order_id)
    await shop.assert_clean(basket, basket.order_id)


async def reset_before(shop: Shop, basket: Basket, step: Step) -> None:
    """What the Web UI's *Reset* does: a new run that shares the history up to the decision that scheduled the step."""
    handle = shop.saga(basket.order_id)
    events = (await handle.fetch_history()).events
    scheduled = next(
        event.activity_task_scheduled_event_attributes
        for event in events
        if event.activity_task_scheduled_event_attributes.activity_type.name == step
    )
    execution = WorkflowExecution(workflow_id=handle.id, run_id=(await handle.describe()).run_id)
    await shop.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=shop.client.namespace,
            workflow_execution=execution,
            reason="a test",
            workflow_task_finish_event_id=scheduled.workflow_task_completed_event_id,
            request_id=str(uuid.uuid4()),
        )
    )
