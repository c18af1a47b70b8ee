"""Close the network for this Python process and its children: only this machine answers.

`build.py` puts this folder on PYTHONPATH, so that Python imports the module before anything else. An attempt
raises, and is also noted in the file that MEMLAB_NETWORK_ATTEMPTS names, in case someone swallows the error.
"""

import ipaddress
import os
import sys

_CHECKED = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}


def _is_local(host):
    if host is None or host in ("", b"", "localhost", b"localhost"):
        return True
    try:
        name = host.decode("ascii") if isinstance(host, bytes) else str(host)
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse(event, arguments):
    if event not in _CHECKED:
        return
    target = arguments[_CHECKED[event]]
    if isinstance(target, tuple):
        target = target[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        return  # a socket file of this machine, or a connection that was made (and checked) before
    if _is_local(target):
        return
    note = os.environ.get("MEMLAB_NETWORK_ATTEMPTS")
    if note:
        with open(note, "a", encoding="utf-8") as file:
            file.write(f"{event} {target}\n")
    raise ConnectionRefusedError(f"the network is closed while notebooks are built: {event} {target}")


sys.addaudithook(_refuse)
