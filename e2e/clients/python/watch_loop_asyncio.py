"""`kubernetes_asyncio.watch.Watch` in a loop: list, watch from there, list again on 410."""

import asyncio

from aiohttp import ClientError
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException

from said import end_with_stdin, say, say_object, say_replaced

EVENTS = {"ADDED": "added", "MODIFIED": "updated", "DELETED": "deleted"}


async def main():
    end_with_stdin()
    await config.load_kube_config()
    async with client.ApiClient() as api:
        await follow(client.CoreV1Api(api).list_config_map_for_all_namespaces)


async def follow(list_config_maps):
    known = {}
    version = None
    first = True
    while True:
        try:
            if version is None:
                listed = await list_config_maps()
                version = listed.metadata.resource_version
                known = say_replaced(known, {obj.metadata.uid: obj for obj in listed.items})
                if first:
                    first = False
                    say("synced")
            watching = watch.Watch()
            try:
                async for event in watching.stream(list_config_maps, resource_version=version):
                    obj = event["object"]
                    if event["type"] == "DELETED":
                        known.pop(obj.metadata.uid, None)
                    else:
                        known[obj.metadata.uid] = obj
                    say_object(EVENTS[event["type"]], obj)
            finally:
                version = watching.resource_version
        except ApiException as error:
            say("error", message=f"{error.status} {error.reason}")
            if error.status != 410:
                raise
            version = None
        except ClientError as error:
            say("error", message=str(error))


asyncio.run(main())
