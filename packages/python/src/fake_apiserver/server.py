"""The process: finds the binary, starts it and stops it. Independent of pytest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from fake_apiserver import operations
from fake_apiserver.control import Control
from fake_apiserver.operations import Json, Verdict, WaitResult

_NAME = "fake-apiserver"
_STOP_SECONDS = 10
_EXPIRED = {"error": {"code": 410, "reason": "Expired", "message": "The resourceVersion for the provided watch is too old."}}
EXPIRE = [_EXPIRED, {"end": "eof"}]
"""Actions that end a watch with a 410 Gone event."""


@dataclass(frozen=True)
class Injected:
    """An added rule, or one without `when` whose actions ran immediately."""

    rule: int | None
    """Number of the rule; None if its actions ran immediately."""
    next_record: int
    """Number of the next record of the trace: `since` of a wait that must not miss any."""
    streams: list[int] = field(default_factory=list)
    """Open responses that its actions ran on."""


class Violations(AssertionError):
    """A client violated an invariant of LIST and WATCH, or no client listed or watched."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


class FakeApiserver:
    """A running server. Use it as a context manager, or call `stop()`."""

    kubeconfig: Path
    """Kubeconfig of the server. It is removed when the server stops."""
    url: str
    """URL of the Kubernetes API."""
    control: Control
    """The control API; the most common requests are methods of this class."""

    def __init__(self, arguments: Sequence[str] = (), *, binary: str | os.PathLike[str] | None = None) -> None:
        """Starts `fake-apiserver serve` with additional arguments."""
        command = [os.fspath(binary or find_binary()), "serve", "--announce", "json", "--exit-with-stdin"]
        self._violations_allowed = False
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise RuntimeError(f"fake-apiserver did not start:\n{self.log()}")
        announced = json.loads(line)
        self.kubeconfig = Path(announced["kubeconfigs"][0])
        self.url = announced["server"]
        self.control = Control(announced["control"], announced["token"])

    def __enter__(self) -> FakeApiserver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def inject(
        self,
        do: Any,
        *,
        when: Mapping[str, Any] | None = None,
        from_: Mapping[str, Any] | None = None,
        times: int | None = None,
        for_: str | None = None,
        name: str | None = None,
    ) -> Injected:
        """Adds a rule. Without `when` its actions run immediately, on every open watch that `from_` matches.

        Example: `inject({"reply": {"status": 503}}, when={"list": "next"}, times=3)`
        """
        return injected(self.control.add_rule(rule(do, when, from_, times, for_, name)))

    def expire(self, **from_: Any) -> Injected:
        """Ends open watches with a 410 Gone event: all, or those that match, such as `resource="pods"`."""
        return self.inject(EXPIRE, from_=from_ or None)

    def wait(self, *, since: int = 0, timeout: str | None = None, **condition: Any) -> WaitResult:
        """Waits for a record of the trace: `wait(when={"list": 2})`, `wait(sent={"type": "MODIFIED", "name": "web"})`."""
        return self.control.wait_for(wait_for(since, timeout, condition))

    def requests(self, since: int = 0) -> list[Json]:
        """Returns the requests of clients so far, with `verb`, `path`, `query` and `user_agent`."""
        return requests(self.control.trace(since))

    def reset(self) -> None:
        """Removes all rules and faults, and restores the initial objects."""
        self.control.reset()

    def verdict(self) -> Verdict:
        """Returns the verdict on every client so far."""
        return self.control.verdict()

    def expect_no_violations(self, *, client_required: bool = True) -> None:
        """Raises `Violations` if a client violated an invariant, or if none listed or watched."""
        expect_no_violations(self.verdict(), client_required)

    def allow_violations(self) -> None:
        """Keeps the fixture from failing this test for violations."""
        self._violations_allowed = True

    @property
    def violations_allowed(self) -> bool:
        """Whether `allow_violations` was called."""
        return self._violations_allowed

    def log(self) -> str:
        """Returns the log of the server: requests, responses, violations."""
        self._log.seek(0)
        return self._log.read()

    def stop(self) -> None:
        """Stops the server. Safe to call twice."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._log.close()


def rule(
    do: Any,
    when: Mapping[str, Any] | None,
    from_: Mapping[str, Any] | None,
    times: int | None,
    for_: str | None,
    name: str | None,
) -> dict[str, Any]:
    """Returns a rule of the control API, without the keys that are None."""
    keys = {"name": name, "from": from_, "when": when, "times": times, "for": for_, "do": do}
    return {key: value for key, value in keys.items() if value is not None}


def injected(added: operations.Injected) -> Injected:
    """Returns the answer to an added rule."""
    active = added.get("rule")
    return Injected(active["id"] if active else None, added["nextRecord"], added.get("streams", []))


def wait_for(since: int, timeout: str | None, condition: dict[str, Any]) -> dict[str, Any]:
    """Returns a wait of the control API."""
    if "from_" in condition:
        condition["from"] = condition.pop("from_")
    return {"since": since, **({"timeout": timeout} if timeout else {}), **condition}


def requests(trace: Sequence[Json]) -> list[Json]:
    """Returns the requests of clients in a trace."""
    whats = [record["what"] for record in trace]
    return [what["request"] for what in whats if isinstance(what, dict) and "request" in what]


def expect_no_violations(verdict: Verdict, client_required: bool) -> None:
    """Raises `Violations` if a verdict has some, or if no client listed or watched."""
    if verdict["outcome"] == "nothing" and client_required:
        raise Violations("no client listed or watched: nothing was judged", verdict)
    if verdict["outcome"] == "mismatch":
        found = [found for client in verdict["clients"] for found in client["contradictions"]]
        lines = [f"{one['check']} {one['client']} reading {one['reading']}: {one['sentence']}\n    proof: {one['proof']}" for one in found]
        raise Violations("\n".join(["a client violated the rules of LIST and WATCH:", *lines]), verdict)


def find_binary() -> str:
    """Returns the path of the binary: `FAKE_APISERVER_BIN`, that of this wheel, or the first on `PATH`."""
    named = os.environ.get("FAKE_APISERVER_BIN")
    if named:
        return named
    # The scripts of a wheel are not always on PATH, for instance with `.venv/bin/pytest`.
    found = shutil.which(_NAME, path=sysconfig.get_path("scripts")) or shutil.which(_NAME)
    if found is None:
        raise FileNotFoundError(f"{_NAME} is not on PATH; install a wheel with it, or set FAKE_APISERVER_BIN")
    return found
