"""Programs for commands to run, in a folder of the test's own."""

from __future__ import annotations

import sys
from pathlib import Path

SHOW = """
import json, os, resource, sys
limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
          for name in ("CPU", "AS", "NOFILE", "NPROC", "FSIZE", "CORE")}
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "stdin": sys.stdin.read(), "limits": limits,
    "leads": os.getsid(0) == os.getpid(), "mode": oct(os.stat(".").st_mode & 0o777), "umask": oct(os.umask(0)),
    "no_new_privs": status["NoNewPrivs"].strip(), "files": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:3],
    "ignored": status["SigIgn"].strip(), "here": os.listdir("."), "held": len(os.listdir("/proc/self/fd")),
}))
"""

BROOD = """
import os, signal, sys, time
folder = sys.argv[1]
def stay(name):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(f"{folder}/.{name}", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{folder}/.{name}", f"{folder}/{name}")
    time.sleep(300)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            stay("grandchild")
        stay("child")
    os._exit(0)
os.wait()
if len(sys.argv) > 2:
    while not os.path.exists(f"{folder}/grandchild"): time.sleep(0.001)
    sys.exit(int(sys.argv[2]))
stay("main")
"""

SLIPPERY = """
import os, signal, sys, time
folder = sys.argv[1]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    count = 0
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()
        count += 1
        if count == 100:
            open(f"{folder}/slipping", "w").close()
time.sleep(300)
"""

POLITE = """
import os, signal, sys, time
folder = sys.argv[1]
def leave(*_):
    open(f"{folder}/told", "w").close()
    print("put away", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
open(f"{folder}/main", "w").write(str(os.getpid()))
time.sleep(300)
"""

COUNT = """
import sys, time
for number in range(int(sys.argv[2])):
    with open(sys.argv[1], "a") as file: file.write("x")
    time.sleep(0.005)
"""

GREEDY = """
data = bytearray(500_000_000)
print(len(data))
"""


def write_scripts(folder: Path) -> Path:
    """Return the folder, having filled it."""
    folder.mkdir()
    scripts = {"show": SHOW, "brood": BROOD, "slippery": SLIPPERY, "polite": POLITE, "count": COUNT, "greedy": GREEDY}
    for name, text in scripts.items():
        script = folder / name
        script.write_text(f"#!{sys.executable} -S\n{text}")
        script.chmod(0o755)
    return folder
