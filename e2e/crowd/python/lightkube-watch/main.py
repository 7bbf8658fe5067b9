"""`client.watch` alone, which starts without a resourceVersion and retries errors itself.

https://github.com/gtsystem/lightkube#monitoring--interaction
"""

import signal
import sys

from lightkube import Client
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import OnErrorAction, OnErrorResult


def on_error(error, count):
    print(f"The watch failed: {error}")
    return OnErrorResult(OnErrorAction.RETRY, sleep=count)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    client = Client()
    for op, config_map in client.watch(ConfigMap, namespace="default", on_error=on_error):
        print(f"{op} {config_map.metadata.name}")


if __name__ == "__main__":
    main()
