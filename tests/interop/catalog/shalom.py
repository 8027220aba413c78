"""The beacon of czmq, by ctypes: `shalom.py TEXT` says it every 200 ms on UDP 5245 until it is ended."""  # a script

import ctypes
import signal
import sys

PORT, EVERY_MS = 5245, 200


def main() -> None:
    """An actor `zbeacon`, as a C program would use it."""
    czmq = ctypes.CDLL("libczmq.so.4")
    czmq.zactor_new.restype = czmq.zstr_recv.restype = ctypes.c_void_p
    czmq.zsys_set_interface(b"*")
    actor = ctypes.c_void_p(czmq.zactor_new(ctypes.cast(czmq.zbeacon, ctypes.c_void_p), None))
    czmq.zsock_send(actor, b"si", b"CONFIGURE", PORT)
    host = czmq.zstr_recv(actor)
    text = sys.argv[1].encode()
    czmq.zsock_send(actor, b"sbi", b"PUBLISH", text, ctypes.c_size_t(len(text)), EVERY_MS)
    sys.stdout.write(f"says {ctypes.string_at(host).decode()}\n")
    signal.pause()


if __name__ == "__main__":
    main()
