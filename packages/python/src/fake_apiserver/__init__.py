"""An in-memory Kubernetes apiserver for tests: start it, inject faults into LIST and WATCH, read the verdict.

It must not depend on pytest (see `fake_apiserver.pytest_plugin`) or on a Kubernetes client.
"""

from fake_apiserver.aio import AsyncFakeApiserver
from fake_apiserver.control import AsyncControl, Control, ControlError
from fake_apiserver.scenarios import ScenariosFailed, run_scenarios
from fake_apiserver.server import FakeApiserver, Injected, Violations

__all__ = [
    "AsyncControl",
    "AsyncFakeApiserver",
    "Control",
    "ControlError",
    "FakeApiserver",
    "Injected",
    "ScenariosFailed",
    "Violations",
    "run_scenarios",
]
