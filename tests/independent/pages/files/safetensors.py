"""onnx.5: the tensors of a safetensors file."""

import json
import struct


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            yield name, (entry["dtype"], entry["shape"], data[begin:end])
