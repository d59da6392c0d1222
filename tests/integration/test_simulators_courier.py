"""The simulated courier, fraud scorer and mail sink decide by their input."""

from collections.abc import AsyncIterator
from email.message import EmailMessage
from typing import Any

import aiohttp
import aiosmtplib
import pytest
import pytest_asyncio

from tests.simulated import Desk, a_desk


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    async with a_desk() as opened:
        yield opened


async def call(desk: Desk, method: str, path: str, document: Any = None) -> tuple[int, dict[str, Any]]:
    """The courier's status and JSON answer."""
    async with desk.http.request(method, f"{desk.simulators.courier_url}{path}", json=document) as answer:
        return answer.status, await answer.json()


def a_booking(*, reference: str = "o1:north", postcode: str = "10115") -> dict[str, Any]:
    return {"reference": reference, "warehouse": "north", "address": {"postcode": postcode, "country": "DE"}}


async def test_a_reference_is_booked_once_however_often_it_is_asked_for(desk: Desk) -> None:
    status, booked = await call(desk, "POST", "/shipments", a_booking())
    assert (status, booked["reference"], booked["status"]) == (201, "o1:north", "booked")
    assert await call(desk, "POST", "/shipments", a_booking()) == (200, booked)
    assert await call(desk, "GET", "/shipments?reference=o1:north") == (200, booked)
    (line,) = (await desk.ledger(desk.simulators.courier_url))["shipments"]
    assert (line["id"], line["reference"], line["status"]) == (booked["id"], "o1:north", "booked")


async def test_a_cancelled_reference_is_never_booked_again(desk: Desk) -> None:
    await call(desk, "POST", "/shipments", a_booking())
    for _ in range(2):
        status, cancelled = await call(desk, "POST", "/shipments/o1:north/cancel")
        assert (status, cancelled["status"]) == (200, "cancelled")
    status, refused = await call(desk, "POST", "/shipments", a_booking())
    assert (status, refused["error"]["code"]) == (409, "cancelled")


async def test_what_was_never_booked_is_not_found(desk: Desk) -> None:
    for method, path in (("GET", "/shipments?reference=o1:north"), ("POST", "/shipments/o1:north/cancel")):
        status, answer = await call(desk, method, path)
        assert (status, answer["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(("postcode", "status", "code"), [("00000", 422, "no_service"), ("50000", 500, "internal")])
async def test_some_postcodes_are_never_booked(desk: Desk, postcode: str, status: int, code: str) -> None:
    for _ in range(2):
        answered, body = await call(desk, "POST", "/shipments", a_booking(postcode=postcode))
        assert (answered, body["error"]["code"]) == (status, code)
    assert (await desk.ledger(desk.simulators.courier_url))["shipments"] == []


async def test_one_postcode_is_booked_and_never_answered_but_can_be_found(desk: Desk) -> None:
    for _ in range(2):
        with pytest.raises(aiohttp.ClientError):
            await call(desk, "POST", "/shipments", a_booking(postcode="50400"))
    status, found = await call(desk, "GET", "/shipments?reference=o1:north")
    assert (status, found["status"]) == (200, "booked")
    assert len((await desk.ledger(desk.simulators.courier_url))["shipments"]) == 1


@pytest.mark.parametrize("wrong", [None, [], {}, {**a_booking(), "address": {}}, {**a_booking(), "reference": 7}])
async def test_a_booking_without_its_fields_is_refused(desk: Desk, wrong: Any) -> None:
    status, answer = await call(desk, "POST", "/shipments", wrong)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")


async def test_the_list_of_parcels_pages(desk: Desk) -> None:
    for number in range(3):
        await call(desk, "POST", "/shipments", a_booking(reference=f"o{number}:north"))
    _, first = await call(desk, "GET", "/shipments?limit=2")
    _, rest = await call(desk, "GET", f"/shipments?limit=2&starting_after={first['shipments'][-1]['id']}")
    assert (first["has_more"], rest["has_more"]) == (True, False)
    references = [one["reference"] for one in [*first["shipments"], *rest["shipments"]]]
    assert references == ["o0:north", "o1:north", "o2:north"]


async def test_a_parcel_that_moves_is_told_by_signed_webhook_and_cannot_be_cancelled(desk: Desk) -> None:
    _, booked = await call(desk, "POST", "/shipments", a_booking())
    courier = desk.simulators.courier_url
    moved = await desk.control("POST", f"shipments/{booked['id']}/advance", courier, status="dispatched")
    assert moved["status"] == "dispatched"
    await desk.receiver.wait_for("shipment.dispatched")
    assert desk.receiver.events[0]["data"]["object"]["reference"] == "o1:north"
    status, refused = await call(desk, "POST", "/shipments/o1:north/cancel")
    assert (status, refused["error"]["code"]) == (409, "on_its_way")


async def test_a_booking_held_in_the_network_lands_after_its_cancel_found_nothing(desk: Desk) -> None:
    fault_id = await desk.fault(desk.simulators.courier_url, op="book", mode="hang", order_id="o1")
    with pytest.raises(TimeoutError):
        async with desk.http.post(
            f"{desk.simulators.courier_url}/shipments", json=a_booking(), timeout=aiohttp.ClientTimeout(total=0.2)
        ):
            pass
    assert (await call(desk, "POST", "/shipments/o1:north/cancel"))[0] == 404
    await desk.control("DELETE", f"faults/{fault_id}")
    assert (await call(desk, "GET", "/shipments?reference=o1:north"))[1]["status"] == "booked"


@pytest.mark.parametrize(("customer", "score"), [("anna-score-95", 95), ("ben-score-07", 7), ("c-score-100", 100)])
async def test_a_customer_scores_what_the_id_says(desk: Desk, customer: str, score: int) -> None:
    document = {"order_id": "o1", "customer_id": customer, "amount": 4500, "currency": "EUR"}
    async with desk.http.post(f"{desk.simulators.fraud_url}/score", json=document) as answer:
        assert (answer.status, (await answer.json())["score"]) == (200, score)


async def test_any_other_customer_scores_low_and_always_the_same(desk: Desk) -> None:
    document = {"order_id": "o1", "customer_id": "dora", "amount": 4500, "currency": "EUR"}
    scores = set()
    for _ in range(2):
        async with desk.http.post(f"{desk.simulators.fraud_url}/score", json=document) as answer:
            scores.add((await answer.json())["score"])
    assert len(scores) == 1
    assert scores.pop() < 30


async def test_the_scorer_can_fail_for_one_order(desk: Desk) -> None:
    await desk.fault(op="score", mode="error", status=503, order_id="o1")
    answers = []
    for order in ("o2", "o1", "o1"):
        document = {"order_id": order, "customer_id": "dora", "amount": 4500, "currency": "EUR"}
        async with desk.http.post(f"{desk.simulators.fraud_url}/score", json=document) as answer:
            answers.append(answer.status)
    assert answers == [200, 503, 200]


async def test_a_mail_is_kept_with_its_id_its_recipient_and_its_subject(desk: Desk) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "shop@example.com", "anna@example.com", "Ihre Bestellung für März"
    mail["Message-ID"] = "<o1.confirmed@shop.example.com>"
    mail.set_content("Thank you.")
    await aiosmtplib.send(mail, hostname="127.0.0.1", port=desk.simulators.config.ports.smtp)
    (kept,) = (await desk.ledger(desk.simulators.mail_url))["messages"]
    assert kept["id"] == "o1.confirmed@shop.example.com"
    assert (kept["to"], kept["subject"]) == ("anna@example.com", "Ihre Bestellung für März")
