"""Runs one command and ends it when its supervisor is gone, even by kill -9.

`python -I -S leash.py --stop SIGTERM --death SIGKILL --grace 10 [--user nobody] -- command …`

The supervisor holds the other end of our stdin: when it closes it or dies, we read the end of the file, send the
polite stop signal, and after the grace time SIGKILL. Should the leash itself be killed, Linux sends the command the
death signal. Standard library only: it starts in milliseconds and works before anything of ours is imported.
"""

import argparse
import ctypes
import os
import pwd
import select
import signal
import sys
import time
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP = 28, 4
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_DAC_OVERRIDE = 1
#: Without a supervisor all parts end at once: nobody waits for the work of another.
ORPHAN_GRACE_SECONDS = 3.0
LOOK_SECONDS = 0.1
CAPABILITY_VERSION_3 = 0x20080522


def main() -> int:
    """The command's exit code; 128 + number when a signal ended it."""
    options = _options()
    supervisor = os.getppid()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    leash = os.getpid()
    child = os.fork()
    if child == 0:
        _become(options, leash)
    code = _watch(child, wake_read, options, supervisor)
    if os.getppid() != supervisor:
        os.killpg(0, signal.SIGKILL)  # nobody else is left to clear away what the command may have started
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stop", type=lambda name: signal.Signals[name], default=signal.SIGTERM)
    parser.add_argument("--death", type=lambda name: signal.Signals[name], default=signal.SIGKILL)
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("--user")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _watch(child: int, wake: int, options: argparse.Namespace, supervisor: int) -> int:
    asked_at: float | None = None
    while True:
        watched, wait = ([wake, 0], None) if asked_at is None else ([wake], LOOK_SECONDS)
        readable = select.select(watched, [], [], wait)[0]
        asked = 0 in readable and not os.read(0, 4096)
        if wake in readable:
            asked = bool({signal.SIGTERM, signal.SIGINT} & set(os.read(wake, 4096))) or asked
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if asked_at is None:
            if asked:
                asked_at = time.monotonic()
                os.kill(child, options.stop)
            continue
        # Looked at each time: a supervisor that is killed closes its pipes a moment before it is gone.
        orphaned = os.getppid() != supervisor
        if time.monotonic() - asked_at >= (min(options.grace, ORPHAN_GRACE_SECONDS) if orphaned else options.grace):
            os.kill(child, signal.SIGKILL)


def _become(options: argparse.Namespace, leash: int) -> NoReturn:
    """In the forked child: the command itself."""
    try:
        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and exec would hand that on
            signal.signal(signal.Signals[name], signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        if options.user:
            _switch_user(options.user)
        if sys.platform == "linux":
            # After the switch of user, which would clear it again.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(options.death), 0, 0, 0)
            if os.getppid() != leash:
                os._exit(1)
        os.execvp(options.command[0], options.command)  # noqa: S606 (a shell is what we do not want)
    except OSError as error:
        os.write(2, f"cannot run {options.command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _switch_user(name: str) -> None:
    """From root to `name`, keeping only the right to pass directories that are closed to it.

    A home or a virtual environment may lie under a directory of mode 0700 (/root, mktemp -d). Where the kernel
    grants no ambient capability, the command runs without and such a place fails with "permission denied".
    """
    user = pwd.getpwnam(name)
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc:
        libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
        # Else access(2), by which initdb looks for its programs, would leave the kept right out of account.
        libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    if libc:
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
        mask = 1 << CAP_DAC_OVERRIDE
        effective_permitted_inheritable = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
        libc.capset(header, effective_permitted_inheritable)
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
