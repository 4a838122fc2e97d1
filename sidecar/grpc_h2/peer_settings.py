"""The peer's settings: checked, and applied where they are about anything that we do.

Source: RFC 9113, section 6.5.
"""

from __future__ import annotations

from struct import iter_unpack
from typing import Any

from sidecar.grpc_h2.faults import ConnectionFault
from sidecar.grpc_h2.frames import DEFAULT_FRAME_SIZE, MAX_FRAME_SIZE, MAX_WINDOW, ErrorCode, Setting
from sidecar.grpc_h2.sender import Sender


def apply_settings(payload: bytes, sender: Sender[Any]) -> None:
    """Do as the payload of a SETTINGS frame says.

    Raises:
        ConnectionFault: a value is not allowed.
    """
    window = sender.initial_window
    for setting, value in iter_unpack(">HL", payload):
        match setting:
            case Setting.INITIAL_WINDOW_SIZE:
                if value > MAX_WINDOW:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "the initial window is too large")
                window = value
            case Setting.MAX_FRAME_SIZE:
                # Larger frames than the default would only let one call hold up the others for longer.
                if not DEFAULT_FRAME_SIZE <= value <= MAX_FRAME_SIZE:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame size that is not allowed")
            case Setting.ENABLE_PUSH:
                if value > 1:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1")
            case Setting.MAX_CONCURRENT_STREAMS:
                sender.max_streams = value
            case _:
                # The others limit what we do not do: tables and long lists of headers.
                pass
    # Once for all: every stream's window changes with it.
    if window != sender.initial_window:
        sender.set_initial_window(window)
