"""Requests to the control API, whose operations are in `operations`. It must not know processes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from fake_apiserver.operations import Json, Operations

# The server is local: ignore HTTP_PROXY.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ControlError(Exception):
    """The control API rejected a request. `body` has the mistakes with their positions."""

    def __init__(self, status: int, body: Json) -> None:
        hint = f" ({body['hint']})" if body.get("hint") else ""
        super().__init__(f"{status}: {body.get('error', 'no error message')}{hint}")
        self.status = status
        self.body = body


class Control(Operations):
    """The control API of a running server. A wait that times out raises `ControlError` with status 504."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def _send(self, method: str, path: str, body: Mapping[str, Any] | str | None = None) -> Any:
        with self._request(method, path, body) as response:
            return json.load(response)

    def _lines(self, path: str) -> list[Json]:
        with self._request("GET", path) as response:
            return [json.loads(line) for line in response]

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
                raise ControlError(error.code, json.load(error)) from None
