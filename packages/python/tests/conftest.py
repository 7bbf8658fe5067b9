"""Loads the plugin: it is an entry point of the wheel, and here only the package is on the path."""

pytest_plugins = ["fake_apiserver.pytest_plugin", "pytester"]
