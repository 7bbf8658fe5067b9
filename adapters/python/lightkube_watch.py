"""`lightkube.Client`: list, then watch from the list's version, and both again when the watch raises.

`raise` is the default handling of errors; with `retry` the library retries the watch itself.
"""

import sys

from lightkube import ALL_NS, Client
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import on_error_raise, on_error_retry

from adapter import EVENTS, emit_error, emit_event, main, retrying

RETRY = sys.argv[1:] == ["retry"]


def on_error(error, count):
    if RETRY:
        emit_error(error)
        return on_error_retry(error, count)
    return on_error_raise(error, count)


def follow(start):
    resource, options = start["resource"], start["options"]
    kind = create_namespaced_resource(resource["group"], resource["version"], resource["kind"], resource["plural"])
    client = Client()
    where = {"namespace": start.get("namespace", ALL_NS)}

    def list_and_watch():
        emit_event("init")
        listed = client.list(kind, **where, chunk_size=options.get("pageSize"))
        for obj in listed:
            emit_event("init-apply", obj=obj.to_dict())
        emit_event("init-done")
        events = client.watch(
            kind,
            **where,
            resource_version=listed.resourceVersion,
            server_timeout=options.get("timeoutSeconds"),
            on_error=on_error,
        )
        for word, obj in events:
            if word != "BOOKMARK":
                emit_event(EVENTS[word], obj=obj.to_dict())

    retrying(list_and_watch)


main(
    "lightkube-retry" if RETRY else "lightkube",
    "lightkube",
    follow,
    caps=["page-size", "timeout", "gzip", "init-events", "ordered", "errors", "pause"],
    recovers="caller",
)
