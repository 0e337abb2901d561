"""As talker.c, with examples/python/holdfast.py."""

import os
import signal
import sys

from holdfast import Holdfast, HoldfastError

directory, mode = sys.argv[1:]
agentd = Holdfast()
held = ""  # what it ponders over, and gives back in the end


def say(*words):
    print(*words, flush=True)


def refused(call, *args, **more):
    try:
        call(*args, **more)
    except HoldfastError as error:
        say(error.code, error)
    else:
        sys.exit("it was not refused")


def introduce():
    me = agentd.me()
    same = me.fencing_token == int(os.environ["HOLDFAST_INCARNATION"])
    say("self", me.agent, me.role, "same" if same else "other")
    waiting = agentd.heartbeat(status="healthy", phase='think"ing €', lastTool="grep", tokens=1234,
                               progress=12.5)
    agentd.activity()
    say("waiting", int(waiting.interval > 0), "stop" if waiting.stop else "go on")
    with agentd.busy(600, "the tests"):
        pass
    agentd.state("waiting", 0, "for a person")
    agentd.state("draining")
    agentd.state("parked", 3600, "rate limit")


def be_refused():
    refused(agentd.progress, "t0", 101)
    refused(agentd.start, "T0")
    refused(agentd.task, "t9")
    agentd.submit("other", "x", id="t0")
    task = agentd.submit("other", "y", id="t0")
    say("submitted", task.id, task.payload)
    refused(agentd.complete, "t0", "z")
    refused(agentd.read_nudge, "q0")


def load(id):
    kept = agentd.load(id)
    if kept is None:
        say("nothing kept")
    else:
        say("loaded", kept.seq, kept.decode())


def save_file(id):
    path = os.path.join(directory, "state")
    with open(path, "w") as file:
        file.write("from a file")
    say("saved", agentd.save_file(id, path))
    load(id)


def work():
    task = agentd.claim(30)
    if task is None:
        return
    say("claimed", task.id, task.payload, "attempt", task.attempt)
    agentd.start(task.id)
    load(task.id)
    if task.attempt == 0 and task.payload == "5":
        seq = agentd.save(task.id, b"one")
        agentd.progress(task.id, 20, "step 1")
        agentd.activity()
        say("saved", seq)
    elif task.payload == "fail":
        agentd.fail(task.id, "no use")
    else:
        save_file(task.id)
        agentd.complete(task.id, "done")
        say("completed", task.id)


def ponder():
    global held
    task = None
    while task is None:
        task = agentd.claim(30)
    agentd.start(task.id)
    held = task.id
    say("pondering", held)


def listen():
    for event in agentd.events():
        say("event", event.kind, event.id if event.kind == "task" else "length" if event.seconds > 0
            else "until" if event.until is not None else "")
        if event.kind == "task":
            work()
        if event.kind == "nudge":
            agentd.read_nudge(event.id)
            say("read", event.text)
        if event.kind == "stop":
            if held != "":
                agentd.release(held, "too hard")
                say("released", held)
            return


signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what the events say is to end it
signal.signal(signal.SIGUSR1, agentd.interrupt)
if mode == "talk":
    introduce()
    be_refused()
    work()
    listen()
elif mode == "ponder":
    ponder()
    listen()
elif mode == "leave":
    agentd.leave("enough")
    refused(agentd.claim, 0)
else:
    say("claiming")
    refused(agentd.claim, 300)
agentd.close()
