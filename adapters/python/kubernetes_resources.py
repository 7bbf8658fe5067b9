"""List functions of the generated clients `kubernetes` and `kubernetes_asyncio`, by resource."""

RESOURCES = {
    "configmaps": ("CoreV1Api", "config_map"),
    "pods": ("CoreV1Api", "pod"),
    "secrets": ("CoreV1Api", "secret"),
    "services": ("CoreV1Api", "service"),
    "jobs.batch": ("BatchV1Api", "job"),
}


def list_function(client, start, *arguments):
    """Returns the list function for `start` in the package `client`, with these arguments for its API, and its arguments."""
    resource = start["resource"]
    api, name = RESOURCES[".".join(part for part in (resource["plural"], resource["group"]) if part)]
    api = getattr(client, api)(*arguments)
    if "namespace" in start:
        return getattr(api, f"list_namespaced_{name}"), {"namespace": start["namespace"]}
    return getattr(api, f"list_{name}_for_all_namespaces"), {}


def selectors(start):
    """Returns the selectors of `start` as arguments of a list function."""
    names = {"labelSelector": "label_selector", "fieldSelector": "field_selector"}
    return {python: start["options"][key] for key, python in names.items() if key in start["options"]}
