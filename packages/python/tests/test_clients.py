"""kubernetes, kubernetes_asyncio and kopf relist after a 410."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import kopf.testing
import kubernetes
import kubernetes_asyncio
import pytest
from fake_apiserver import FakeApiserver, Violations

GONE = {"reply": {"status": 410, "reason": "Expired"}}


def test_kubernetes(fake_apiserver: FakeApiserver) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(fake_apiserver.kubeconfig)))
    body = {"metadata": {"name": "a"}, "data": {"v": "1"}}
    api.create_namespaced_config_map("default", body)
    seen: list[str] = []
    watch = kubernetes.watch.Watch()

    def follow() -> None:
        """The documented loop: watch from a list, relist on 410."""
        version = None
        while len(seen) < 2:
            if version is None:
                listed = api.list_namespaced_config_map("default")
                version = listed.metadata.resource_version
                seen.append("listed")
                continue
            try:
                for _ in watch.stream(api.list_namespaced_config_map, "default", resource_version=version):
                    pass
            except kubernetes.client.ApiException as error:
                assert error.status == 410
                version = None

    # Not a 410 event: `Watch` resumes once by itself.
    fake_apiserver.inject(GONE, when={"watch": "next"})
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    thread.join(120)
    assert seen == ["listed", "listed"]
    fake_apiserver.expect_no_violations()


def test_kubernetes_asyncio(fake_apiserver: FakeApiserver) -> None:
    async def follow() -> list[str]:
        await kubernetes_asyncio.config.load_kube_config(config_file=str(fake_apiserver.kubeconfig))
        seen: list[str] = []
        async with kubernetes_asyncio.client.ApiClient() as client:
            api = kubernetes_asyncio.client.CoreV1Api(client)
            while len(seen) < 2:
                listed = await api.list_namespaced_config_map("default")
                seen.append("listed")
                if len(seen) == 2:
                    break
                version = listed.metadata.resource_version
                try:
                    async with kubernetes_asyncio.watch.Watch() as watch:
                        stream = watch.stream(api.list_namespaced_config_map, "default", resource_version=version)
                        async for _ in stream:
                            pass
                except kubernetes_asyncio.client.ApiException as error:
                    assert error.status == 410
        return seen

    # `Watch` resumes once from the expired version, also after status 410: a violation of INV-04.
    fake_apiserver.inject(GONE, when={"watch": "next"}, times=2)
    assert asyncio.run(asyncio.wait_for(follow(), 120)) == ["listed", "listed"]
    fake_apiserver.allow_violations()
    with pytest.raises(Violations, match="INV-04 .* the client watched from .* though the server had sent 410"):
        fake_apiserver.expect_no_violations()


OPERATOR = """
import kopf

@kopf.on.login()
def login(**arguments):
    return kopf.login_with_kubeconfig(**arguments)

@kopf.on.event("", "v1", "configmaps", labels={"watched": "yes"})
def seen(name, **_):
    print(f"seen {name}", flush=True)
"""


def test_kopf(fake_apiserver: FakeApiserver, tmp_path: Path) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(fake_apiserver.kubeconfig)))
    operator = tmp_path / "operator.py"
    operator.write_text(OPERATOR)
    from_ = {"resource": "configmaps"}
    with kopf.testing.KopfRunner(["run", "--namespace=default", "--standalone", str(operator)], timeout=120) as runner:
        watching = fake_apiserver.wait(when={"watch": 1}, from_=from_)
        expired = fake_apiserver.expire(**from_)
        assert watching["stream"] in expired.streams
        fake_apiserver.wait(when={"watch": 1}, from_=from_, since=expired.next_record)
        body = {"metadata": {"name": "late", "labels": {"watched": "yes"}}}
        api.create_namespaced_config_map("default", body)
        fake_apiserver.wait(sent={"type": "ADDED", "name": "late"}, from_=from_, since=expired.next_record)
    assert runner.exit_code == 0
    assert "seen late" in runner.output
    fake_apiserver.expect_no_violations()
