"""`kubernetes_asyncio.watch.Watch` in a loop: list, watch from there, list again on 410."""

import asyncio

from aiohttp import ClientError
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException

from events import end_with_stdin, print_event, print_object, print_relist

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
                known = print_relist(known, {obj.metadata.uid: obj for obj in listed.items})
                if first:
                    first = False
                    print_event("synced")
            watching = watch.Watch()
            try:
                async for event in watching.stream(list_config_maps, resource_version=version):
                    obj = event["object"]
                    if event["type"] == "DELETED":
                        known.pop(obj.metadata.uid, None)
                    else:
                        known[obj.metadata.uid] = obj
                    print_object(EVENTS[event["type"]], obj)
            finally:
                version = watching.resource_version
        except ApiException as error:
            print_event("error", message=f"{error.status} {error.reason}")
            if error.status != 410:
                raise
            version = None
        except ClientError as error:
            print_event("error", message=str(error))


asyncio.run(main())
