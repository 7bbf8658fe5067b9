"""`kr8s.asyncio`: `get`, then `watch` since the newest object, and both again when the watch ends or raises.

`get` does not hand over the version of the list.
"""

import asyncio

import kr8s
import kr8s.asyncio
from kr8s.asyncio.objects import new_class

from adapter import EVENTS, emit_event_async, main, retrying_async


async def follow(start):
    resource, options = start["resource"], start["options"]
    version = "/".join(part for part in (resource["group"], resource["version"]) if part)
    kind = new_class(resource["kind"], version, plural=resource["plural"], namespaced="namespace" in start)
    selected = {
        "namespace": start.get("namespace", kr8s.ALL),
        "label_selector": options.get("labelSelector"),
        "field_selector": options.get("fieldSelector"),
    }
    api = await kr8s.asyncio.api()

    async def list_and_watch():
        await emit_event_async("init")
        newest = None
        async for obj in api.get(kind, **selected):
            await emit_event_async("init-apply", obj=obj.to_dict())
            newest = max(newest or 0, int(obj.metadata.resourceVersion))
        await emit_event_async("init-done")
        async for word, obj in api.watch(kind, since=newest and str(newest), **selected):
            if word != "BOOKMARK":
                await emit_event_async(EVENTS[word], obj=obj.to_dict())

    await retrying_async(list_and_watch)


main(
    "kr8s",
    "kr8s",
    lambda start: asyncio.run(follow(start)),
    caps=["selectors", "field-selectors", "gzip", "init-events", "ordered", "errors", "pause"],
    recovers="caller",
)
