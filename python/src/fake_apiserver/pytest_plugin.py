"""The pytest fixtures. It must not know how a server is started or judged."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import pytest

from fake_apiserver.server import FakeApiserver

_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def fake_apiserver_arguments() -> Sequence[str]:
    """Further arguments of `fake-apiserver serve`. Override it in a module or a conftest.py."""
    return ()


@pytest.fixture
def fake_apiserver(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, fake_apiserver_arguments: Sequence[str]
) -> Iterator[FakeApiserver]:
    """A running server of this test, and `KUBECONFIG` for it. Violations by clients fail the test at its end."""
    with FakeApiserver(fake_apiserver_arguments) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        yield server
        failed = request.node.stash.get(_FAILED, False)
        if failed:
            request.node.add_report_section("teardown", "fake-apiserver", server.log())
        elif not server.violations_allowed:
            server.expect_no_violations(client_required=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remembers whether the test itself failed: then the verdict is not what is asked about."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report
