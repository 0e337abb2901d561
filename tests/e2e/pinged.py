"""An agent of one thread that answers pings, and can be made to hang.

    SIGUSR1  it computes without an end      SIGUSR2  it waits for what never comes

With `watchdog` as its argument it feeds a watchdog instead, with `slow` every five seconds, with `own`
likewise after it has set that to twenty, and with `extend` for as long as it has not asked for time. With
`busy` it announces that it is busy for a while after its third ping, answers nothing meanwhile, and goes on;
with `late` it does not go on. With `deaf` it does not listen any more from then on; with `claim` it waits for
a task then, and with `submit` for the answer to each one that it submits, which SIGUSR1 makes it do instead.
"""

import contextlib
import datetime
import json
import os
import signal
import socket
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "ping"


def connect():
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(os.environ["HOLDFAST_SOCKET"])
            return connection
        except OSError:  # there is no link for a moment
            connection.close()
            time.sleep(0.1)


def request(connection, method, path, body=""):
    connection.sendall(
        (f"{method} {path} HTTP/1.1\r\nHost: agentd\r\nAuthorization: Bearer "
         f"{os.environ['HOLDFAST_TOKEN']}\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())


def post(path, body):
    with connect() as connection, contextlib.suppress(OSError):  # a link may die meanwhile
        request(connection, "POST", path, json.dumps(body))
        connection.recv(4096)


def spin(*_):
    print("spinning", flush=True)
    while True:
        pass


def block(*_):
    print("blocking", flush=True)
    os.read(os.pipe()[0], 1)


def be_busy():
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=9)
    post("/v1/state", {"state": "busy", "until": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
                       "reason": "a tool runs"})
    print("busy", flush=True)
    if MODE == "late":
        block()
    time.sleep(7)
    post("/v1/state", {"state": "ready"})
    print("done", flush=True)


def claim():
    print("claiming", flush=True)
    post("/v1/tasks/claim", {"wait": "9s"})
    print("claimed", flush=True)


def submit(*_):
    print("submitting", flush=True)
    post("/v1/tasks", {"role": "r2", "payload": "p"})
    print("submitted", flush=True)


def lines():
    """Of its events; from link to link, unless it does not want to."""
    while True:
        with connect() as stream, contextlib.suppress(OSError):
            request(stream, "GET", "/v1/events")
            yield from stream.makefile()


def listen():
    pings = 0
    stream = lines()
    for line in stream:
        if line.startswith("data:") and '"id"' in line:
            post("/v1/pong", {"id": json.loads(line[5:])["id"]})
            pings += 1
            print("pong", pings, flush=True)
        if MODE in ("busy", "late") and pings == 3:
            pings += 1
            be_busy()
        if MODE == "claim" and pings == 3:
            pings += 1
            claim()
        if MODE == "deaf" and pings == 3:
            break
    stream.close()
    print("deaf", flush=True)
    time.sleep(1000)


def feed():
    interval = int(os.environ["WATCHDOG_USEC"]) / 2e6 if MODE in ("watchdog", "extend") else 5
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.connect(os.environ["NOTIFY_SOCKET"])
    notify.send(b"READY=1\nSTATUS=feeding")
    if MODE == "own":
        notify.send(b"WATCHDOG_USEC=20000000")
    for _ in range(3):
        notify.send(b"WATCHDOG=1")
        print("fed", flush=True)
        time.sleep(interval)
    if MODE == "extend":
        notify.send(b"EXTEND_TIMEOUT_USEC=8000000")
        print("asked for time", flush=True)
        time.sleep(7)
    while True:
        notify.send(b"WATCHDOG=1")
        print("fed again", flush=True)
        time.sleep(interval)


signal.signal(signal.SIGUSR1, submit if MODE == "submit" else spin)
signal.signal(signal.SIGUSR2, block)
if MODE in ("watchdog", "extend", "slow", "own"):
    feed()
else:
    listen()
