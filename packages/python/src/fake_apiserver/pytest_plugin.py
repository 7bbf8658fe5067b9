"""The pytest fixtures. Starting and judging a server is in `fake_apiserver.server`."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import pytest

from fake_apiserver.aio import AsyncFakeApiserver
from fake_apiserver.server import FakeApiserver, Violations

_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def fake_apiserver_arguments() -> Sequence[str]:
    """Additional arguments of `fake-apiserver serve`. Override it in a module or a conftest.py."""
    return ()


@pytest.fixture
def fake_apiserver(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, fake_apiserver_arguments: Sequence[str]
) -> Iterator[FakeApiserver]:
    """The running server of this test; `KUBECONFIG` is set. Violations by clients fail the test at its end."""
    with FakeApiserver(fake_apiserver_arguments) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        yield server
        failed = request.node.stash.get(_FAILED, False)
        if failed:
            request.node.add_report_section("teardown", "fake-apiserver", server.log())
            _add_violations(request.node, server)
        elif not server.violations_allowed:
            server.expect_no_violations(client_required=False)


def _add_violations(test: pytest.Item, server: FakeApiserver) -> None:
    """Adds what the judge found to the report of a failed test, where it is often the reason."""
    try:
        server.expect_no_violations(client_required=False)
    except Violations as found:
        test.add_report_section("teardown", "fake-apiserver verdict", str(found))
    except (OSError, RuntimeError) as error:
        test.add_report_section("teardown", "fake-apiserver verdict", f"there is none: {error}")


@pytest.fixture
def async_fake_apiserver(fake_apiserver: FakeApiserver) -> AsyncFakeApiserver:
    """The server of `fake_apiserver`, for tests that are coroutines: with pytest-asyncio, anyio or another plugin for them."""
    return AsyncFakeApiserver(fake_apiserver)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Records whether the test failed: violations are not checked then."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report
