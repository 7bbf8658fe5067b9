"""The fixture and the control API, with minimal clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator

import pytest

from fake_apiserver import ControlError, FakeApiserver, Violations

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

# A test whose client resumes from the expired version after a 410.
RESUMES_AFTER_410 = """
import json, urllib.request

def test_a_client_that_resumes_after_410(fake_apiserver):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    configmaps = fake_apiserver.url + "/api/v1/configmaps"
    version = json.load(opener.open(configmaps))["metadata"]["resourceVersion"]
    watch = opener.open(f"{configmaps}?watch=true&resourceVersion={version}")
    fake_apiserver.expire()
    assert json.loads(watch.readline())["object"]["code"] == 410
    opener.open(f"{configmaps}?watch=true&resourceVersion={version}")
    fake_apiserver.wait(when={"watch": 2})
"""


def test_kubeconfig_is_set_in_the_environment(fake_apiserver: FakeApiserver) -> None:
    assert os.environ["KUBECONFIG"] == str(fake_apiserver.kubeconfig)
    assert fake_apiserver.url in fake_apiserver.kubeconfig.read_text()


def test_a_rule_matches_its_request_and_the_trace_records_it(fake_apiserver: FakeApiserver) -> None:
    injected = fake_apiserver.inject({"reply": {"status": 503}}, when={"list": "next"}, name="flaky")
    assert [rule["name"] for rule in fake_apiserver.control.rules()] == ["flaky"]
    with pytest.raises(urllib.error.HTTPError) as rejected:
        _OPENER.open(fake_apiserver.url + "/api/v1/pods")
    assert rejected.value.code == 503
    rejected.value.close()
    assert fake_apiserver.control.rules() == []
    found = fake_apiserver.wait(when={"list": 1}, since=injected.next_record)
    assert "LIST" in found["line"]
    assert [(request["verb"], request["path"]) for request in fake_apiserver.requests()] == [("list", "/api/v1/pods")]


def test_rules_can_be_removed(fake_apiserver: FakeApiserver) -> None:
    rules = [fake_apiserver.inject({"delay": "1s"}, when={"list": "next"}).rule for _ in range(2)]
    assert rules[0] is not None
    fake_apiserver.control.remove_rule(rules[0])
    assert [rule["id"] for rule in fake_apiserver.control.rules()] == [rules[1]]
    fake_apiserver.reset()
    assert fake_apiserver.control.rules() == []
    assert fake_apiserver.control.streams() == []
    fake_apiserver.inject({"delay": "1s"}, when={"list": "next"})
    assert len(fake_apiserver.control.remove_rules()) == 1
    assert fake_apiserver.control.state()["rules"] == 0


def test_a_mistake_in_a_rule_has_a_position(fake_apiserver: FakeApiserver) -> None:
    with pytest.raises(ControlError, match="`do` has no key `explode`") as rejected:
        fake_apiserver.inject({"explode": True}, when={"list": "next"})
    assert rejected.value.status == 400
    assert rejected.value.body["mistakes"][0]["line"] == 1


def test_no_client_is_no_verdict(fake_apiserver: FakeApiserver) -> None:
    with pytest.raises(Violations, match="no client"):
        fake_apiserver.expect_no_violations()


def test_violations_fail_the_test_at_its_end(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["fake_apiserver.pytest_plugin"]')
    pytester.makepyfile(RESUMES_AFTER_410)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*Violations: a client violated the rules of LIST and WATCH:", "*INV-*"])


def test_a_failed_test_is_reported_with_violations(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["fake_apiserver.pytest_plugin"]')
    pytester.makepyfile(RESUMES_AFTER_410 + "    assert False, 'another reason'\n")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*another reason*", "*fake-apiserver teardown*", "*fake-apiserver verdict teardown*", "*INV-*"])


def test_violations_can_be_allowed(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["fake_apiserver.pytest_plugin"]')
    pytester.makepyfile(RESUMES_AFTER_410 + "    fake_apiserver.allow_violations()\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_arguments_reach_the_server(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["fake_apiserver.pytest_plugin"]')
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def fake_apiserver_arguments():
            return ["--kubernetes-version", "1.34"]

        def test_version(fake_apiserver):
            assert fake_apiserver.control.state()["kubernetes"] == "1.34"
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.fixture
def killed() -> Iterator[tuple[int, str]]:
    """Process id and URL of a server whose test process was killed."""
    script = """
        import os, signal
        from fake_apiserver import FakeApiserver
        server = FakeApiserver()
        print(server._process.pid, server.url, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    pid, url = done.stdout.split()
    yield int(pid), url


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open to wait for a process that is not a child")
def test_a_killed_test_leaves_no_server(killed: tuple[int, str]) -> None:
    import select

    try:
        ended = os.pidfd_open(killed[0])
    except ProcessLookupError:
        return
    assert select.select([ended], [], [], 60)[0], "the server is still running"
    os.close(ended)
