"""`api.watch`, started again when it ends or fails.

https://docs.kr8s.org/en/stable/autoapi/kr8s/index.html
"""

import signal
import sys
import time

import httpx
import kr8s


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    api = kr8s.api()
    while True:
        try:
            for event, config_map in api.watch("configmaps", namespace="default"):
                print(event, config_map.name)
        except (kr8s.APITimeoutError, kr8s.ServerError, httpx.HTTPError) as error:
            print(f"The watch failed: {error}")
        time.sleep(1)


if __name__ == "__main__":
    main()
