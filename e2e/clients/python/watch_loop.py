"""`kubernetes.watch.Watch` in the loop that its documentation tells to write: list, watch from there, list again on 410."""

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from said import end_with_stdin, say, say_object, say_replaced

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
                known = say_replaced(known, {obj.metadata.uid: obj for obj in listed.items})
                if first:
                    first = False
                    say("synced")
            watching = watch.Watch()
            try:
                for event in watching.stream(list_config_maps, resource_version=version):
                    obj = event["object"]
                    if event["type"] == "DELETED":
                        known.pop(obj.metadata.uid, None)
                    else:
                        known[obj.metadata.uid] = obj
                    say_object(EVENTS[event["type"]], obj)
            finally:
                version = watching.resource_version
        except ApiException as error:
            say("error", message=f"{error.status} {error.reason}")
            if error.status != 410:
                raise
            version = None
        except HTTPError as error:
            say("error", message=str(error))


main()
