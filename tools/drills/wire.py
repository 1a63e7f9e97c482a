"""Network namespaces joined by wires that a thread carries: a wire can be cut, delay packets and lose some of them.

Each host has a kernel's network of its own, so its TCP knows nothing of loopback. A wire is a pair of TUN devices, one
in each namespace; packets pass from one to the other through this process. So no kernel module for faults is needed.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import math
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import NamedTuple, TypeVar

T = TypeVar("T")
NEEDED = ("ip", "unshare", "nsenter")
NEAR, FAR = 0, 1
MTU = 1500
PAUSE = 0.05
_TUNSETIFF, _TUN, _NO_HEADER, _NETWORK = 0x400454CA, 0x1, 0x1000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> str | None:
    """Return what namespaces need and this machine lacks; None if nothing."""
    if os.geteuid() != 0:
        return "root"
    lacking = [name for name in NEEDED if shutil.which(name) is None]
    if lacking or not Path("/dev/net/tun").exists():
        return " and ".join(lacking) or "/dev/net/tun"
    done = subprocess.run(["unshare", "-n", "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def end_with_parent() -> None:
    """Have the kernel end this process with the thread that started it. For `preexec_fn`."""
    _libc.prctl(1, signal.SIGKILL)


class Host:
    """A namespace, which lives as long as this object is not closed."""

    def __init__(self) -> None:
        command = ["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"]
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "up\n"
        self.path = Path(f"/proc/{self._holder.pid}/ns/net")

    def inside(self, *command: object) -> list[str]:
        """Return a command that runs another one in this namespace."""
        return ["nsenter", f"--net={self.path}", *map(str, command)]

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in this namespace, in a thread of its own, because it does not come back from there."""
        results: list[T] = []

        def run() -> None:
            with self.path.open() as namespace:
                if _libc.setns(namespace.fileno(), _NETWORK) == 0:
                    results.append(function())

        thread = Thread(target=run)
        thread.start()
        thread.join()
        return results[0]

    def device(self, name: str, address: str, peer: str) -> int:
        """Make a TUN device with an address, and return its file."""

        def make() -> int:
            file = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
            fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TUN | _NO_HEADER))
            return file

        file = self.call(make)
        script = f"ip addr add {address} peer {peer} dev {name} && ip link set {name} mtu {MTU} up"
        subprocess.run(self.inside("sh", "-c", script), check=True)
        return file

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()


class Trap(NamedTuple):
    """Cuts a wire at the first packet with which a point is reached."""

    is_reached: Callable[[int, bytes], bool]
    """Called with NEAR or FAR, whichever sends it, and the packet."""
    seconds: float = math.inf
    """After so many seconds the wire is whole again."""
    is_lost: bool = True
    """False if that packet still passes."""


class Wire:
    """Joins two hosts. `cut`, `delay` (seconds), `loss` (a share) and `trap` can be set at any time."""

    _count = 0

    def __init__(self, near: Host, far: Host) -> None:
        Wire._count += 1
        number = Wire._count
        self.peer = f"10.77.{number}.2"
        """The address of the far host."""
        self.cut, self.delay, self.loss = False, 0.0, 0.0
        self.trap: Trap | None = None
        self.bytes, self.lost = [0, 0], 0
        """The bytes that either host sent, and the packets of both that were lost."""
        self._back = math.inf
        self._dice, self._waiting, self._ended = random.Random(number), list[tuple[float, int, int, bytes]](), False
        name, address = f"wire{number}", f"10.77.{number}.1"
        self._files = near.device(name, address, self.peer), far.device(name, self.peer, address)
        self._thread = Thread(target=self._carry, daemon=True, name=name)
        self._thread.start()

    def close(self) -> None:
        self._ended = True
        self._thread.join()
        for file in self._files:
            os.close(file)

    def after(self, side: int, count: int, seconds: float = math.inf) -> None:
        """Cut the wire when a host has sent so many bytes more."""
        start = self.bytes[side]
        self.trap = Trap(lambda _, packet: self.bytes[side] - start >= count, seconds)

    def _carry(self) -> None:
        """Pass packets on until the end."""
        number = 0
        while not self._ended:
            due = self._waiting[0][0] - time.monotonic() if self._waiting else PAUSE
            ready, _, _ = select.select(self._files, [], [], min(PAUSE, max(0.0, due)))
            if time.monotonic() > self._back:
                self.cut, self._back = False, math.inf
            for file in ready:
                number += 1
                self._take(self._files.index(file), os.read(file, 1 << 16), number)
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, side, packet = heapq.heappop(self._waiting)
                self._pass(side, packet)

    def _take(self, side: int, packet: bytes, number: int) -> None:
        """Take a packet from a host: pass it on, delay it or lose it."""
        self.bytes[side] += len(packet)
        trap = self.trap if self.trap is not None and self.trap.is_reached(side, packet) else None
        if self.cut or (trap is not None and trap.is_lost) or self._dice.random() < self.loss:
            self.lost += 1
        elif self.delay:
            heapq.heappush(self._waiting, (time.monotonic() + self.delay, number, side, packet))
        else:
            self._pass(side, packet)
        if trap is not None:
            self.trap, self.cut, self._back = None, True, time.monotonic() + trap.seconds

    def _pass(self, side: int, packet: bytes) -> None:
        try:
            os.write(self._files[1 - side], packet)
        except OSError:  # its queue is full
            self.lost += 1
