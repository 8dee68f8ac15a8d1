"""Run a Python process with nothing to lose.

bubblewrap on Linux shuts it off from the network, the files, the other processes and the memory of
the machine.
"""

import os
import platform
import select
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from .wire import TooLargeError

NEEDED = """grading runs what students wrote, and needs a sandbox for it: {why}.
On Debian and Ubuntu: `sudo apt install bubblewrap`; other Linux systems call it so, too.
Where Ubuntu forbids it: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`.
On macOS, and on Windows without WSL, grade in a container, from the course's folder:
  docker run -it --rm --privileged -v "$PWD":/course -w /course python:3.13 bash
  apt update && apt install -y bubblewrap && pip install -e ".[teach]"
`--unsafe` grades without a sandbox: a submission can then read and change all that you can."""
OURS = ("vit_steps", "vit_course", "vit_doctor")
DISK = 50_000_000  # bytes that a process may write
LONGEST = 20_000_000  # bytes that it may send at a time
START = "import sys, pickle; sys.path.insert(0, sys.argv[1]); pickle.load(sys.stdin.buffer)()"

# System calls, by their numbers on x86_64 and aarch64, that no answer needs: other processes, their
# memory, memory that no limit counts, and doors into the kernel. Without this filter six attacks of
# tests/hostile.txt succeed; mounts need no entry, since they need a right that bwrap takes away.
PROCESSORS = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
CLONE, CLONE3, THREAD = (56, 220), (435, 435), 0x10000
REFUSED = {
    "fork": (57, None), "vfork": (58, None), "unshare": (272, 97), "setns": (308, 268),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "pidfd_getfd": (438, 438), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
}  # fmt: skip
EPERM, ENOSYS = 1, 38
# Where the course lies inside, and where the process may write: names that no machine has.
COURSE, HOME = "/.vit-course", "/.vit-home"
PYTHON = os.path.abspath(sys.executable)  # it may have been called as ../venv/bin/python
PACKAGES = ("lib*/python3*", "local/lib*/python3*", "envs/*/lib/python3*")  # of a Python's folder


def calls_refused() -> bytes:
    """Make the filter of system calls that seccomp takes: a program for the kernel's BPF machine.

    Raises:
        RuntimeError: the processor is another one than those whose calls are known.
    """
    if platform.machine() not in PROCESSORS:
        raise RuntimeError(NEEDED.format(why=f"none is known for {platform.machine()}"))
    machine, column = PROCESSORS[platform.machine()]
    load, equal, above, bits, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050000, 0x80000000

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    steps = [step(load, 4), step(equal, machine, 1), step(give, kill), step(load, 0)]
    steps += [step(above, 0x40000000, 0, 1), step(give, kill)]  # calls in another form
    for numbers in REFUSED.values():
        if (number := numbers[column]) is not None:
            steps += [step(equal, number, 0, 1), step(give, refuse | EPERM)]
    # The C library takes up clone where clone3 is missing; of its flags a filter sees nothing.
    steps += [step(equal, CLONE3[column], 0, 1), step(give, refuse | ENOSYS)]
    steps += [step(equal, CLONE[column], 0, 3), step(load, 16), step(bits, THREAD, 1)]
    steps += [step(give, refuse | EPERM), step(give, allow)]
    return b"".join(steps)


def command(code: Path) -> list[str]:
    """Give the command that runs Python apart; `code` alone of the course is there, to be read.

    There is no /proc: it would tell the grader's command, environment and folders.
    """
    apart = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user"]
    apart += ["--uid", "65534", "--gid", "65534", "--hostname", "vit", "--cap-drop", "ALL"]
    apart += ["--die-with-parent", "--new-session", "--clearenv"]
    for name, value in (("HOME", HOME), ("OMP_NUM_THREADS", "1"), ("PATH", "/usr/bin")):
        apart += ["--setenv", name, value]
    apart += ["--ro-bind", "/usr", "/usr", "--dev", "/dev"]
    apart += ["--ro-bind-try", "/proc/cpuinfo", "/proc/cpuinfo"]  # PyTorch asks for it
    for name in ("bin", "lib", "lib64", "sbin"):
        if (root := Path("/", name)).is_symlink():
            apart += ["--symlink", os.readlink(root), str(root)]
        elif root.is_dir():
            apart += ["--ro-bind", str(root), str(root)]
    apart += ["--remount-ro", "/dev"]
    packages = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, *packages}
    for folder in sorted(folders):
        apart += ["--ro-bind", folder, folder]
    for folder in installed({"/usr", *folders}):
        apart += ["--tmpfs", folder, "--remount-ro", folder]
    apart += ["--ro-bind", str(code), COURSE, "--dir", HOME, "--remount-ro", "/"]
    return [*apart, "--size", str(DISK), "--tmpfs", HOME, "--chdir", HOME]


