"""A list and a watch with `on_error_retry`; their events are printed as lines of the adapter protocol of fake-apiserver."""

import json
import os
import sys
import threading

from lightkube import Client
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import on_error_retry

WORDS = {"ADDED": "add", "MODIFIED": "update", "DELETED": "delete"}


def emit(ev, config_map=None, **keys):
    if config_map is not None:
        meta = config_map.metadata
        keys = {"ns": meta.namespace, "name": meta.name, "uid": meta.uid, "rv": meta.resourceVersion}
    print(json.dumps({"ev": ev, **keys}), flush=True)


def follow(namespace, chunk_size):
    client = Client(namespace=namespace)
    for config_map in (listed := client.list(ConfigMap, chunk_size=chunk_size)):
        emit("add", config_map)
    emit("synced")
    for event, config_map in client.watch(
        ConfigMap, resource_version=listed.resourceVersion, on_error=on_error_retry
    ):
        emit(WORDS[event], config_map)


def main():
    client = {"name": "lightkube", "lang": "python", "version": "1.0.1"}
    emit("hello", protocol=1, client=client, contracts=["informer"], recovers="library", caps=["page-size"])
    for line in sys.stdin:
        command = json.loads(line)
        if command["cmd"] == "start":
            arguments = [command["namespace"], command["options"].get("pageSize")]
            threading.Thread(target=follow, args=arguments, daemon=True).start()
        elif command["cmd"] == "stop":
            break
    os._exit(0)  # ends the thread inside the library


if __name__ == "__main__":
    main()
