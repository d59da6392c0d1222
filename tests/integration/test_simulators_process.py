"""The simulators as a process: their books outlive it, and it starts and stops in order."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest
import stripe

from tests.polling import eventually
from tests.simulated import WebhookReceiver, a_desk


async def test_a_restarted_gateway_knows_its_money_its_keys_and_its_time(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        intent_id = await desk.an_authorized_intent()
        await desk.intents.capture_async(intent_id, {}, {"idempotency_key": "capture"})
        await desk.refunds.create_async({"payment_intent": intent_id, "amount": 1000})
        await desk.control("POST", "clock", advance_seconds=3600)
        before = (await desk.ledger())["intents"]
        then = (await desk.control("GET", "clock"))["now"]
    async with a_desk(tmp_path) as desk:
        assert (await desk.ledger())["intents"] == before
        assert (await desk.control("GET", "clock"))["now"] >= then
        replayed = await desk.intents.capture_async(intent_id, {}, {"idempotency_key": "capture"})
        assert replayed.last_response is not None
        assert replayed.last_response.headers["Idempotent-Replayed"] == "true"
        with pytest.raises(stripe.InvalidRequestError):
            await desk.refunds.create_async({"payment_intent": intent_id, "amount": 4000})


async def test_an_event_that_was_not_delivered_comes_after_a_restart(tmp_path: Path) -> None:
    receiver = WebhookReceiver()
    async with a_desk(tmp_path, receiver) as desk:
        receiver.answers = [500] * 40
        await desk.an_authorized_intent()
        await receiver.wait_for_attempts(1)
    receiver.answers = []
    async with a_desk(tmp_path, receiver):
        await receiver.wait_for("payment_intent.amount_capturable_updated")


async def test_a_payment_that_was_processing_is_authorized_after_a_restart(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        desk.simulators.config.settle_seconds = 3600
        intent_id = await desk.an_intent()
        await desk.intents.confirm_async(intent_id)
    async with a_desk(tmp_path) as desk:
        await desk.until(intent_id, "requires_capture")


async def test_parcels_and_mails_outlive_the_process(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        booking = {"reference": "o1:north", "warehouse": "north", "address": {"postcode": "10115", "country": "DE"}}
        async with desk.http.post(f"{desk.simulators.courier_url}/shipments", json=booking) as answer:
            booked = await answer.json()
    async with a_desk(tmp_path) as desk:
        assert (await desk.ledger(desk.simulators.courier_url))["shipments"] == [booked]


async def test_the_gateway_can_go_away_and_come_back_on_the_same_address(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        intent_id = await desk.an_authorized_intent()
        await desk.simulators.stop()
        with pytest.raises(stripe.APIConnectionError):
            await desk.intents.retrieve_async(intent_id)
        await desk.simulators.start()
        assert (await desk.intents.retrieve_async(intent_id)).status == "requires_capture"


async def test_a_call_that_hangs_when_the_gateway_stops_has_no_effect(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        intent_id = await desk.an_authorized_intent()
        fault_id = await desk.fault(op="capture", mode="hang")
        hung = asyncio.create_task(desk.intents.capture_async(intent_id))

        async def is_held() -> bool:
            return bool((await desk.control("GET", f"faults/{fault_id}"))["held"])

        await eventually(is_held)
    with pytest.raises(stripe.APIConnectionError):
        await hung
    async with a_desk(tmp_path) as desk:
        assert (await desk.intents.retrieve_async(intent_id)).status == "requires_capture"


async def start_process(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "simulators",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def free_ports(*named: str) -> list[str]:
    return [part for name in named for part in (f"--{name}-port", "0")]


async def test_the_process_says_where_it_listens_and_stops_on_sigterm() -> None:
    process = await start_process(*free_ports("gateway", "courier", "fraud", "smtp", "mail"))
    assert process.stdout is not None
    async with asyncio.timeout(20):
        ready = (await process.stdout.readline()).decode()
        assert ready.startswith("simulators ready: gateway http://127.0.0.1:")
        process.terminate()
        _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")


async def test_a_taken_port_is_one_line_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = await start_process("--courier-port", port, *free_ports("gateway", "fraud", "smtp", "mail"))
        async with asyncio.timeout(20):
            _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.decode().count("\n") == 1
    assert f"port {port} (courier)" in errors.decode()
