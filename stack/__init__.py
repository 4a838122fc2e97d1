"""The local stack on real parts: installs and runs Envoy, tritonserver and the sidecar for ``./dev`` and the tests."""
