"""`SharedInformer` with a handler for each type of event, and a main thread that reads its cache.

https://github.com/kubernetes-client/python/blob/master/examples/informer_example.py
"""

import signal
import sys
import time

from kubernetes import config
from kubernetes.client import CoreV1Api
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer


def on_added(config_map):
    print("[ADDED]   ", config_map.metadata.name)


def on_modified(config_map):
    print("[MODIFIED]", config_map.metadata.name)


def on_deleted(config_map):
    print("[DELETED] ", config_map.metadata.name)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    config.load_kube_config()

    v1 = CoreV1Api()
    informer = SharedInformer(
        list_func=v1.list_namespaced_config_map,
        namespace="default",
        resync_period=60,
    )

    informer.add_event_handler(ADDED, on_added)
    informer.add_event_handler(MODIFIED, on_modified)
    informer.add_event_handler(DELETED, on_deleted)

    informer.start()
    print('Informer started. Watching ConfigMaps in "default" namespace ...')

    try:
        while True:
            print("Cached ConfigMaps: {}".format(len(informer.cache.list())))
            time.sleep(10)
    finally:
        informer.stop()
        print("Informer stopped.")


if __name__ == "__main__":
    main()
