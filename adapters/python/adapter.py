"""Shared by the adapters of this folder: the messages of docs/adapter-protocol.md, commands, and a caller's retry loop.

It must not know any client.
"""

import asyncio
import importlib.metadata
import json
import os
import random
import sys
import threading
import time
import traceback

_lock = threading.Lock()
# Object events that the consumer receives before it pauses; None: no pause.
_credit = None
_consumer = threading.Condition()

EVENTS = {"ADDED": "add", "MODIFIED": "update", "DELETED": "delete"}
CHANGES = set(EVENTS.values())
# Changes delivered so far.
_changes = 0


def emit(ev, **keys):
    """Prints one message. Keys without a value are left out."""
    line = json.dumps({"ev": ev, **{key: value for key, value in keys.items() if value is not None}})
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def identity(obj):
    """Key, UID and version of a model of the generated clients, whose content differs from what the server sent."""
    about = obj.metadata
    if about.uid and about.resource_version:
        return {"ns": about.namespace, "name": about.name, "uid": about.uid, "rv": about.resource_version}
    keys = {"namespace": about.namespace, "name": about.name, "uid": about.uid, "resourceVersion": about.resource_version}
    return {"obj": {"metadata": {key: value for key, value in keys.items() if value is not None}}}


def _grant(credit):
    global _credit
    with _consumer:
        _credit = credit
        _consumer.notify_all()


def emit_event(ev, **keys):
    """Prints an event after any pause of the consumer; one with keys is about an object."""
    global _changes, _credit
    with _consumer:
        _consumer.wait_for(lambda: _credit != 0)
        if keys and _credit:
            _credit -= 1
        _changes += ev in CHANGES
        emit(ev, **keys)


async def emit_event_async(ev, **keys):
    """As `emit_event`, for coroutines: the event loop continues meanwhile."""
    if _credit is None:
        emit_event(ev, **keys)
    else:
        await asyncio.to_thread(emit_event, ev, **keys)


def emit_error(error):
    """Prints an error of the library."""
    traceback.print_exception(error)
    code = getattr(error, "status", None)
    reason = getattr(error, "reason", None)
    emit(
        "error",
        message=f"{type(error).__name__}: {error}"[:2000],
        code=code if isinstance(code, int) else None,
        reason=reason if isinstance(reason, str) else None,
    )


class _Delays:
    """The delays of a caller's loop, in seconds, so that the loop itself is no storm: those of client-go's Reflector, from the
    start again after an attempt that delivered a change, and `Retry-After` where the error has it."""

    def __init__(self):
        self.delay, self.changes = 0.8, 0

    def after(self, error):
        if _changes > self.changes:
            self.delay = 0.8
        self.changes = _changes
        delay = max(self.delay * (1 + random.random()), _retry_after(error))
        self.delay = min(self.delay * 2, 30)
        return delay


def _retry_after(error):
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers.get("Retry-After", 0))
    except ValueError:
        return 0


def retrying(attempt):
    """Calls `attempt` repeatedly: the loop that the documentation leaves to the caller."""
    delays = _Delays()
    while True:
        failure = None
        try:
            attempt()
        except Exception as error:
            failure = error
            emit_error(error)
        time.sleep(delays.after(failure))


async def retrying_async(attempt):
    """As `retrying`, for coroutines."""
    delays = _Delays()
    while True:
        failure = None
        try:
            await attempt()
        except Exception as error:
            failure = error
            emit_error(error)
        await asyncio.sleep(delays.after(failure))


def main(name, package, follow, caps, recovers, resources=None, dump=None, contracts=("informer",)):
    """Prints `hello`, calls `follow(start)` in a separate thread and carries out commands. `dump()` lists identities."""
    url = importlib.metadata.metadata(package).get("Home-page")
    emit(
        "hello",
        protocol=1,
        client={"name": name, "lang": "python", "version": importlib.metadata.version(package), "url": url},
        contracts=list(contracts),
        caps=caps,
        resources=resources,
        recovers=recovers,
    )
    for line in sys.stdin:
        command = json.loads(line)
        match command["cmd"]:
            case "start" if command["contract"] not in contracts:
                emit("unsupported", what="contract", why=f"only {', '.join(contracts)}")
            case "start":
                _grant(0 if command.get("paused") else None)
                threading.Thread(target=_until_it_gives_up, args=(follow, command), daemon=True).start()
            case "dump" if dump is not None:
                emit("dump", id=command["id"], items=dump())
            case "pause":
                _grant(0)
            case "resume":
                _grant(command.get("events"))
            case "stop":
                break
            case other:
                emit("unsupported", what="cmd", why=f"no {other}")
    # Threads of the library may be waiting for the server.
    os._exit(0)


def _until_it_gives_up(follow, start):
    try:
        follow(start)
    except BaseException as error:
        emit_error(error)
        emit("end")
