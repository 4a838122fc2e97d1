"""Reads usage records as a billing system does: prints each as a line of JSON, and goes on where it stopped.

The key is read from USAGE_KEY; it needs the scope usage:read. From a checkout in which ./dev has run once:
USAGE_KEY=b3os_sk_… .venv/bin/python examples/read_the_usage_feed.py 127.0.0.1:9100 cursor.txt --follow

A record that was printed just before this was killed is printed again by the next run: its id tells. Elsewhere, make
the messages of proto/sidecar/feed/usage_feed.proto with protoc.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToJson

from sidecar.feed.usage_feed_pb2 import StreamRequest, StreamResponse

METHOD = "/responses.sidecar.usage.v1.UsageFeed/Stream"
PAUSE_SECONDS = 1.0


def main() -> None:
    """Read until the end, or for ever."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address", help="host:port of the feed")
    parser.add_argument("cursor", type=Path, help="the file that holds the cursor between runs")
    parser.add_argument("--follow", action="store_true", help="wait for further records")
    arguments = parser.parse_args()
    while True:
        try:
            read(arguments.address, arguments.cursor, arguments.follow)
            return
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                sys.exit(f"{error.code().name}: {error.details()}")
            print(f"{error.details()}; trying again", file=sys.stderr)
            time.sleep(PAUSE_SECONDS)


def read(address: str, cursor: Path, follow: bool) -> None:
    """Print the records after the cursor, and move it behind each."""
    request = StreamRequest(cursor=cursor.read_text() if cursor.exists() else "", follow=follow)
    metadata = [("authorization", f"Bearer {os.environ['USAGE_KEY']}")]
    # Without TLS, as the feed speaks it: on one machine, or to a proxy there that adds it.
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stream = channel.unary_stream(
            METHOD,
            request_serializer=StreamRequest.SerializeToString,
            response_deserializer=StreamResponse.FromString,
        )
        for response in stream(request, metadata=metadata):
            if response.HasField("record"):
                print(MessageToJson(response.record, preserving_proto_field_name=True, indent=None), flush=True)
            store(cursor, response.cursor)


def store(path: Path, cursor: str) -> None:
    """Put the cursor into its file, all of it or nothing."""
    partial = path.with_suffix(".partial")
    partial.write_text(cursor)
    partial.replace(path)


if __name__ == "__main__":
    main()
