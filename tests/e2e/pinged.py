"""An agent of one thread that answers pings, and can be made to hang.

    SIGUSR1  it computes without an end      SIGUSR2  it waits for what never comes

What it does instead, or from its third ping on, is its first argument:

    busy       announces that it is busy for a while, answers nothing meanwhile, and goes on
    brief      says all that there is to say, announces it for three seconds, and answers nothing
               any more
    rest STATE [SECONDS]
               announces that state, without an end or for so long, and answers nothing any more
    mute       answers no ping any more, but says what it does
    beat       sends heartbeats instead
    longer     announces at SIGUSR1 that it is busy for a second, then that it is parked
    parent     has a child in a session of its own, and an orphan that is nobody's child
    late       answers one ping not at all, the next one after half a second, and goes on
    moody      answers every other ping late, as a habit; then two not at all, and goes on
    deaf       does not listen any more
    claim      waits for a task, for nine seconds or as long as it says, and goes on
    submit     waits for the answer to a task that it submits at SIGUSR1
    watchdog   feeds a watchdog instead; SIGUSR1 says that it hangs
    relent     likewise, and goes on to feed it at SIGUSR2
    slow       feeds it every five seconds
    uneven     feeds it early and late in turn, as a habit; then waits twice as long as before,
               and goes on
    own        likewise, after it has set the watchdog to twenty
    extend     feeds it three times, and asks for a minute
    pause      feeds it three times, asks for eight seconds, and goes on after seven
    stopping   feeds it three times, and says that it stops
    idle       does nothing, with an open connection
    tcp PORT   accepts connections there, until SIGUSR1
    grpc PORT  says there by grpc.health.v1 that it serves, until SIGUSR1
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


def say(*words):
    print(*words, flush=True)


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
    say("spinning")
    while True:
        pass


def block(*_):
    say("blocking")
    os.read(os.pipe()[0], 1)


def announce(state, seconds, **more):
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    post("/v1/state", {"state": state, "until": until.strftime("%Y-%m-%dT%H:%M:%SZ"), **more})


def announce_busy(seconds):
    announce("busy", seconds, reason="a tool runs")
    say("busy")


def be_busy():
    announce_busy(9)
    time.sleep(7)
    post("/v1/state", {"state": "ready"})
    say("done")


def be_brief():
    post("/v1/activity", {"status": "degraded", "phase": "reading", "lastTool": "grep",
                          "task": "t7", "progress": 40, "tokens": 1200, "errors": 3})
    announce_busy(3)
    block()


def rest():
    if len(sys.argv) > 3:
        announce(sys.argv[2], int(sys.argv[3]))
    else:
        post("/v1/state", {"state": sys.argv[2]})
    say("resting")
    block()


def mumble():
    for times in range(1, 1000000):
        post("/v1/activity", {"phase": "working"})
        say("active", times)
        time.sleep(0.5)


def beat():
    for times in range(1, 1000000):
        post("/v1/heartbeat", {"status": "healthy"})
        say("beat", times)
        time.sleep(1)


def announce_more(*_):
    announce_busy(1)
    post("/v1/state", {"state": "parked"})
    say("resting")
    block()


def claim():
    wait = sys.argv[2] if len(sys.argv) > 2 else "9s"
    with connect() as connection, contextlib.suppress(OSError):  # a link may die meanwhile
        request(connection, "POST", "/v1/tasks/claim", json.dumps({"wait": wait}))
        say("claiming")
        connection.recv(4096)
    say("claimed")


def submit(*_):
    say("submitting")
    post("/v1/tasks", {"role": "r2", "payload": "p"})
    say("submitted")


def lines():
    """Of its events; from link to link, unless it does not want to."""
    while True:
        with connect() as stream, contextlib.suppress(OSError):
            request(stream, "GET", "/v1/events")
            yield from stream.makefile()


def listen():
    turn = {"busy": be_busy, "brief": be_brief, "rest": rest, "claim": claim, "mute": mumble}
    pings = 0
    stream = lines()
    for line in stream:
        if line.startswith("data:") and '"id"' in line:
            if pings == 5 and MODE == "late":
                pings += 1
                say("skipped")
                continue
            if MODE == "moody" and 10 <= pings < 12:
                pings += 1
                say("skipped")
                continue
            if (pings == 6 and MODE == "late") or (pings % 2 == 1 and MODE == "moody"):
                say("thinking")
                time.sleep(0.5)
            post("/v1/pong", {"id": json.loads(line[5:])["id"]})
            pings += 1
            say("pong", pings)
        if pings == 3 and MODE in turn:
            pings += 1
            turn[MODE]()
        if pings == 3 and MODE == "deaf":
            break
    stream.close()
    say("deaf")
    time.sleep(1000)


def make_child():
    """Of whoever calls, in a session of its own."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.execlp("sleep", "sleep", "1000")
    return pid


