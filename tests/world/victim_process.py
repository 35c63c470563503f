"""A process that stands in for Mulligan: it holds a secret, and answers on every kind of socket."""

import ctypes
import os
import select
import socket
import sys
from pathlib import Path

PTRACER, ANY = 0x59616D61, 2**64 - 1


def main() -> None:
    place = Path(sys.argv[1])
    # Some kernels let only parents trace, which would hide what a sandbox is good for.
    ctypes.CDLL(None).prctl(PTRACER, ctypes.c_ulong(ANY))
    stream, datagram = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    stream.bind(("127.0.0.1", 0))
    port = stream.getsockname()[1]
    datagram.bind(("127.0.0.1", port))
    abstract, file = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    name = f"mulligan-{os.getpid()}"
    abstract.bind(f"\0{name}")
    file.bind(str(place / "state" / "docker.sock"))
    listening = (stream, abstract, file)
    for each in listening:
        each.listen()
    sys.stdout.write(f"{port} {name}\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select((*listening, datagram), (), ())
        for each in ready:
            if each is datagram:
                words, sender = datagram.recvfrom(100)
                datagram.sendto(words, sender)
            else:
                with each.accept()[0] as line:
                    line.send(line.recv(100))


if __name__ == "__main__":
    main()
