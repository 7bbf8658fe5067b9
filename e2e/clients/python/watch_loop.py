"""`kubernetes.watch.Watch` in the loop of its documentation: list, watch from there, list again on 410."""

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from events import end_with_stdin, print_event, print_object, print_relist

EVENTS = {"ADDED": "added", "MODIFIED": "updated", "DELETED": "deleted"}


def main():
    end_with_stdin()
    config.load_kube_config()
    list_config_maps = client.CoreV1Api().list_config_map_for_all_namespaces
    known = {}
    version = None
    first = True
    while True:
        try:
            if version is None:
                listed = list_config_maps()
                version = listed.metadata.resource_version
                known = print_relist(known, {obj.metadata.uid: obj for obj in listed.items})
                if first:
                    first = False
                    print_event("synced")
            watching = watch.Watch()
            try:
                for event in watching.stream(list_config_maps, resource_version=version):
                    obj = event["object"]
                    if event["type"] == "DELETED":
                        known.pop(obj.metadata.uid, None)
                    else:
                        known[obj.metadata.uid] = obj
                    print_object(EVENTS[event["type"]], obj)
            finally:
                version = watching.resource_version
        except ApiException as error:
            print_event("error", message=f"{error.status} {error.reason}")
            if error.status != 410:
                raise
            version = None
        except HTTPError as error:
            print_event("error", message=str(error))


main()
