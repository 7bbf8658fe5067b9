"""`kubernetes.informer.SharedInformer` over the ConfigMaps of all namespaces."""

import functools
import threading

from kubernetes import client, config
from kubernetes.informer import ADDED, DELETED, ERROR, MODIFIED, SharedInformer

from events import end_with_stdin, print_event, print_object


def main():
    end_with_stdin()
    config.load_kube_config()
    list_config_maps = client.CoreV1Api().list_config_map_for_all_namespaces
    synced = False

    # The informer has no signal for its first list, which is delivered when the first watch opens.
    @functools.wraps(list_config_maps)
    def listed(*args, **kwargs):
        nonlocal synced
        if kwargs.get("watch") and not synced:
            synced = True
            print_event("synced")
        return list_config_maps(*args, **kwargs)

    informer = SharedInformer(list_func=listed)
    informer.add_event_handler(ADDED, lambda obj: print_object("added", obj))
    informer.add_event_handler(MODIFIED, lambda obj: print_object("updated", obj))
    informer.add_event_handler(DELETED, lambda obj: print_object("deleted", obj))
    informer.add_event_handler(ERROR, lambda error: print_event("error", message=str(error)))
    informer.start()
    threading.Event().wait()


main()
