"""A list, and a watch from its resourceVersion that retries errors by `on_error_retry`."""

import signal
import sys

from lightkube import Client
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import on_error_retry


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    client = Client(namespace="default")
    for config_map in (listed := client.list(ConfigMap)):
        print("Listed", config_map.metadata.name)
    for event, config_map in client.watch(
        ConfigMap, resource_version=listed.resourceVersion, on_error=on_error_retry
    ):
        print(event, config_map.metadata.name)


if __name__ == "__main__":
    main()
