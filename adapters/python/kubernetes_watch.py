"""`kubernetes.watch.Watch`: list, watch from the list's version, list again when the watch raises, as documented."""

from kubernetes import client, config, watch

from adapter import EVENTS, emit_event, identity, main, retrying
from kubernetes_resources import RESOURCES, list_function, selectors


def follow(start):
    config.load_kube_config()
    function, where = list_function(client, start)

    def list_and_watch():
        listed = function(**where, **selectors(start))
        emit_event("init")
        for obj in listed.items:
            emit_event("init-apply", **identity(obj))
        emit_event("init-done")
        version = listed.metadata.resource_version
        for event in watch.Watch().stream(function, resource_version=version, **where, **selectors(start)):
            if event["type"] != "BOOKMARK":
                emit_event(EVENTS[event["type"]], **identity(event["object"]))

    retrying(list_and_watch)


main(
    "kubernetes-python-watch",
    "kubernetes",
    follow,
    caps=["selectors", "field-selectors", "init-events", "ordered", "errors", "pause"],
    recovers="caller",
    resources=list(RESOURCES),
)
