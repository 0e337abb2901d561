#!/usr/bin/env python3
"""Makes docs/recovery.svg anew: a real recovery, as it looks on a terminal.

    ./dev build && docs/recovery.py build/release/bin

starts `holdfast up` on a terminal of its own, lets `holdfast demo crash ada` happen to it, and
draws the screen that follows, and what the demo told. To look at the result as a picture:
rsvg-convert docs/recovery.svg -o /tmp/recovery.png (Debian: librsvg2-bin).
"""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from xml.sax.saxutils import escape

COLUMNS, ROWS = 104, 40
TOP, LEAVE = "\033[H\033[J", "\033[?25h\033[?1049l"
LINE, LEFT, WIDTH = 18, 16, 880
PLAIN, DIM, TITLE = "#d5dae3", "#7d8799", "#7d8799"
COLOURS = {"2": DIM, "31": "#ec7a7a", "32": "#7fd18b", "33": "#e2c073"}
DEADLINE = 120  # seconds, for everything


def start_up(programs, env_file):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    env = {"PATH": os.environ["PATH"], "TERM": "xterm"}
    up = subprocess.Popen([programs / "holdfast", "up", "--env-file", env_file], stdout=slave,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=env)
    os.close(slave)
    return up, master


def read_frames(master, is_enough):
    """Reads whole screens until one of them is enough, and returns that."""
    text, end = "", time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if select.select([master], [], [], 1)[0]:
            text += os.read(master, 65536).decode(errors="replace")
        frames = text.replace("\r", "").split(TOP)
        for frame in frames[1:-1]:  # the last one may not be whole
            if is_enough(frame):
                return frame
        text = TOP + frames[-1] if len(frames) > 1 else text
    sys.exit("recovery.py: the fleet did not come to the point")


def run_demo(programs, env_file):
    endpoints = re.search(r"HOLDFAST_ENDPOINTS=(\S+)", env_file.read_text())[1]
    demo = subprocess.run([programs / "holdfast", "--endpoints", endpoints, "demo", "crash", "ada"],
                          capture_output=True, text=True, timeout=DEADLINE, check=True)
    return demo.stdout.rstrip("\n").split("\n")


def record(programs):
    with tempfile.TemporaryDirectory() as folder:
        env_file = pathlib.Path(folder) / "env"
        up, master = start_up(programs, env_file)
        try:
            read_frames(master, lambda frame: frame.count(" step ") == 3 and "ada" in frame)
            demo = run_demo(programs, env_file)
            seen = ("restart_ordered", "joined", "ada")
            screen = read_frames(master, lambda f: all(s in f for s in seen) and f.count("step") == 3)
        finally:
            up.send_signal(signal.SIGINT)
            while up.poll() is None:
                if select.select([master], [], [], 0.1)[0]:
                    try:
                        os.read(master, 65536)
                    except OSError:
                        pass
    return screen.replace(LEAVE, "").rstrip("\n").split("\n"), demo


def spans(line):
    """Pairs of colour and text."""
    colour = PLAIN
    for part in re.split(r"(\033\[[0-9;]*m)", line):
        if part.startswith("\033["):
            colour = COLOURS.get(part[2:-1], PLAIN)
        elif part:
            yield colour, part


def draw_box(out, y, title, lines):
    out.append(f'<rect x="0" y="{y}" width="{WIDTH}" height="{len(lines) * LINE + 42}" rx="8" '
               'fill="#1b1f27"/>')
    out.append(f'<text x="{LEFT}" y="{y + 21}" fill="{TITLE}">{escape(title)}</text>')
    for i, line in enumerate(lines):
        parts = "".join(f'<tspan fill="{colour}">{escape(text)}</tspan>'
                        for colour, text in spans(line))
        if parts:
            out.append(f'<text x="{LEFT}" y="{y + 46 + i * LINE}" xml:space="preserve">{parts}</text>')
    return y + len(lines) * LINE + 42 + 12


def main():
    programs = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin").resolve()
    screen, demo = record(programs)
    # What it says about the other terminal is the other half of the picture.
    screen = screen[:next((i for i, line in enumerate(screen) if "another terminal" in line), None)]
    while screen and not screen[-1]:
        screen.pop()
    demo = ["\033[32m$ holdfast demo crash ada\033[0m"] + demo
    demo[-1] = f"\033[32m{demo[-1]}\033[0m"
    body = []
    height = draw_box(body, draw_box(body, 0, "./dev up", screen), "another terminal", demo) - 12
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" font-family="ui-monospace, SFMono-Regular, Menlo, '
            'Consolas, DejaVu Sans Mono, monospace" font-size="13.5">')
    target = pathlib.Path(__file__).resolve().parent / "recovery.svg"
    target.write_text("\n".join([head, *body, "</svg>", ""]))
    print(f"{target}: {len(screen)} + {len(demo)} lines")


main()
