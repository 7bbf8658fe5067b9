"""A client of the control API: one method per path of schema/control.v1.openapi.json. It must not know processes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

# A server on this machine is never behind a proxy, whatever HTTP_PROXY says.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """The control API rejected a request. `body` has the mistakes with their places."""

    def __init__(self, status: int, body: Json) -> None:
        hint = f" ({body['hint']})" if body.get("hint") else ""
        super().__init__(f"{status}: {body.get('error', 'no error message')}{hint}")
        self.status = status
        self.body = body


@dataclass(frozen=True)
class Injected:
    """An added rule, or one without `when` that was carried out at once."""

    rule: int | None
    """Number of the rule; None if it was carried out at once."""
    next_record: int
    """Number of the next record of the trace: `since` of a wait that must miss nothing."""
    streams: list[int] = field(default_factory=list)
    """Open responses that it was carried out on."""


class Control:
    """The control API of a running server."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def state(self) -> Json:
        """Version, URLs, kubeconfig, resourceVersion and `nextRecord`."""
        return self._json("GET", "/v1")

    def streams(self) -> list[Json]:
        """Open responses."""
        return list(self._json("GET", "/v1/streams")["streams"])

    def rules(self) -> list[Json]:
        """Active rules."""
        return list(self._json("GET", "/v1/rules")["rules"])

    def add_rule(self, rule: Mapping[str, Any] | str) -> Injected:
        """Adds a rule: a mapping, or a text in YAML or JSON."""
        added = self._json("POST", "/v1/rules", rule)
        standing = added.get("rule")
        return Injected(standing and standing["id"], added["nextRecord"], added.get("streams", []))

    def remove_rules(self) -> list[Json]:
        """Removes all rules."""
        return list(self._json("DELETE", "/v1/rules")["removed"])

    def remove_rule(self, rule: int) -> Json:
        """Removes a rule."""
        removed: Json = self._json("DELETE", f"/v1/rules/{rule}")["removed"][0]
        return removed

    def wait_for(self, wait: Mapping[str, Any] | str) -> Json:
        """Waits for a record of the trace; times out with `Refused` and status 504."""
        return self._json("POST", "/v1/wait", wait)

    def trace(self, since: int = 0) -> list[Json]:
        """The records of the trace from number `since` on."""
        with self._request("GET", f"/v1/trace?since={since}") as response:
            return [json.loads(line) for line in response]

    def verdict(self) -> Json:
        """The verdict on every client so far."""
        return self._json("GET", "/v1/verdict")

    def reset(self) -> Json:
        """Removes all rules and faults, and restores the initial objects."""
        return self._json("POST", "/v1/reset", "")

    def _json(self, method: str, path: str, body: Mapping[str, Any] | str | None = None) -> Json:
        with self._request(method, path, body) as response:
            answer: Json = json.load(response)
            return answer

    def _request(self, method: str, path: str, body: Mapping[str, Any] | str | None = None) -> Any:
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        request = urllib.request.Request(
            self.url + path,
            data=None if text is None else text.encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/yaml"},
            method=method,
        )
        try:
            return _OPENER.open(request)
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, json.load(error)) from None
