"""An operator that lists in chunks of two: `kopf run -n default chunks.py`."""

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.watching.chunk_size = 2


@kopf.on.event("configmaps")
def event_fn(event, **_):
    print(event["type"], event["object"]["metadata"]["name"])
