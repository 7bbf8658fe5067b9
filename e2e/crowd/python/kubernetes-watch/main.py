"""A list, and a watch from its resourceVersion; after 410 Gone both again.

The README's watch with the recovery that the docstring of `Watch.stream` and watch_recovery.py describe:
https://github.com/kubernetes-client/python/blob/master/examples/watch/watch_recovery.py
"""

import signal
import sys

import urllib3
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

NAMESPACE = "default"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    config.load_kube_config()
    v1 = client.CoreV1Api()

    resource_version = None
    while True:
        try:
            if resource_version is None:
                listed = v1.list_namespaced_config_map(NAMESPACE)
                for item in listed.items:
                    print("Listed: %s" % item.metadata.name)
                resource_version = listed.metadata.resource_version

            w = watch.Watch()
            for event in w.stream(v1.list_namespaced_config_map, NAMESPACE, resource_version=resource_version):
                resource_version = event["object"].metadata.resource_version
                print("Event: %s %s" % (event["type"], event["object"].metadata.name))

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
