#!/usr/bin/env python3
"""A worker that never begins its work twice: an agent of Holdfast in plain Python.

    agentd run --name w1 --role count -- python3 worker.py

Takes tasks of its role, one after the other. A task's payload is the number of steps; each step
adds its number to a sum, and is followed by a checkpoint. When this process dies, its successor
finds the newest checkpoint and goes on behind it. Needs the file holdfast.py beside it and nothing
but the standard library.
"""

import json
import os
import signal
import sys
import time

from holdfast import Holdfast, HoldfastError

STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))


def restore(agentd, task):
    """What the work has come to, as the newest checkpoint that is whole has it."""
    kept = agentd.load(task.id)
    if kept is None:
        return {"step": 0, "sum": 0, "lives": []}
    state = json.loads(kept)
    print(f"resume {task.id} behind step {state['step']} (checkpoint {kept.seq})", flush=True)
    return state


def work(agentd, task):
    steps = int(task.payload or "5")
    state = restore(agentd, task)
    state["lives"].append(int(os.environ["HOLDFAST_INCARNATION"]))
    while state["step"] < steps:
        time.sleep(STEP_SECONDS)
        state["step"] += 1
        state["sum"] += state["step"]
        agentd.save(task.id, json.dumps(state).encode())
        agentd.progress(task.id, 100 * state["step"] / steps, f"step {state['step']}")
        print(f"{task.id} step {state['step']}", flush=True)
    agentd.complete(task.id, json.dumps(state))
    print(f"completed {task.id}", flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Holdfast(patience=float("inf")) as agentd:
        agentd.state("ready")
        for task in agentd.tasks():
            work(agentd, task)


if __name__ == "__main__":
    try:
        main()
    except HoldfastError as error:
        sys.exit(f"{error.code}: {error}")
