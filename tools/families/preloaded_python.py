#!/usr/bin/env python3
"""Stands for a Python in `invar export --python`: hands its arguments to the process that has torch
loaded (export_table.py), at the socket INVAR_PRELOADED, and ends as that says."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.environ["INVAR_PRELOADED"])
    socket.send_fds(server, [json.dumps(sys.argv[1:]).encode()], [1, 2])
    sys.exit(int(server.recv(16)))
