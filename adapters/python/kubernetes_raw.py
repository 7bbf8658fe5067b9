"""`kubernetes.watch.Watch` and a list function, one call of each without a loop: exceptions are the caller's to handle.

`Watch.stream` reopens a watch that ends without an error, unless it has a timeout.
"""

from kubernetes import client, config, watch

from adapter import EVENTS, emit, emit_error, emit_event, identity, main
from kubernetes_resources import RESOURCES, list_function, selectors


def follow(start):
    config.load_kube_config()
    function, where = list_function(client, start)
    try:
        if start["contract"] == "list":
            one_list(function, where, start)
        else:
            one_watch(function, where, start)
    except Exception as error:
        emit_error(error)
    emit("end")


def one_watch(function, where, start):
    version = start["options"]["resourceVersion"]
    for event in watch.Watch().stream(function, resource_version=version, **where, **selectors(start)):
        if event["type"] != "BOOKMARK":
            emit_event(EVENTS[event["type"]], **identity(event["object"]))


def one_list(function, where, start):
    pages = {"limit": start["options"]["pageSize"]} if start["options"].get("pageSize") else {}
    emit_event("init")
    while True:
        listed = function(**where, **selectors(start), **pages)
        for obj in listed.items:
            emit_event("init-apply", **identity(obj))
        if not listed.metadata._continue:
            break
        pages["_continue"] = listed.metadata._continue
    emit_event("init-done")


main(
    "kubernetes-python-raw",
    "kubernetes",
    follow,
    caps=["selectors", "field-selectors", "page-size", "init-events", "ordered", "errors", "pause"],
    recovers="library",
    resources=list(RESOURCES),
    contracts=["watch", "list"],
)
