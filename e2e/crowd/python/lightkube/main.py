"""The List-Watch pattern: a list, and a watch from its resourceVersion; both again after an error.

https://lightkube.readthedocs.io/en/latest/list-watch/
"""

import signal
import sys
import time

import httpx2
from lightkube import Client
from lightkube.resources.core_v1 import ConfigMap


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    client = Client(namespace="default")
    while True:
        try:
            seen = {}
            for config_map in (listed := client.list(ConfigMap)):
                seen[config_map.metadata.name] = config_map
            print(f"Listed {len(seen)} ConfigMaps")
            for event, config_map in client.watch(ConfigMap, resource_version=listed.resourceVersion):
                print(event, config_map.metadata.name)
                match event:
                    case "ADDED" | "MODIFIED":
                        seen[config_map.metadata.name] = config_map
                    case "DELETED":
                        seen.pop(config_map.metadata.name, None)
        except httpx2.HTTPError as error:  # ApiError is one, too
            print(f"The watch failed: {error}")
            time.sleep(5)


if __name__ == "__main__":
    main()
