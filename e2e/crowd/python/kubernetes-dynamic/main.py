"""The watch of the dynamic client with bookmarks, resumed after a lost connection and restarted after 410 Gone.

https://github.com/kubernetes-client/python/blob/master/examples/watch/watch_recovery.py
"""

import signal
import sys

import urllib3
from kubernetes import config
from kubernetes.client import api_client
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.client import DynamicClient

NAMESPACE = "default"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    config.load_kube_config()
    client = DynamicClient(api_client.ApiClient())
    api = client.resources.get(api_version="v1", kind="ConfigMap")

    # Without a resourceVersion the server sends ADDED events for all objects that exist when the watch starts.
    resource_version = None
    while True:
        try:
            for event in api.watch(
                namespace=NAMESPACE,
                resource_version=resource_version,
                allow_watch_bookmarks=True,
            ):
                # Remember the last resourceVersion, so that the watch can be resumed from it.
                resource_version = event["object"].metadata.resourceVersion

                print("Event: %s %s %s" % (
                    resource_version,
                    event["type"],
                    event["object"].metadata.name,
                ))

        except ApiException as err:
            if err.status == 410:
                print("ERROR: The requested resource version is no longer available.")
                resource_version = None
            else:
                raise

        except urllib3.exceptions.ProtocolError:
            print("Lost connection to the k8s API server. Reconnecting...")


if __name__ == "__main__":
    main()
