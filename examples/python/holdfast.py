"""What an agent says to the agentd beside it, and hears from it. One file; Python 3.9 and nothing else.

    from holdfast import Holdfast

    with Holdfast() as agentd:
        for task in agentd.tasks():
            done = int(agentd.load(task.id) or b"0")     # what the predecessor kept, if there was one
            agentd.save(task.id, str(done + 1).encode())
            agentd.complete(task.id, "done")

Calls block until agentd has answered, which for what becomes of a task and for checkpoints means:
until etcd has it. One that agentd cannot answer now, because it is being replaced or etcd is away, is
repeated for `patience` seconds. Whatever goes wrong is a HoldfastError with one of the codes below and
a sentence; Fenced is the one to obey: stop, and touch nothing.

Threads: any number may call at once, but for next_event, events and tasks, each of which is for one at
a time. Every call has a connection of its own. Under asyncio, call it in asyncio.to_thread. A process that
was forked may ask, too, and interrupts itself alone; events are for one of both.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import select
import socket
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Container, Iterator, Mapping, Optional, Tuple, Union

__all__ = ["Holdfast", "HoldfastError", "Fenced", "Conflict", "Invalid", "NotFound", "Denied", "Limit",
           "Unavailable", "Interrupted", "Corrupt", "Task", "Checkpoint", "Event", "Waiting", "Self"]

STATES = ("ready", "busy", "waiting", "parked", "draining")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,252}")
PAUSE, PAUSE_LONG = 0.2, 1.0  # before something is asked again; when that was too often
ALIVE, MISSED = 15.0, 3  # between signs of life of a stream, unless agentd says; those that make it dead
HEAD_MAX, EVENT_MAX, WAIT_MAX = 16 << 10, 64 << 10, 300.0
# agentd says nothing before all of a checkpoint is stored, or fetched: with a bucket that takes minutes.
CHECKPOINT = 900.0


class HoldfastError(Exception):
    """`code` is the word of Holdfast's vocabulary; `message` the sentence; `next` what to do about it."""

    code = "EIO"

    def __init__(self, message: str, next: str = ""):
        super().__init__(f"{message} ({next})" if next else message)
        self.message, self.next = message, next


class Fenced(HoldfastError):
    """This process is not that agent any more: stop, touch nothing."""
    code = "EFENCED"


class Conflict(HoldfastError):
    """The task is not ours, or not in a state for that: leave it alone."""
    code = "ECONFLICT"


class Invalid(HoldfastError):
    """The request makes no sense; nothing was sent, or agentd said so."""
    code = "EINVAL"


class NotFound(HoldfastError):
    """There is no such thing."""
    code = "ENOENT"


class Denied(HoldfastError):
    """Another user, or a token of no process that runs."""
    code = "EDENIED"


class Limit(HoldfastError):
    """Too large, or too much at once for longer than we were patient."""
    code = "ELIMIT"


class Unavailable(HoldfastError):
    """agentd or etcd was away for longer than we were patient: nothing was changed, or it is not known."""
    code = "EAGAIN"


class Interrupted(HoldfastError):
    """interrupt() was called."""
    code = "ECANCELED"


class Corrupt(HoldfastError):
    """agentd's answer, or what it has stored, cannot be understood."""
    code = "ECORRUPT"


@dataclass(frozen=True)
class Task:
    id: str
    role: str
    state: str
    payload: str = ""
    result: str = ""
    reason: str = ""
    attempt: int = 0
    priority: int = 0
    checkpoint: int = 0  # the number of the newest; 0: there is none
    record: Mapping[str, Any] = field(default_factory=dict, repr=False)  # whole, for what is not here


class Checkpoint(bytes):
    """The bytes of a checkpoint, with its number and digest."""
    seq: int
    sha256: str


