"""application/x-sluice-batch: messages as bytes, without base64. docs/batch-format.md describes every byte."""
from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, Mapping, Sequence, Tuple

TYPE = "application/x-sluice-batch"
MESSAGES = 1  # the kind of a batch of messages to enqueue
FIXED = ("namespace", "queue", "payload")  # what is not among the members


def name(text: str) -> bytes:
    """A name behind its length. The server refuses more than 128 bytes: there is no need for all of them."""
    raw = text.encode()[:255]
    return bytes([len(raw)]) + raw


def messages(items: Sequence[Mapping[str, Any]]) -> bytes:
    """A batch of items as `values.item` makes them: their payloads are bytes."""
    queues: Dict[Tuple[str, str], int] = {}
    parts: List[bytes] = []
    for item in items:
        queue = queues.setdefault((item["namespace"], item["queue"]), len(queues))
        others = {key: value for key, value in item.items() if key not in FIXED}
        members = json.dumps(others, ensure_ascii=False, separators=(",", ":")).encode() if others else b""
        payload = item["payload"]
        parts += struct.pack("<IIHH", len(members), len(payload), queue, 0), members, payload
    names = b"".join(name(space) + name(queue) for space, queue in queues)
    return struct.pack("<4sBBHI", b"SLB1", MESSAGES, 0, len(queues), len(items)) + names + b"".join(parts)
