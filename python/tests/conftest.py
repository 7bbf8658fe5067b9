"""The plugin is an entry point of the wheel; here the package is on the path only."""

pytest_plugins = ["fake_apiserver.pytest_plugin", "pytester"]
