"""`kubernetes_asyncio.watch.Watch`: list, watch from the list's version, list again when the watch raises."""

import asyncio

from kubernetes_asyncio import client, config, watch

from adapter import EVENTS, emit_event_async, identity, main, retrying_async
from kubernetes_resources import RESOURCES, list_function, selectors


async def follow(start):
    await config.load_kube_config()
    async with client.ApiClient() as api:
        function, where = list_function(client, start, api)

        async def list_and_watch():
            listed = await function(**where, **selectors(start))
            await emit_event_async("init")
            for obj in listed.items:
                await emit_event_async("init-apply", **identity(obj))
            await emit_event_async("init-done")
            version = listed.metadata.resource_version
            async with watch.Watch().stream(function, resource_version=version, **where, **selectors(start)) as events:
                async for event in events:
                    if event["type"] != "BOOKMARK":
                        await emit_event_async(EVENTS[event["type"]], **identity(event["object"]))

        await retrying_async(list_and_watch)


main(
    "kubernetes-asyncio-watch",
    "kubernetes_asyncio",
    lambda start: asyncio.run(follow(start)),
    caps=["selectors", "field-selectors", "gzip", "init-events", "ordered", "errors", "pause"],
    recovers="caller",
    resources=list(RESOURCES),
)
