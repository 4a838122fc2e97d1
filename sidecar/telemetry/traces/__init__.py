"""Traces: the spans of a request, as OpenTelemetry has them, and their way to a collector.

The modules here import OpenTelemetry's SDK, which takes some 15 MB of each worker: they are imported only where traces
are sent somewhere.
"""