@dataclass(frozen=True)
class Event:
    """`kind` is ping (already answered), task, jeopardy, thawed, nudge or stop."""
    kind: str
    id: str = ""  # of a ping, task or nudge
    text: str = ""  # of a nudge
    seconds: float = 0.0  # thawed: stood still for so long; stop: end within that time
    until: Optional[datetime] = None  # jeopardy: from then on this process stands still


@dataclass(frozen=True)
class Waiting:
    """What waits for the agent, as the answer to a heartbeat says."""
    interval: float  # seconds until the next heartbeat is due
    nudges: int
    tasks: int
    stop: bool


@dataclass(frozen=True)
class Self:
    agent: str
    role: str
    task: str  # "" when it has none
    fencing_token: int  # grows from life to life
    ttl: float
    jeopardy: bool  # nothing new may begin


class EventStream:
    """Server-sent events, out of bytes that come in any pieces."""

    def __init__(self) -> None:
        self._rest, self._name, self._data = b"", "", []
        self._size, self._is_first = 0, True

    def feed(self, data: bytes) -> Iterator[Tuple[str, str]]:
        """Yields (name, data) of each event that is complete now."""
        self._rest += data
        while True:
            # A carriage return at the very end may be half of an end of a line.
            line = re.match(rb"([^\r\n]*)(\r\n|\n|\r(?!\Z))", self._rest)
            if line is None:
                break
            self._rest = self._rest[line.end():]
            yield from self._take(line.group(1))
        if len(self._rest) > EVENT_MAX:
            raise Corrupt("an event of agentd is too long")

    def _take(self, line: bytes) -> Iterator[Tuple[str, str]]:
        if self._is_first:
            self._is_first, line = False, line[3:] if line.startswith(b"\xef\xbb\xbf") else line
        if not line:
            if self._data:
                yield self._name, "\n".join(self._data)
            self._name, self._data, self._size = "", [], 0
            return
        self._size += len(line)
        if self._size > EVENT_MAX:
            raise Corrupt("an event of agentd is too long")
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        try:
            if name == b"event":
                self._name = value.decode()
            elif name == b"data":
                self._data.append(value.decode())
        except UnicodeDecodeError:
            raise Corrupt("an event of agentd is not UTF-8") from None


