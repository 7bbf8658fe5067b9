"""An in-memory Kubernetes apiserver for tests: start it, break LIST and WATCH on cue, read the verdict.

It must not depend on pytest (that is `fake_apiserver.pytest_plugin`) nor on a Kubernetes client.
"""

from fake_apiserver.control import Control, Refused
from fake_apiserver.server import FakeApiserver, Injected, Violations

__all__ = ["Control", "FakeApiserver", "Injected", "Refused", "Violations"]
