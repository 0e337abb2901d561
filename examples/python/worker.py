#!/usr/bin/env python3
"""A worker that never begins its work twice: an agent of Holdfast in plain Python.

    agentd run --name w1 --role count -- python3 worker.py

Takes tasks of its role, one after the other. A task's payload is the number of steps; each step
adds its number to a sum, and is followed by a checkpoint. When this process dies, its successor
finds the newest checkpoint and goes on behind it. Needs nothing but the standard library.
"""

import http.client
import json
import os
import signal
import socket
import sys
import time

STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))


class Connection(http.client.HTTPConnection):
    """HTTP over the Unix socket that agentd has made for this agent."""

    def __init__(self):
        super().__init__("localhost", timeout=120)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.environ["HOLDFAST_SOCKET"])


def call(method, path, body=None):
    """Returns (status, headers, body). What agentd cannot answer now is asked again."""
    headers = {"Authorization": "Bearer " + os.environ["HOLDFAST_TOKEN"]}
    if isinstance(body, bytes):
        headers["Content-Type"] = "application/octet-stream"
    elif body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    while True:
        try:
            connection = Connection()
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            data = response.read()
            connection.close()
            if response.status != 503:
                return response.status, response.headers, data
        except OSError:
            pass  # agentd is being replaced
        time.sleep(0.2)


def must(answer):
    """The answer's JSON. 409: we are not this agent any more, or the task is not ours."""
    status, _, data = answer
    if status == 409:
        sys.exit("fenced: " + data.decode())
    if status >= 400:
        sys.exit("refused: " + data.decode())
    return json.loads(data) if data else None


def restore(task):
    """What the work has come to, as the newest checkpoint that is whole has it."""
    status, headers, data = call("GET", f"/v1/tasks/{task}/checkpoint")
    if status != 200:
        return {"step": 0, "sum": 0, "lives": []}
    state = json.loads(data)
    print(f"resume {task} behind step {state['step']} "
          f"(checkpoint {headers['X-Holdfast-Seq']})", flush=True)
    return state


def work(task):
    name = task["id"]
    steps = int(task["payload"] or "5")
    must(call("POST", f"/v1/tasks/{name}/start"))
    state = restore(name)
    state["lives"].append(int(os.environ["HOLDFAST_INCARNATION"]))
    while state["step"] < steps:
        time.sleep(STEP_SECONDS)
        state["step"] += 1
        state["sum"] += state["step"]
        must(call("PUT", f"/v1/tasks/{name}/checkpoint", json.dumps(state).encode()))
        must(call("POST", f"/v1/tasks/{name}/progress",
                  {"percent": 100 * state["step"] / steps, "note": f"step {state['step']}"}))
        print(f"{name} step {state['step']}", flush=True)
    must(call("POST", f"/v1/tasks/{name}/complete", {"result": json.dumps(state)}))
    print(f"completed {name}", flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    must(call("POST", "/v1/state", {"state": "ready"}))
    while True:
        # The task that we were started to resume is given to us first.
        status, headers, data = call("POST", "/v1/tasks/claim", {"wait": "30s"})
        if status == 200:
            work(json.loads(data))
        elif status != 204:
            must((status, headers, data))


if __name__ == "__main__":
    main()
