"""Tests that are coroutines, with the client under test in their own event loop: kopf's operator, as its users run it in a program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import kopf
import kubernetes_asyncio as k8s
import pytest

from fake_apiserver import AsyncFakeApiserver, ControlError, Violations
from fake_apiserver.control import _seconds

CONFIG_MAPS = {"resource": "configmaps", "user_agent": "kopf"}


# Not a fixture: at its end, kopf cancels every task that is younger than the operator, and the teardown of a fixture is one.
@asynccontextmanager
async def operator() -> AsyncIterator[asyncio.Task[None]]:
    """An operator that annotates ConfigMaps, as a task of the test's loop."""
    registry, stop = kopf.OperatorRegistry(), asyncio.Event()

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.on.event("", "v1", "configmaps", registry=registry)
    def greet(name: str, annotations: Any, patch: Any, **_: Any) -> None:
        if "greeting" not in annotations:
            patch.metadata.annotations["greeting"] = f"hello {name}"

    running = asyncio.create_task(
        kopf.operator(registry=registry, namespaces=["default"], standalone=True, stop_flag=stop)
    )
    yield running
    stop.set()
    await running


async def create(server: AsyncFakeApiserver, name: str) -> None:
    async with await k8s.config.new_client_from_config(str(server.kubeconfig)) as client:
        await k8s.client.CoreV1Api(client).create_namespaced_config_map("default", {"metadata": {"name": name}})


async def wait_until_greeted(server: AsyncFakeApiserver, name: str) -> None:
    await server.wait(when={"request": 1}, from_={"verb": "patch", "resource": "configmaps", "name": name})


@pytest.mark.asyncio
async def test_an_operator_in_the_loop_of_the_test_survives_410(async_fake_apiserver: AsyncFakeApiserver) -> None:
    server = async_fake_apiserver
    async with operator() as running:
        await server.wait(when={"watch": 1}, from_=CONFIG_MAPS)
        await create(server, "before")
        await wait_until_greeted(server, "before")
        expired = await server.expire(**CONFIG_MAPS)
        assert expired.streams, "the operator has a watch open"
        await create(server, "after")
        await server.wait(when={"list": 1}, from_=CONFIG_MAPS, since=expired.next_record)
        await wait_until_greeted(server, "after")
        await server.expect_no_violations()
        assert not running.done()


@pytest.mark.asyncio
async def test_every_operation_has_a_coroutine(async_fake_apiserver: AsyncFakeApiserver) -> None:
    server = async_fake_apiserver
    added = await server.inject({"delay": "1s"}, when={"list": "next"}, name="slow")
    assert added.rule is not None
    assert [rule["name"] for rule in await server.control.rules()] == ["slow"]
    await server.control.remove_rule(added.rule)
    await server.inject({"delay": "1s"}, when={"list": "next"})
    assert len(await server.control.remove_rules()) == 1
    await server.reset()
    assert await server.control.streams() == []
    assert (await server.control.state())["rules"] == 0
    assert await server.requests() == []
    with pytest.raises(Violations, match="no client"):
        await server.expect_no_violations()
    with pytest.raises(ControlError, match="no key `explode`"):
        await server.inject({"explode": True}, when={"list": "next"})


@pytest.mark.asyncio
async def test_a_wait_ends_by_its_timeout_or_by_cancellation(async_fake_apiserver: AsyncFakeApiserver) -> None:
    with pytest.raises(ControlError) as late:
        await async_fake_apiserver.wait(when={"list": 1}, timeout="10ms")
    assert late.value.status == 504
    waiting = asyncio.create_task(async_fake_apiserver.wait(when={"list": 1}))
    # The loop runs: another request is answered meanwhile.
    await async_fake_apiserver.verdict()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.asyncio
async def test_a_server_is_an_asynchronous_context_manager() -> None:
    async with await AsyncFakeApiserver.start(["--kubernetes-version", "1.34"]) as server:
        assert (await server.control.state())["kubernetes"] == "1.34"
    assert not server.kubeconfig.exists()


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (None, 60),
        ('{"since": 0, "timeout": "5s"}', 35),
        ("{when: {list: 1}, timeout: 2m}", 150),
        ("timeout: 1m30s", 120),
        ('{"timeout": "500ms"}', 30.5),
    ],
)
def test_a_socket_waits_longer_than_the_server(body: str | None, seconds: float) -> None:
    assert _seconds(body) == seconds
