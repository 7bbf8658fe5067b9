"""A handler of creations and one of raw events, for `kopf run`.

https://github.com/nolar/kopf/blob/main/examples/01-minimal/example.py and
https://github.com/nolar/kopf/blob/main/examples/08-events/example.py
"""

from typing import Any

import kopf


@kopf.on.create("configmaps")
def create_fn(name: str, **_: Any) -> None:
    print(f"And here we are! Creating: {name}")


@kopf.on.event("configmaps")
def event_fn(event: kopf.RawEvent, **_: Any) -> None:
    print(f"Event received: {event['type']} {event['object']['metadata']['name']}")
