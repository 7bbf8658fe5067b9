"""`kubernetes.informer.SharedInformer`."""

import functools
import threading

from kubernetes import client, config
from kubernetes.informer import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, SharedInformer

from adapter import emit, emit_error, emit_event, identity, main
from kubernetes_resources import RESOURCES, list_function, selectors

informer = None


def follow(start):
    global informer
    config.load_kube_config()
    function, where = list_function(client, start)
    synced = threading.Event()

    # The informer has no signal for its first list, which is delivered when the first watch opens.
    @functools.wraps(function)
    def observed(*args, **kwargs):
        if kwargs.get("watch") and not synced.is_set():
            synced.set()
            emit_event("synced")
        return function(*args, **kwargs)

    informer = SharedInformer(list_func=observed, **where, **selectors(start))
    informer.add_event_handler(ADDED, lambda obj: emit_event("add", **identity(obj)))
    informer.add_event_handler(MODIFIED, lambda obj: emit_event("update", **identity(obj)))
    informer.add_event_handler(DELETED, lambda obj: emit_event("delete", **identity(obj)))
    informer.add_event_handler(BOOKMARK, lambda obj: emit("bookmark", rv=obj["metadata"]["resourceVersion"]))
    informer.add_event_handler(ERROR, emit_error)
    informer.start()


main(
    "kubernetes-python-informer",
    "kubernetes",
    follow,
    caps=["selectors", "field-selectors", "ordered", "errors", "pause", "cache"],
    recovers="library",
    resources=list(RESOURCES),
    dump=lambda: [identity(obj) for obj in informer.cache.list()] if informer else [],
)
