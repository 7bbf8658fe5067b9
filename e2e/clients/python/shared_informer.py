"""`kubernetes.informer.SharedInformer` over the ConfigMaps of all namespaces."""

import functools
import threading

from kubernetes import client, config
from kubernetes.informer import ADDED, DELETED, ERROR, MODIFIED, SharedInformer

from said import end_with_stdin, say, say_object


def main():
    end_with_stdin()
    config.load_kube_config()
    list_config_maps = client.CoreV1Api().list_config_map_for_all_namespaces
    synced = False

    # The informer does not tell when it is in step: it is when it has told of the list and goes on to watch.
    @functools.wraps(list_config_maps)
    def listed(*args, **kwargs):
        nonlocal synced
        if kwargs.get("watch") and not synced:
            synced = True
            say("synced")
        return list_config_maps(*args, **kwargs)

    informer = SharedInformer(list_func=listed)
    informer.add_event_handler(ADDED, lambda obj: say_object("added", obj))
    informer.add_event_handler(MODIFIED, lambda obj: say_object("updated", obj))
    informer.add_event_handler(DELETED, lambda obj: say_object("deleted", obj))
    informer.add_event_handler(ERROR, lambda error: say("error", message=str(error)))
    informer.start()
    threading.Event().wait()


main()
