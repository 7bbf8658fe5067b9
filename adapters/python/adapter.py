"""What the adapters of this folder share: the lines of docs/adapter-protocol.md, commands, and a caller's retry loop.

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
# The consumer is slow where it is told so: it receives this number of events about objects before it pauses; None: no pause.
_credit = None
_consumer = threading.Condition()


def emit(ev, **keys):
    """Prints one message. Keys without a value are left out."""
    line = json.dumps({"ev": ev, **{key: value for key, value in keys.items() if value is not None}})
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def identity(obj):
    """Key, UID and version of a model of the generated clients, whose contents are not what the server sent."""
    about = obj.metadata
    return {"ns": about.namespace, "name": about.name, "uid": about.uid, "rv": about.resource_version}


def _grant(credit):
    global _credit
    with _consumer:
        _credit = credit
        _consumer.notify_all()


def emit_event(ev, **keys):
    """Prints an event once the consumer is not paused; one with keys is about an object."""
    global _credit
    with _consumer:
        _consumer.wait_for(lambda: _credit != 0)
        if keys and _credit:
            _credit -= 1
        emit(ev, **keys)


async def emit_event_async(ev, **keys):
    """As `emit_event`, for coroutines: what else runs in the event loop goes on."""
    if _credit is None:
        emit(ev, **keys)
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


def backoff():
    """The delays of a caller's loop, in seconds: those of client-go's Reflector, so that the loop itself is no storm."""
    delay, last = 0.8, time.monotonic()
    while True:
        if time.monotonic() - last > 120:
            delay = 0.8
        last = time.monotonic()
        yield delay * (1 + random.random())
        delay = min(delay * 2, 30)


def retrying(attempt):
    """Calls `attempt` again and again: what the documentation leaves to the caller."""
    for delay in backoff():
        try:
            attempt()
        except Exception as error:
            emit_error(error)
        time.sleep(delay)


async def retrying_async(attempt):
    """As `retrying`, for coroutines."""
    for delay in backoff():
        try:
            await attempt()
        except Exception as error:
            emit_error(error)
        await asyncio.sleep(delay)


def main(name, package, follow, caps, recovers, resources=None, dump=None):
    """Says hello, calls `follow(start)` in a thread of its own and obeys commands. `dump()` lists identities."""
    url = importlib.metadata.metadata(package).get("Home-page")
    emit(
        "hello",
        protocol=1,
        client={"name": name, "lang": "python", "version": importlib.metadata.version(package), "url": url},
        contracts=["informer"],
        caps=caps,
        resources=resources,
        recovers=recovers,
    )
    for line in sys.stdin:
        command = json.loads(line)
        match command["cmd"]:
            case "start" if command["contract"] != "informer":
                emit("unsupported", what="contract", why="only informer")
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
