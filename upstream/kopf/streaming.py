"""An operator that streams its first list: `kopf run -n default streaming.py`."""

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.watching.initial_streaming = True


@kopf.on.event("configmaps")
def event_fn(event, **_):
    print(event["type"], event["object"]["metadata"]["name"])