def make_orphan():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, str(make_child()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(read, 16).decode()


def notify(text, note=socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)):
    while True:
        try:
            note.connect(os.environ["NOTIFY_SOCKET"])  # each link has another one
            note.send(text)
            return
        except OSError:  # there is no link for a moment
            time.sleep(0.1)


def give_up(*_):
    notify(b"WATCHDOG=trigger")
    if MODE == "relent":
        signal.sigwait({signal.SIGUSR2})
    else:
        block()


def feed():
    interval = 5 if MODE in ("slow", "own") else int(os.environ["WATCHDOG_USEC"]) / 2e6
    last = {"extend": b"EXTEND_TIMEOUT_USEC=60000000", "stopping": b"STOPPING=1"}
    notify(b"READY=1\nSTATUS=feeding")
    if MODE == "own":
        notify(b"WATCHDOG_USEC=20000000")
    for times in range(1, 1000000):
        notify(b"WATCHDOG=1")
        say("fed", times)
        if times == 3 and MODE in last:
            notify(last[MODE])
            block()
        if times == 3 and MODE == "pause":
            notify(b"EXTEND_TIMEOUT_USEC=8000000")
            say("asked for time")
            time.sleep(7)
        time.sleep(uneven(times) if MODE == "uneven" else interval)


def uneven(times):
    return 6.5 if times == 10 else 0.4 if times % 2 == 1 else 2.6


def idle():
    connection = connect()
    say("idle")
    time.sleep(1000)
    connection.close()


def frame(kind, flags, payload):
    stream = 1 if payload else 0
    return len(payload).to_bytes(3, "big") + bytes([kind, flags, 0, 0, 0, stream]) + payload


def serve():
    server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    status = [1]

    def cease(*_):
        say("ceasing")
        status[0] = 2
        if MODE == "tcp":
            server.close()
            block()

    signal.signal(signal.SIGUSR1, cease)
    say("listening")
    while True:
        connection, _ = server.accept()
        say("asked")
        if MODE == "grpc":
            connection.recv(4096)
            connection.sendall(frame(4, 0, b"") + frame(1, 4, b"\x88")
                               + frame(0, 0, b"\0\0\0\0\2\x08" + bytes(status)))
            connection.recv(4096)
        connection.close()


if MODE == "submit":
    signal.signal(signal.SIGUSR1, submit)
elif MODE == "longer":
    signal.signal(signal.SIGUSR1, announce_more)
elif MODE in ("watchdog", "relent"):
    signal.signal(signal.SIGUSR1, give_up)
else:
    signal.signal(signal.SIGUSR1, spin)
signal.signal(signal.SIGUSR2, block)
if MODE == "relent":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
if MODE == "parent":
    say("family", make_child(), make_orphan())
if MODE in ("watchdog", "relent", "slow", "uneven", "own", "extend", "pause", "stopping"):
    feed()
elif MODE in ("tcp", "grpc"):
    serve()
elif MODE == "idle":
    idle()
elif MODE == "beat":
    beat()
else:
    listen()
