"""The controller keeps working after a 410 Gone, and the judge has nothing against its requests."""

from pathlib import Path

import kubernetes
import pytest
from fake_apiserver import FakeApiserver
from kopf.testing import KopfRunner

CONFIG_MAPS = {"resource": "configmaps", "user_agent": "kopf"}


@pytest.fixture
def controller(fake_apiserver):
    path = Path(__file__).with_name("controller.py")
    with KopfRunner(["run", "--namespace=default", "--standalone", str(path)], timeout=60) as runner:
        yield runner
    assert runner.exit_code == 0, runner.output


def create(server: FakeApiserver, name: str) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(server.kubeconfig)))
    api.create_namespaced_config_map("default", {"metadata": {"name": name, "labels": {"greet": "yes"}}})


def wait_until_greeted(server: FakeApiserver, name: str) -> None:
    server.wait(when={"request": 1}, from_={"verb": "patch", "resource": "configmaps", "name": name})


def test_controller_survives_410(fake_apiserver, controller):
    fake_apiserver.wait(when={"watch": 1}, from_=CONFIG_MAPS)
    create(fake_apiserver, "before")
    wait_until_greeted(fake_apiserver, "before")

    expired = fake_apiserver.expire(**CONFIG_MAPS)
    assert expired.streams, "the controller has a watch open"
    create(fake_apiserver, "after")
    fake_apiserver.wait(when={"list": 1}, from_=CONFIG_MAPS, since=expired.next_record)
    wait_until_greeted(fake_apiserver, "after")

    fake_apiserver.expect_no_violations()
