"""`pykube`: one watch or one list of a query. Its documentation has no loop of list and watch, so there is no informer."""

import pykube
from pykube.objects import APIObject, NamespacedAPIObject

from adapter import EVENTS, emit, emit_error, emit_event, main


def query(start):
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    resource, options = start["resource"], start["options"]
    version = "/".join(part for part in (resource["group"], resource["version"]) if part)
    keys = {"version": version, "endpoint": resource["plural"], "kind": resource["kind"]}
    kind = type(resource["kind"], (NamespacedAPIObject if "namespace" in start else APIObject,), keys)
    names = {"labelSelector": "selector", "fieldSelector": "field_selector"}
    selection = {python: options[key] for key, python in names.items() if key in options}
    if "namespace" in start:
        selection["namespace"] = start["namespace"]
    return kind.objects(api).filter(**selection)


def follow(start):
    try:
        if start["contract"] == "list":
            one_list(query(start))
        else:
            one_watch(query(start), start["options"]["resourceVersion"])
    except pykube.exceptions.HTTPError as error:
        emit("error", message=str(error), code=error.code)
    except Exception as error:
        emit_error(error)
    emit("end")


def one_list(found):
    objects = list(found)
    emit_event("init")
    for each in objects:
        emit_event("init-apply", obj=each.obj)
    emit_event("init-done")


def one_watch(found, version):
    for event in found.watch(since=version):
        if event.type == "ERROR":
            status = event.object.obj
            emit("error", message=status.get("message", ""), code=status.get("code"), reason=status.get("reason"))
        elif event.type != "BOOKMARK":
            emit_event(EVENTS[event.type], obj=event.object.obj)


main(
    "pykube-ng",
    "pykube-ng",
    follow,
    caps=["selectors", "field-selectors", "init-events", "ordered", "errors", "pause"],
    recovers="none",
    contracts=["watch", "list"],
)