class Holdfast:
    """`socket` and `token` are what agentd has put into the environment, unless given."""

    def __init__(self, socket: Optional[str] = None, token: Optional[str] = None, *, timeout: float = 30.0,
                 patience: float = 60.0, checkpoint_max: int = 64 << 20, pongs_by_hand: bool = False):
        self._socket = socket if socket is not None else _environment("HOLDFAST_SOCKET")
        self._token = token if token is not None else _environment("HOLDFAST_TOKEN")
        if not re.fullmatch(r"[!-~]{1,256}", self._token):
            raise Invalid("HOLDFAST_TOKEN: 1 to 256 visible ASCII characters")
        self._timeout, self._patience = timeout, patience
        self._checkpoint_max, self._pongs_by_hand = checkpoint_max, pongs_by_hand
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._owner = os.getpid()
        self._stream: Optional[_Connection] = None
        self._events, self._told, self._again, self._heard = EventStream(), [], 0.0, 0.0
        self._silence = MISSED * ALIVE

    def __enter__(self) -> "Holdfast":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes what is open. To agentd this says nothing: see leave."""
        self._hang_up(0)
        for name in ("_wake", "_waker"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)

    def interrupt(self, *_: Any) -> None:
        """Ends every wait, now and from now on: claim and next_event raise Interrupted, tasks and events
        end, and calls are not repeated any more. Made to be a signal handler, too."""
        try:
            if os.getpid() != self._owner:  # a child shares it with its parent, for which this is not meant
                pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                for own, shared in zip(pipe, (self._wake, self._waker)):
                    os.dup2(own, shared, inheritable=False)
                    os.close(own)
            os.write(self._waker, b"!")
        except OSError:
            pass  # it is there already

    # How the agent is.

    def me(self) -> Self:
        """Who this is."""
        got = self._json("GET", "/v1/self")
        return Self(_text(got, "agent"), _text(got, "role"), _text(got, "task"), _int(got, "fencingToken"),
                    _seconds(got, "ttl"), got.get("jeopardy") is True)

    def heartbeat(self, **report: Union[str, int, float]) -> Waiting:
        """Says that the agent lives; from where it would notice that it hangs. Any of status (healthy, busy,
        degraded), phase, lastTool, task, tokens, errors, sequence and progress (percent) may be said."""
        return self._beat("/v1/heartbeat", report)

    def activity(self, **report: Union[str, int, float]) -> Waiting:
        """The same, saying that it does something, even when that reads as before."""
        return self._beat("/v1/activity", report)

    @contextmanager
    def busy(self, seconds: float, reason: str = "") -> Iterator[None]:
        """For something long in which events are not taken and nothing is asked: for so many seconds no ping
        has to be answered. It is ready again at the end.

            with agentd.busy(120, "compiles"):
                subprocess.run(["make"], check=True)
        """
        if not seconds > 0:
            raise Invalid("for how long it is busy has to be said")
        self.state("busy", seconds, reason)
        try:
            yield
        except BaseException:
            with suppress(HoldfastError):  # what went wrong in there is what counts
                self.state("ready")
            raise
        self.state("ready")

    def state(self, state: str, seconds: float = 0, reason: str = "") -> None:
        """Announces ready, busy, waiting (for a person), parked (on a rate limit) or draining, for so many
        seconds; 0: its end is not known, and agentd sets one."""
        if state not in STATES:
            raise Invalid("state: one of " + ", ".join(STATES))
        if not 0 <= seconds <= 10 * 365 * 86400:
            raise Invalid("a state may last for 0 to ten years")
        body = {"state": state, "reason": reason}
        if seconds > 0:
            until = datetime.now(timezone.utc) + timedelta(seconds=seconds)
            body["until"] = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._json("POST", "/v1/state", body)

    def read_nudge(self, id: str) -> None:
        """Says that this agent has read a nudge, by the id of its event. That is no answer:
        progress, a state or an activity is."""
        self._json("POST", f"/v1/nudges/{_name(id)}/read", {})

    def leave(self, reason: str = "") -> None:
        """Says goodbye, so that the end of this process is no crash; it has 30 s to go."""
        self._json("POST", "/v1/leave", {"reason": reason})

    # Tasks.

    def tasks(self, wait: float = 30.0) -> Iterator[Task]:
        """Every task that this agent gets, started, until it is interrupted."""
        while True:
            try:
                task = self.claim(wait)
            except Interrupted:
                return
            if task is None:
                continue
            try:
                started = self.start(task.id)
            except Conflict:
                continue  # it was taken away in this very moment
            # A payload that is too long for the record is shown by the claim alone.
            yield replace(started, payload=task.payload)

    def claim(self, wait: float = 30.0) -> Optional[Task]:
        """Takes a task: the one that this agent already has, the one that it was started to resume, or one
        of its role, for which it waits so many seconds. None: there is none."""
        if not wait >= 0:
            raise Invalid("wait: not below 0")
        wait = min(wait, WAIT_MAX)
        got = self._json("POST", "/v1/tasks/claim", {"wait": f"{wait:.3f}s"}, extra=wait, waits=True)
        return _task(got) if got else None

    def submit(self, role: str, payload: str = "", *, id: Optional[str] = None, priority: int = 0,
               labels: Optional[Mapping[str, str]] = None) -> Task:
        """A new task, or the one that has this id already. The id is made up here, unless given, so that
        what has to be asked twice is still one task."""
        return _task(self._json("POST", "/v1/tasks", {
            "id": _name(id if id is not None else uuid.uuid4().hex), "role": _name(role), "payload": payload,
            "priority": priority, "labels": dict(labels or {})}))

    def task(self, id: str) -> Task:
        return _task(self._json("GET", f"/v1/tasks/{_name(id)}"))

    def start(self, id: str) -> Task:
        return _task(self._json("POST", f"/v1/tasks/{_name(id)}/start"))

    def progress(self, id: str, percent: float, note: str = "") -> None:
        if not 0 <= percent <= 100:
            raise Invalid("percent: 0 to 100")
        self._json("POST", f"/v1/tasks/{_name(id)}/progress", {"percent": percent, "note": note})

    def complete(self, id: str, result: str = "") -> None:
        self._json("POST", f"/v1/tasks/{_name(id)}/complete", {"result": result})

    def fail(self, id: str, reason: str = "") -> None:
        self._json("POST", f"/v1/tasks/{_name(id)}/fail", {"reason": reason})

    def release(self, id: str, reason: str = "") -> None:
        """Back to whoever wants it."""
        self._json("POST", f"/v1/tasks/{_name(id)}/release", {"reason": reason})

    # Checkpoints.

    def save(self, id: str, data: Union[bytes, bytearray, memoryview]) -> int:
        """Keeps what the work has come to, and returns its number."""
        try:
            body = bytes(memoryview(data))  # of a number bytes would make that many zeroes
        except TypeError as error:
            raise Invalid(f"data: {error}") from None
        return _int(self._json("PUT", f"/v1/tasks/{_name(id)}/checkpoint", body,
                               extra=CHECKPOINT), "seq")

    def save_file(self, id: str, path: str) -> int:
        """The same from a file that agentd reads itself: an absolute path without symbolic links."""
        if not os.path.isabs(path):
            raise Invalid("path: from the root on, since agentd is elsewhere")
        return _int(self._json("PUT", f"/v1/tasks/{_name(id)}/checkpoint", {"path": path},
                               extra=CHECKPOINT), "seq")

    def load(self, id: str) -> Optional[Checkpoint]:
        """The newest that is whole (agentd has compared it with its SHA-256, and so do we) and has killed no
        successor. None: begin at the beginning."""
        try:
            _, headers, data = self._ask("GET", f"/v1/tasks/{_name(id)}/checkpoint", extra=CHECKPOINT,
                                         limit=self._checkpoint_max)
        except NotFound:
            return None
        checkpoint = Checkpoint(data)
        try:
            checkpoint.seq, checkpoint.sha256 = int(headers["x-holdfast-seq"]), headers["x-holdfast-sha256"]
        except (KeyError, ValueError):
            raise Corrupt("agentd's answer: a checkpoint without number or digest") from None
        if hashlib.sha256(data).hexdigest() != checkpoint.sha256:
            raise Corrupt("the checkpoint is not the one that was kept: its digest is another one")
        return checkpoint

    # What the agent is told.

    def events(self) -> Iterator[Event]:
        """Every event, until it is interrupted."""
        while True:
            try:
                event = self.next_event()
            except Interrupted:
                return
            if event is not None:
                yield event

    def next_event(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event; None when none came in so many seconds. Whoever has called it is pinged from then
        on, every few seconds, and answers by calling it again: one that neither does, nor asks anything, nor
        has said that it is busy, is taken for frozen. A connection that is lost is made anew, which may take
        longer when agentd hangs."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._is_interrupted():
                raise Interrupted("interrupted")
            while self._told:
                event = _event(*self._told.pop(0))
                if event is not None and event.kind == "ping" and not self._pongs_by_hand:
                    self._answer(event.id)
                if event is not None:
                    return event
            if not self._listen(deadline) and deadline is not None and time.monotonic() >= deadline:
                return None

    def pong(self, id: str) -> None:
        """Answers a ping by hand."""
        # One that comes too late is none: nobody tries for long.
        self._json("POST", "/v1/pong", {"id": id}, once=True, extra=min(0.0, 2.0 - self._timeout))

    def _answer(self, id: str) -> None:
        try:
            self.pong(id)
        except HoldfastError:
            pass  # one that was lost is asked for anew

    def _hang_up(self, pause: float) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream, self._events, self._told = None, EventStream(), []
        self._again = time.monotonic() + pause

    def _listen(self, deadline: Optional[float]) -> bool:
        """Waits for something to come of the stream; true when something did."""
        if self._stream is None:
            pause = self._again - time.monotonic()
            if pause > 0:
                self._sleep(_until(deadline, pause))
                return False
            return self._connect()
        data = self._stream.receive(_until(deadline, self._heard + self._silence - time.monotonic()))
        if data:
            self._heard = time.monotonic()
            try:
                self._told += self._events.feed(data)
            except Corrupt:
                self._hang_up(PAUSE)
                raise
        elif data is not None or time.monotonic() >= self._heard + self._silence:
            self._hang_up(PAUSE)
        return bool(data)

    def _connect(self) -> bool:
        try:
            self._stream = _Connection(self._socket, self._wake, time.monotonic() + self._timeout, True)
            self._stream.send(_head("GET", "/v1/events", self._token))
            status, headers, rest = self._stream.head()
            if status != 200:
                raise _refusal(status, rest + self._stream.rest(HEAD_MAX))
            alive = re.fullmatch(r"[1-9]\d{0,6}", headers.get("x-holdfast-alive", ""))
            self._silence = MISSED * (int(alive.group()) / 1000 if alive else ALIVE)
            self._heard = time.monotonic()
            self._told += self._events.feed(rest)
            return True
        except (Unavailable, Limit, OSError):
            self._hang_up(PAUSE)
        except HoldfastError:
            self._hang_up(5.0)
            raise
        return False

    # Requests.

    def _is_interrupted(self) -> bool:
        return bool(_poll({self._wake: select.POLLIN}, 0))

    def _sleep(self, seconds: float) -> bool:
        """False: it was interrupted."""
        return not _poll({self._wake: select.POLLIN}, seconds)

    def _beat(self, path: str, report: Mapping[str, Any]) -> Waiting:
        got = self._json("POST", path, dict(report))
        waiting = got.get("waiting") or {}
        return Waiting(_seconds(got, "interval"), _int(waiting, "nudges"), _int(waiting, "tasks"),
                       waiting.get("stop") is True)

    def _json(self, method: str, path: str, body: Union[bytes, Mapping[str, Any], None] = None,
              **how: Any) -> Mapping[str, Any]:
        _, _, data = self._ask(method, path, body, **how)
        if not data:
            return {}
        try:
            got = json.loads(data)
        except ValueError as error:
            raise Corrupt(f"agentd's answer: {error}") from None
        if not isinstance(got, dict):
            raise Corrupt("agentd's answer is no object")
        return got

    def _ask(self, method: str, path: str, body: Union[bytes, Mapping[str, Any], None] = None, *,
             extra: float = 0.0, waits: bool = False, once: bool = False, limit: int = 8 << 20
             ) -> Tuple[int, Mapping[str, str], bytes]:
        """Asks until there is an answer or patience ends."""
        is_bytes = isinstance(body, bytes)
        try:
            data = body if is_bytes or body is None else json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise Invalid(str(error)) from None
        kind = "application/octet-stream" if is_bytes else "application/json"
        head = _head(method, path, self._token, kind if data is not None else "", len(data or b""))
        spent = 0.0
        while True:
            began, pause = time.monotonic(), PAUSE
            try:
                return self._try(head + (data or b""), extra, waits, limit)
            except Unavailable as error:
                failure: HoldfastError = error
            except Limit as error:
                if not getattr(error, "is_too_often", False):
                    raise
                failure, pause = error, PAUSE_LONG
            # What a freeze of this process has added is not charged, nor what this may take beyond the
            # ordinary: whoever thaws, or loses the link in the middle of a long one, is patient still.
            spent += min(time.monotonic() - began, self._timeout) + pause
            if once or spent > self._patience or not self._sleep(pause):
                raise failure

    def _try(self, request: bytes, extra: float, waits: bool, limit: int
             ) -> Tuple[int, Mapping[str, str], bytes]:
        deadline = time.monotonic() + self._timeout + extra
        try:
            with _Connection(self._socket, self._wake, deadline, waits) as connection:
                connection.send(request)
                status, headers, rest = connection.head()
                length = int(headers["content-length"]) if "content-length" in headers else None
                body = rest if status == 204 else rest + connection.rest(limit, length, len(rest))
        except PermissionError as error:
            raise Denied(f"{self._socket}: {error.strerror}") from None
        except OSError as error:
            raise Unavailable(f"{self._socket}: {error.strerror or error}") from None
        if not 200 <= status < 300:
            raise _refusal(status, body)
        return status, headers, body


class _Connection:
    """One HTTP/1.0 exchange over the Unix socket that agentd has made for this agent."""

    def __init__(self, path: str, wake: int, deadline: float, waits: bool):
        self._wake, self._deadline, self._waits = wake, deadline, waits
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._sock.setblocking(False)  # else it waits where nobody takes connections from the queue
            self._sock.connect(path)
        except BaseException:
            self._sock.close()
            raise

    def __enter__(self) -> "_Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._sock.close()

    def _wait(self, reads: bool) -> None:
        watched = {self._sock.fileno(): select.POLLIN if reads else select.POLLOUT}
        if self._waits:
            watched[self._wake] = select.POLLIN
        ready = _poll(watched, self._deadline - time.monotonic())
        if self._wake in ready:
            raise Interrupted("interrupted")
        if not ready:
            raise Unavailable("agentd did not answer in time")

    def send(self, data: bytes) -> None:
        """Whoever refuses a body may answer before it has all of it and hang up: the answer counts."""
        view = memoryview(data)
        while view:
            try:
                view = view[self._sock.send(view, socket.MSG_NOSIGNAL):]
            except BlockingIOError:
                self._wait(False)
            except OSError:
                return

    def receive(self, seconds: Optional[float] = None) -> Optional[bytes]:
        """What comes next, b"" at the end. With a time: None when nothing came in it."""
        if seconds is not None:
            _poll({self._sock.fileno(): select.POLLIN, self._wake: select.POLLIN}, seconds)
        while True:
            try:
                return self._sock.recv(64 << 10)
            except BlockingIOError:
                if seconds is not None:
                    return None
                self._wait(True)
            except ConnectionError:
                return b""

    def head(self) -> Tuple[int, Mapping[str, str], bytes]:
        """Status, headers (in lower case), and what came behind them."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.receive()
            if not piece:
                raise Unavailable("agentd closed the connection without an answer")
            data += piece
            if len(data) > HEAD_MAX and b"\r\n\r\n" not in data[:HEAD_MAX]:
                raise Corrupt("the head of agentd's answer is too long")
        text, _, rest = data.partition(b"\r\n\r\n")
        first, *lines = text.decode("latin-1").split("\r\n")
        status = re.fullmatch(r"HTTP/1\.\d ([1-5]\d\d)(?: .*)?", first)
        pairs = [re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*", line) for line in lines]
        if status is None or None in pairs:
            raise Corrupt("agentd's answer is not HTTP/1")
        headers = {pair.group(1).lower(): pair.group(2) for pair in pairs if pair is not None}
        if "transfer-encoding" in headers or not re.fullmatch(r"\d{1,18}", headers.get("content-length", "0")):
            raise Corrupt("agentd's answer has no length that makes sense")
        return int(status.group(1)), headers, rest

    def rest(self, limit: int, length: Optional[int] = None, got: int = 0) -> bytes:
        """The body, of which so many bytes have come already."""
        parts = []
        while max(got, length or 0) <= limit and (length is None or got < length):
            piece = self.receive()
            if not piece and length is not None:
                raise Unavailable("agentd closed the connection in the middle of its answer")
            if not piece:
                break
            parts.append(piece)
            got += len(piece)
        if max(got, length or 0) > limit:
            raise Limit("agentd's answer is longer than what was allowed for")
        if length is not None and got > length:
            raise Corrupt("agentd's answer is longer than it says")
        return b"".join(parts)


def _poll(watched: Mapping[int, int], seconds: float) -> Container[int]:
    """Which of the descriptors are ready, after so many seconds at most."""
    poll = select.poll()  # select itself knows no descriptors above 1023
    for fd, events in watched.items():
        poll.register(fd, events)
    return {fd for fd, _ in poll.poll(max(0, math.ceil(min(seconds, 1e6) * 1000)))}


def _head(method: str, path: str, token: str, kind: str = "", length: int = 0) -> bytes:
    lines = [f"{method} {path} HTTP/1.0", "Host: agentd", f"Authorization: Bearer {token}"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"Content-Length: {length}"] if method != "GET" else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _refusal(status: int, body: bytes) -> HoldfastError:
    """What an answer that is not 2xx means."""
    try:
        error = json.loads(body)["error"]
        code, message, next = (str(error.get(name, "")) for name in ("code", "message", "next"))
    except (ValueError, TypeError, KeyError, AttributeError):
        code, message, next = "", f"agentd answered {status}", ""
    kinds = {401: Denied, 404: NotFound, 409: Fenced if code == "fenced" else Conflict, 413: Limit,
             429: Limit, 503: Unavailable}
    failure = kinds.get(status, Invalid if 400 <= status < 500 else Corrupt)(message, next)
    failure.is_too_often = status == 429  # type: ignore[attr-defined]
    return failure


def _environment(name: str) -> str:
    if not os.environ.get(name):
        raise NotFound(f"{name} is not set: agentd sets it for the agents that it starts")
    return os.environ[name]


def _name(text: Any) -> str:
    if not isinstance(text, str) or not NAME.fullmatch(text):
        raise Invalid(f"{text!r} is no name: a-z, 0-9, '.', '_' and '-', at most 253 characters")
    return text


def _until(deadline: Optional[float], seconds: float) -> float:
    return seconds if deadline is None else min(seconds, deadline - time.monotonic())


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise Corrupt(f"agentd's answer: {name} is no text")
    return value or ""


def _int(record: Mapping[str, Any], name: str) -> int:
    try:
        return int(record.get(name) or 0)  # 64-bit integers are strings in JSON
    except (TypeError, ValueError):
        raise Corrupt(f"agentd's answer: {name} is no integer") from None


def _seconds(record: Mapping[str, Any], name: str) -> float:
    text = _text(record, name)
    if text and not re.fullmatch(r"-?\d+(\.\d+)?s", text):
        raise Corrupt(f"agentd's answer: {name} is no duration")
    return float(text[:-1]) if text else 0.0


def _task(record: Mapping[str, Any]) -> Task:
    checkpoint = record.get("checkpoint")
    if not NAME.fullmatch(_text(record, "id")):
        raise Corrupt("agentd's answer: a task without its id")
    return Task(record["id"], _text(record, "role"), _text(record, "state"), _text(record, "payload"),
                _text(record, "result"), _text(record, "reason"), _int(record, "attempt"),
                _int(record, "priority"), _int(checkpoint, "seq") if isinstance(checkpoint, dict) else 0,
                record)


def _event(name: str, data: str) -> Optional[Event]:
    """None: one that this version does not know."""
    if name not in ("ping", "task", "jeopardy", "thawed", "nudge", "stop"):
        return None
    try:
        got = json.loads(data)
        until = datetime.fromisoformat(got["until"].replace("Z", "+00:00")) if "until" in got else None
    except (ValueError, TypeError, AttributeError):
        raise Corrupt(f"agentd's event {name} makes no sense") from None
    if not isinstance(got, dict) or (name in ("ping", "task", "nudge") and not got.get("id")):
        raise Corrupt(f"agentd's event {name} makes no sense")
    return Event(name, _text(got, "id"), _text(got, "text"),
                 _seconds(got, "grace" if name == "stop" else "frozenFor"), until)
