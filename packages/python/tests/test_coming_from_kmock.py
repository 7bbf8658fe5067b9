"""The right-hand column of docs/coming-from-kmock.md: a test for each row."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from fake_apiserver import FakeApiserver

PATH = "/api/v1/namespaces/default/configmaps"
CONFIG_MAPS = {"resource": "configmaps"}


def get(server: FakeApiserver, path: str) -> Any:
    with urllib.request.urlopen(server.url + path, timeout=30) as answer:
        return json.load(answer)


def watch(server: FakeApiserver, version: str) -> Any:
    return urllib.request.urlopen(f"{server.url}{PATH}?watch=true&resourceVersion={version}", timeout=30)


def version_of(listed: Any) -> Any:
    return listed["metadata"]["resourceVersion"]


@pytest.fixture(autouse=True)
def these_are_requests_and_no_client(fake_apiserver: FakeApiserver) -> None:
    fake_apiserver.allow_violations()


def test_an_object_to_begin_with(fake_apiserver: FakeApiserver) -> None:
    fake_apiserver.inject({"apply": {"configmap": {"name": "a", "data": {"v": "1"}}}})
    assert get(fake_apiserver, PATH + "/a")["data"]["v"] == "1"


def test_an_answer_that_fails(fake_apiserver: FakeApiserver) -> None:
    fake_apiserver.inject({"reply": {"status": 503}}, when={"list": "next"}, from_=CONFIG_MAPS, times=3)
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError, match="503"):
            get(fake_apiserver, PATH)
    get(fake_apiserver, PATH)


def test_a_watch_event_is_a_write(fake_apiserver: FakeApiserver) -> None:
    with watch(fake_apiserver, version_of(get(fake_apiserver, PATH))) as events:
        fake_apiserver.inject({"apply": {"configmap": {"name": "a"}}})
        event = json.loads(events.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        fake_apiserver.inject({"delete": "a"})
        assert json.loads(events.readline())["type"] == "DELETED"


def test_a_watch_that_expires(fake_apiserver: FakeApiserver) -> None:
    with watch(fake_apiserver, version_of(get(fake_apiserver, PATH))) as events:
        fake_apiserver.expire(**CONFIG_MAPS)
        error = json.loads(events.readline())
        assert (error["type"], error["object"]["code"]) == ("ERROR", 410)


def test_an_answer_that_is_slow(fake_apiserver: FakeApiserver) -> None:
    fake_apiserver.inject({"delay": "100ms"}, when={"list": "next"}, from_=CONFIG_MAPS)
    get(fake_apiserver, PATH)


def test_bytes_as_they_are_written(fake_apiserver: FakeApiserver) -> None:
    fake_apiserver.inject({"reply": {"status": 200, "body": "no JSON"}}, when={"list": "next"}, from_=CONFIG_MAPS)
    with urllib.request.urlopen(fake_apiserver.url + PATH, timeout=30) as answer:
        assert answer.read() == b"no JSON"


def test_requests_that_were_made(fake_apiserver: FakeApiserver) -> None:
    get(fake_apiserver, PATH)
    fake_apiserver.wait(when={"list": 1}, from_=CONFIG_MAPS)
    assert len(fake_apiserver.requests()) == 1
