"""An operator: each ConfigMap gets a Secret of the same name, an annotation, Events and a finalizer.

It follows kopf's walkthrough, from the creation of a child to its deletion, and its pages on events and timers:
https://docs.kopf.dev/en/stable/walkthrough/creation/
"""

import base64
import hashlib
import json
from typing import Any

import kopf
import kubernetes


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    kubernetes.config.load_kube_config()
    settings.persistence.finalizer = "config-operator.example.com/finalizer"


def digest(body: kopf.Body) -> str:
    return hashlib.sha256(json.dumps(body.get("data") or {}, sort_keys=True).encode()).hexdigest()


@kopf.on.resume("configmaps")
@kopf.on.create("configmaps")
def create_fn(body: kopf.Body, name: str, namespace: str | None, patch: kopf.Patch, **_: Any) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "data": {"digest": base64.b64encode(digest(body).encode()).decode()},
    }
    kopf.adopt(secret)
    api = kubernetes.client.CoreV1Api()
    try:
        api.create_namespaced_secret(namespace=namespace, body=secret)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise
    patch.metadata.annotations["config-operator.example.com/digest"] = digest(body)
    kopf.info(body, reason="SecretCreated", message=f"Created Secret {name}")


@kopf.on.update("configmaps", field="data")
def update_fn(body: kopf.Body, name: str, namespace: str | None, patch: kopf.Patch, **_: Any) -> None:
    api = kubernetes.client.CoreV1Api()
    api.patch_namespaced_secret(name, namespace, {"stringData": {"digest": digest(body)}})
    patch.metadata.annotations["config-operator.example.com/digest"] = digest(body)
    kopf.event(body, type="Normal", reason="SecretUpdated", message=f"Updated Secret {name}")


@kopf.on.delete("configmaps")
def delete_fn(body: kopf.Body, name: str, namespace: str | None, **_: Any) -> None:
    api = kubernetes.client.CoreV1Api()
    try:
        api.delete_namespaced_secret(name, namespace)
    except kubernetes.client.ApiException as error:
        if error.status != 404:
            raise
    kopf.info(body, reason="SecretDeleted", message=f"Deleted Secret {name}")


@kopf.timer("configmaps", interval=10, idle=5)
async def every_few_seconds(name: str, logger: kopf.Logger, patch: kopf.Patch, retry: int, **_: Any) -> None:
    logger.info(f"Ping from a timer: {name}")
    patch.metadata.annotations["config-operator.example.com/checked"] = "true"
