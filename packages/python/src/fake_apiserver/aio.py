"""The server of a test that is a coroutine: what waits for the server lets the event loop run, so that the client under test can be a
task of the same loop. It must not depend on pytest or on an event loop other than asyncio's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from fake_apiserver import server
from fake_apiserver.control import AsyncControl
from fake_apiserver.operations import Json, Verdict, WaitResult
from fake_apiserver.server import EXPIRE, FakeApiserver, Injected


class AsyncFakeApiserver:
    """A running server, whose requests to the control API are awaited. Methods and arguments are those of `FakeApiserver`."""

    kubeconfig: Path
    """Kubeconfig of the server. It is removed when the server stops."""
    url: str
    """URL of the Kubernetes API."""
    control: AsyncControl
    """The control API; the most common requests are methods of this class."""

    def __init__(self, server: FakeApiserver) -> None:
        self._server = server
        self.kubeconfig, self.url = server.kubeconfig, server.url
        self.control = AsyncControl(server.control.url, server.control.token)

    @classmethod
    async def start(cls, arguments: Sequence[str] = ()) -> AsyncFakeApiserver:
        """Starts `fake-apiserver serve` with additional arguments."""
        return cls(await asyncio.to_thread(FakeApiserver, arguments))

    async def __aenter__(self) -> AsyncFakeApiserver:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def inject(
        self,
        do: Any,
        *,
        when: Mapping[str, Any] | None = None,
        from_: Mapping[str, Any] | None = None,
        times: int | None = None,
        for_: str | None = None,
        name: str | None = None,
    ) -> Injected:
        """Adds a rule. Without `when` its actions run immediately, on every open watch that `from_` matches."""
        return server.injected(await self.control.add_rule(server.rule(do, when, from_, times, for_, name)))

    async def expire(self, **from_: Any) -> Injected:
        """Ends open watches with a 410 Gone event: all, or those that match, such as `resource="pods"`."""
        return await self.inject(EXPIRE, from_=from_ or None)

    async def wait(self, *, since: int = 0, timeout: str | None = None, **condition: Any) -> WaitResult:
        """Waits for a record of the trace: `await wait(when={"list": 2})`."""
        return await self.control.wait_for(server.wait_for(since, timeout, condition))

    async def requests(self, since: int = 0) -> list[Json]:
        """Returns the requests of clients so far, with `verb`, `path`, `query` and `user_agent`."""
        return server.requests(await self.control.trace(since))

    async def reset(self) -> None:
        """Removes all rules and faults, and restores the initial objects."""
        await self.control.reset()

    async def verdict(self) -> Verdict:
        """Returns the verdict on every client so far."""
        return await self.control.verdict()

    async def expect_no_violations(self, *, client_required: bool = True) -> None:
        """Raises `Violations` if a client violated an invariant, or if none listed or watched."""
        server.expect_no_violations(await self.verdict(), client_required)

    def allow_violations(self) -> None:
        """Keeps the fixture from failing this test for violations."""
        self._server.allow_violations()

    def log(self) -> str:
        """Returns the log of the server: requests, responses, violations."""
        return self._server.log()

    async def stop(self) -> None:
        """Stops the server. Safe to call twice."""
        await asyncio.to_thread(self._server.stop)
