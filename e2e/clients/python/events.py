"""Shared by the programs of this folder: the lines they print (see e2e/src/client.rs), and their exit."""

import json
import os
import sys
import threading


def print_event(event, **fields):
    """Prints one line of JSON, unbuffered."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def print_object(event, obj):
    """Prints an event about an object; its value is its label `v`."""
    print_event(event, name=obj.metadata.name, value=(obj.metadata.labels or {}).get("v", ""))


def print_relist(known, listed):
    """Prints the differences between the known objects and a new list, and returns the list."""
    for uid, obj in known.items():
        if uid not in listed:
            print_object("deleted", obj)
    for uid, obj in listed.items():
        if uid not in known:
            print_object("added", obj)
        elif known[uid].metadata.resource_version != obj.metadata.resource_version:
            print_object("updated", obj)
    return listed


def end_with_stdin():
    """Exits when the parent process closes standard input."""

    def wait():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
