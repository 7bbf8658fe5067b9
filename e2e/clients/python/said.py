"""What the programs of this folder share: how they speak, and when they end.

One line of JSON for each thing a program was told; the lines are described in e2e/src/client.rs.
"""

import json
import os
import sys
import threading


def say(event, **fields):
    """Writes one line, at once."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def say_object(event, obj):
    """Writes what happened to an object; its value is its label `v`."""
    say(event, name=obj.metadata.name, value=(obj.metadata.labels or {}).get("v", ""))


def say_replaced(known, listed):
    """Tells how a new list differs from what was known, and gives it back."""
    for uid, obj in known.items():
        if uid not in listed:
            say_object("deleted", obj)
    for uid, obj in listed.items():
        if uid not in known:
            say_object("added", obj)
        elif known[uid].metadata.resource_version != obj.metadata.resource_version:
            say_object("updated", obj)
    return listed


def end_with_stdin():
    """Ends the program when whoever started it lets go of its standard input."""

    def wait():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
