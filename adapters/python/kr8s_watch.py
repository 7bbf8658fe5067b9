"""`kr8s.asyncio`: one watch.

`get` does not return the version of a list, and the documentation has no loop of list and watch, so there is no informer.
"""

import asyncio

import kr8s
import kr8s.asyncio
from kr8s.asyncio.objects import new_class

from adapter import EVENTS, emit, emit_event_async, main


async def follow(start):
    resource, options = start["resource"], start["options"]
    version = "/".join(part for part in (resource["group"], resource["version"]) if part)
    kind = new_class(resource["kind"], version, plural=resource["plural"], namespaced="namespace" in start)
    api = await kr8s.asyncio.api()
    events = api.watch(
        kind,
        namespace=start.get("namespace", kr8s.ALL),
        label_selector=options.get("labelSelector"),
        field_selector=options.get("fieldSelector"),
        since=options.get("resourceVersion"),
    )
    async for word, obj in events:
        if word != "BOOKMARK":
            await emit_event_async(EVENTS[word], obj=obj.to_dict())
    emit("end")


main(
    "kr8s",
    "kr8s",
    lambda start: asyncio.run(follow(start)),
    caps=["selectors", "field-selectors", "gzip", "ordered", "errors", "pause"],
    recovers="none",
    contracts=["watch"],
)