def installed(folders: set[str]) -> list[str]:
    """List where the course is installed for a Python of these folders, whichever it is."""
    packages = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    for folder in folders:
        for pattern in PACKAGES:
            packages.update(Path(folder).glob(f"{pattern}/*-packages"))
    ours = {folder / name for folder in packages for name in OURS}
    return sorted(str(folder) for folder in ours if folder.is_dir() and not folder.is_symlink())


def ready(hidden: Sequence[Path] = ()) -> None:
    """See that a process can be run apart.

    Args:
        hidden: folders that it must not see.

    Raises:
        RuntimeError: it cannot, or sees one of them; it says why, and what to do.
    """
    if not shutil.which("bwrap"):
        raise RuntimeError(NEEDED.format(why="bubblewrap is missing"))
    calls_refused()
    look = "import os, sys; print('here', *filter(os.path.exists, sys.argv[1:]), sep='\\n')"
    paths = [str(p) for path in hidden for p in (path.absolute(), path.resolve())]
    line = [*command(Path(__file__).parent), PYTHON, "-I", "-c", look, *paths]
    done = subprocess.run(line, capture_output=True, text=True, env={})
    if not done.stdout.startswith("here\n"):
        raise RuntimeError(NEEDED.format(why=f"bubblewrap fails: {done.stderr.strip()[:300]}"))
    if readable := done.stdout.splitlines()[1:]:
        raise RuntimeError(
            f"a submission could read {readable[0]}, since /usr, and all of this Python's folder, "
            "are open to it: move it, into your home for instance"
        )


class Apart:
    """Hold a process that may live for some seconds."""

    def __init__(self, child: subprocess.Popen, seconds: float):
        assert child.stdin
        assert child.stdout
        self.stdin, self.stdout = child.stdin.fileno(), child.stdout.fileno()
        self.until = time.monotonic() + seconds

    def read(self) -> bytes:
        """Read what it sends next.

        Raises:
            TimeoutError: it takes too long.
            TooLargeError: it sends too much.
            EOFError: it has ended.
        """
        size = int.from_bytes(self.exactly(8), "big")
        if size > LONGEST:
            raise TooLargeError
        return self.exactly(size)

    def exactly(self, count: int) -> bytes:
        """Read as many of the bytes that it sends; raises as `read`."""
        data = bytearray()
        while len(data) < count:
            seconds = self.until - time.monotonic()  # also of one that has always something to say
            if seconds <= 0 or not select.select([self.stdout], [], [], seconds)[0]:
                raise TimeoutError
            part = os.read(self.stdout, min(count - len(data), 1 << 20))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def write(self, data: bytes) -> None:
        """Send this; that it has ended meanwhile is seen when it is read."""
        os.set_blocking(self.stdin, False)
        unsent = memoryview(data)
        while unsent:
            if not select.select([], [self.stdin], [], max(0, self.until - time.monotonic()))[1]:
                raise TimeoutError
            try:
                unsent = unsent[os.write(self.stdin, unsent) :]
            except BrokenPipeError:
                return


@contextmanager
def apart(code: Path, program: bytes, seconds: float, unsafe: bool = False) -> Iterator[Apart]:
    """Run a fresh interpreter that unpickles a program and calls it, until the block is left.

    Args:
        code: a folder with the modules that it may import beside the installed ones.
        program: a function without arguments, pickled.
        seconds: that it may live.
        unsafe: without a sandbox.
    """
    with TemporaryDirectory() as folder, TemporaryFile() as rules:
        rules.write(b"" if unsafe else calls_refused())
        rules.seek(0)
        line = [PYTHON, "-I", "-c", START, str(code) if unsafe else COURSE]
        if not unsafe:
            line = [*command(code), "--seccomp", str(rules.fileno()), *line]
        with subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            pass_fds=[rules.fileno()], cwd=folder, start_new_session=True,
            env=None if unsafe else {},
        ) as child:  # fmt: skip
            try:
                process = Apart(child, seconds)
                process.write(program)
                yield process
            finally:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    child.kill()
