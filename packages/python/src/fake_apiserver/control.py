"""Requests to the control API, whose operations are in `operations`: blocking, and in an event loop. It must not know processes."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fake_apiserver.operations import AsyncOperations, Json, Operations

# The server is local: ignore HTTP_PROXY.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

_WAIT_SECONDS = 30.0
"""Time limit of a wait that names none."""
_ANSWER_SECONDS = 30.0
"""Time limit of the server's answer, after that of a wait: only a server that hangs exceeds it."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


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
        text = _text(body)
        request = urllib.request.Request(
            self.url + path, data=None if text is None else text.encode(), headers=_headers(self.token), method=method
        )
        try:
            return _OPENER.open(request, timeout=_seconds(text))
        except urllib.error.HTTPError as error:
            with error:
                raise ControlError(error.code, json.load(error)) from None


class AsyncControl(AsyncOperations):
    """The control API in an event loop: a wait lets the loop run, and can be cancelled."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | str | None = None) -> Any:
        return json.loads(await self._request(method, path, body))

    async def _lines(self, path: str) -> list[Json]:
        return [json.loads(line) for line in (await self._request("GET", path)).splitlines()]

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | str | None = None) -> bytes:
        text = _text(body)
        status, answer = await asyncio.wait_for(self._exchange(method, path, (text or "").encode()), _seconds(text))
        if status >= 300:
            raise ControlError(status, json.loads(answer))
        return answer

    async def _exchange(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        target = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(target.hostname, target.port)
        try:
            headers = {**_headers(self.token), "Host": target.netloc, "Content-Length": str(len(body)), "Connection": "close"}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
            received = await reader.read()
        finally:
            writer.close()
        response = http.client.HTTPResponse(_Received(received), method=method)  # type: ignore[arg-type]
        response.begin()
        return response.status, response.read()


class _Received:
    """A response that was read to its end, in place of a socket."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._received)


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/yaml"}


def _text(body: Mapping[str, Any] | str | None) -> str | None:
    return body if body is None or isinstance(body, str) else json.dumps(body)


def _seconds(body: str | None) -> float:
    """Time limit for the answer to a request: above that of the wait in it, so that the server's 504 arrives first."""
    named = re.search(r"\"?timeout\"?\s*:\s*\"?((?:[\d.]+(?:ms|s|m|h))+)", body or "")
    if named is None:
        return _WAIT_SECONDS + _ANSWER_SECONDS
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", named.group(1))
    return sum(float(number) * _UNITS[unit] for number, unit in parts) + _ANSWER_SECONDS
