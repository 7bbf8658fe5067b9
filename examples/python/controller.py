"""A controller with kopf: a ConfigMap labelled `greet=yes` gets the annotation `greeting`."""

import kopf


@kopf.on.event("", "v1", "configmaps", labels={"greet": "yes"})
def greet(name, annotations, patch, **_):
    if "greeting" not in annotations:
        patch.metadata.annotations["greeting"] = f"hello {name}"


@kopf.on.login()
def login(**arguments):
    return kopf.login_with_kubeconfig(**arguments)
