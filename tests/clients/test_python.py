"""examples/python/holdfast.py beside an agentd that says what a script tells it to."""

import hashlib
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest
from array import array
from contextlib import suppress
from datetime import datetime

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/python"))

import holdfast  # noqa: E402
from holdfast import EventStream, Holdfast, HoldfastError  # noqa: E402

TASK = b'{"id":"t1","role":"r1","state":"pending","payload":"5","attempt":2,"checkpoint":{"seq":"17"}}'
OK = b"HTTP/1.0 200 OK\r\n\r\n"


def refusal(code):
    return b'{"error":{"code":"%s","message":"no","next":"do better"}}' % code


class Agentd:
    """One connection after the other, each with the next answer; the last for all that follow."""

    def __init__(self, *answers):
        self.directory = tempfile.TemporaryDirectory()
        self.path, self.answers, self.asked, self.clients = self.directory.name + "/a1.sock", answers, [], []
        self.takes = 0.0  # seconds before it answers
        self.hangs_up = False  # at once
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                if self.hangs_up:
                    continue
                self.asked.append(self.read(connection))
                answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
                if answer is None:  # it takes the connection, and that is all
                    time.sleep(0.5)
                    continue
                time.sleep(self.takes)
                for i in range(len(answer)):  # so that nothing is whole before its time
                    try:
                        connection.send(answer[i:i + 1])
                    except OSError:
                        break
                if b"X-Holdfast-Alive" in answer:  # and then no sign of life
                    while connection.recv(4096):
                        pass

    @staticmethod
    def read(connection):
        text = b""
        while b"\r\n\r\n" not in text:
            text += connection.recv(4096)
        head, _, body = text.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0)
        while len(body) < length:
            body += connection.recv(4096)
        return head.decode(), body

    def client(self, **how):
        self.clients.append(Holdfast(self.path, "secret", **{"patience": -1, **how}))
        return self.clients[-1]

    def close(self):
        for client in self.clients:
            client.close()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.directory.cleanup()


class Test(unittest.TestCase):
    def agentd(self, *answers):
        agentd = Agentd(*answers)
        self.addCleanup(agentd.close)
        return agentd

    def test_events_are_the_same_in_whatever_pieces_they_come(self):
        for text, events in [
                (b'event: ping\ndata: {"id":"1"}\n\n', [("ping", '{"id":"1"}')]),
                (b"event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r:", [("a", "1"), ("b", "2")]),
                (b": alive\n\nevent: a\n\ndata: one\ndata:two\ndata\n\n", [("", "one\ntwo\n")]),
                (b"\xef\xbb\xbfdata: x\n\nid: 7\nnonsense\ndata:  y\n\n", [("", "x"), ("", " y")]),
                (b"data: cut off\n", [])]:
            for step in range(1, len(text) + 1):
                stream, told = EventStream(), []
                for i in range(0, len(text), step):
                    told += stream.feed(text[i:i + step])
                self.assertEqual(told, events, (text, step))

    def test_an_event_without_end_is_refused(self):
        with self.assertRaises(holdfast.Corrupt):
            list(EventStream().feed(b"data: " + b"x" * (65 << 10)))
        with self.assertRaises(holdfast.Corrupt):
            list(EventStream().feed(b"data: 0123456789\n" * 5000))

    def test_what_is_refused_has_its_code_and_sentence(self):
        for answer, code, text in [
                (b"HTTP/1.0 400 x\r\n\r\n" + refusal(b"invalid"), "EINVAL", "no (do better)"),
                (b"HTTP/1.0 401 x\r\n\r\n" + refusal(b"denied"), "EDENIED", "no (do better)"),
                (b"HTTP/1.0 404 x\r\n\r\n" + refusal(b"not_found"), "ENOENT", "no (do better)"),
                (b"HTTP/1.0 409 x\r\n\r\n" + refusal(b"fenced"), "EFENCED", "no (do better)"),
                (b"HTTP/1.0 409 x\r\n\r\n" + refusal(b"conflict"), "ECONFLICT", "no (do better)"),
                (b"HTTP/1.0 413 x\r\n\r\n" + refusal(b"too_large"), "ELIMIT", "no (do better)"),
                (b"HTTP/1.0 429 x\r\n\r\n" + refusal(b"limit"), "ELIMIT", "no (do better)"),
                (b"HTTP/1.0 500 x\r\n\r\n" + refusal(b"corrupt"), "ECORRUPT", "no (do better)"),
                (b"HTTP/1.0 503 x\r\n\r\n<html>", "EAGAIN", "agentd answered 503"),
                (OK + b"[]", "ECORRUPT", "no object"),
                (OK + b'{"id":"../x"}', "ECORRUPT", "without its id"),
                (OK + b'{"id":"t1","attempt":"x"}', "ECORRUPT", "attempt"),
                # whether the third byte was there to be seen or not
                (b"HTTP/1.0 200 x\r\nContent-Length: 2\r\n\r\n" + TASK, "ECORRUPT", "agentd's answer"),
                (b"HTTP/1.0 200 x\r\nContent-Length: 900\r\n\r\n" + TASK, "EAGAIN", "in the middle"),
                (b"HTTP/1.0 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", "ECORRUPT", "no length"),
                (b"SMTP\r\n\r\n", "ECORRUPT", "HTTP/1"),
                (b"", "EAGAIN", "without an answer")]:
            with self.subTest(answer), self.assertRaises(HoldfastError) as caught:
                self.agentd(answer).client().task("t1")
            self.assertEqual(caught.exception.code, code)
            self.assertIn(text, str(caught.exception))

    def test_what_makes_no_sense_is_not_sent(self):
        agentd = self.agentd(OK + b"{}")
        client = agentd.client()
        for call in [lambda: client.start("T1"), lambda: client.start("a/b"), lambda: client.start(""),
                     lambda: client.start(None), lambda: client.progress("t1", 100.5),
                     lambda: client.progress("t1", float("nan")), lambda: client.state("asleep"),
                     lambda: client.state("busy", -1), lambda: client.claim(-1),
                     lambda: client.submit("R"), lambda: client.submit("r", id="I"),
                     lambda: client.save_file("t1", "state"), lambda: client.save("t1", 5),
                     lambda: client.save("t1", "state"), lambda: client.save("t1", [1, 2]),
                     lambda: client.save("t1", None), lambda: client.heartbeat(phase=b"x")]:
            self.assertRaises(holdfast.Invalid, call)
        self.assertRaises(holdfast.Invalid, Holdfast, agentd.path, "a\r\nb")
        self.assertEqual(agentd.asked, [])

    def test_what_cannot_be_answered_now_is_asked_again(self):
        agentd = self.agentd(b"", b"HTTP/1.0 503 x\r\n\r\n", b"HTTP/1.0 429 x\r\n\r\n",
                             b"HTTP/1.0 201 x\r\n\r\n" + TASK)
        task = agentd.client(patience=20).submit("r1", "5")
        self.assertEqual((task.id, task.attempt, task.checkpoint), ("t1", 2, 17))
        self.assertEqual(len(agentd.asked), 4)
        self.assertEqual(agentd.asked[0], agentd.asked[3])  # with the same id
        with self.assertRaises(holdfast.Unavailable):
            self.agentd(b"HTTP/1.0 503 x\r\n\r\n").client(patience=0.3).start("t1")
        with self.assertRaises(holdfast.Unavailable) as caught:
            self.agentd(None).client(timeout=0.05).start("t1")
        self.assertIn("in time", str(caught.exception))

    def test_a_checkpoint_that_is_not_the_one_that_was_kept_is_none(self):
        head = "HTTP/1.0 200 x\r\nContent-Length: 5\r\nX-Holdfast-Seq: 4\r\nX-Holdfast-Sha256: %s\r\n\r\nstate"
        good = head % hashlib.sha256(b"state").hexdigest()
        client = self.agentd(good.encode(), (head % ("0" * 64)).encode(), OK + b"state",
                             b"HTTP/1.0 404 x\r\n\r\n").client()
        kept = client.load("t1")
        self.assertEqual((kept, kept.seq), (b"state", 4))
        self.assertRaises(holdfast.Corrupt, client.load, "t1")
        self.assertRaises(holdfast.Corrupt, client.load, "t1")
        self.assertIsNone(client.load("t1"))
        small = self.agentd(good.encode()).client(checkpoint_max=4)
        self.assertRaises(holdfast.Limit, small.load, "t1")

    def test_a_checkpoint_may_take_longer_than_anything_else(self):
        kept = b"HTTP/1.0 200 x\r\nX-Holdfast-Seq: 4\r\nX-Holdfast-Sha256: %s\r\nContent-Length: 5\r\n\r\nstate"
        agentd = self.agentd(OK + b"{}", OK + b'{"seq":"9"}', OK + b'{"seq":"10"}',
                             kept % hashlib.sha256(b"state").hexdigest().encode())
        agentd.takes = 0.2
        client = agentd.client(timeout=0.05)
        self.assertRaises(holdfast.Unavailable, client.start, "t1")
        self.assertEqual(client.save("t1", b"state"), 9)
        self.assertEqual(client.save_file("t1", "/state"), 10)
        self.assertEqual(client.load("t1"), b"state")
        self.assertEqual(len(agentd.asked), 4)

    def test_a_save_takes_whatever_has_bytes(self):
        agentd = self.agentd(OK + b'{"seq":"9"}')
        for data in [b"state", bytearray(b"state"), memoryview(b"state"), memoryview(b"-s-t-a-t-e")[1::2]]:
            self.assertEqual(agentd.client().save("t1", data), 9)
        self.assertEqual(agentd.client().save("t1", array("d", [1.5])), 9)
        self.assertEqual([body for _, body in agentd.asked], 4 * [b"state"] + [struct.pack("=d", 1.5)])

    def test_who_does_not_take_connections_is_not_waited_for_for_ever(self):
        full, waiting = socket.socket(socket.AF_UNIX), []
        with tempfile.TemporaryDirectory() as directory, full:
            full.bind(directory + "/a1.sock")
            full.listen(0)
            for _ in range(2):  # more than its queue has room for
                waiting.append(socket.socket(socket.AF_UNIX))
                self.addCleanup(waiting[-1].close)
                waiting[-1].setblocking(False)
                with suppress(BlockingIOError):
                    waiting[-1].connect(directory + "/a1.sock")
            client = Holdfast(directory + "/a1.sock", "secret", timeout=0.05, patience=-1)
            self.addCleanup(client.close)
            asker = threading.Thread(
                target=lambda: self.assertRaises(holdfast.Unavailable, client.start, "t1"), daemon=True)
            asker.start()
            asker.join(10)
            self.assertFalse(asker.is_alive())

    def test_a_long_save_that_loses_its_link_is_repeated(self):
        agentd = self.agentd(b"", OK + b'{"seq":"9"}')
        agentd.takes = 0.4  # longer than all its patience
        self.assertEqual(agentd.client(timeout=0.05, patience=0.3).save("t1", b"state"), 9)
        self.assertEqual(len(agentd.asked), 2)

    def test_who_is_busy_says_until_when_and_then_is_ready(self):
        agentd = self.agentd(OK + b"{}")
        client = agentd.client()
        before = time.time()
        with client.busy(90, "compiles"):
            self.assertEqual(len(agentd.asked), 1)
        said = [json.loads(body) for _, body in agentd.asked]
        self.assertEqual([(one["state"], one["reason"]) for one in said], [("busy", "compiles"), ("ready", "")])
        until = datetime.fromisoformat(said[0]["until"].replace("Z", "+00:00")).timestamp()
        self.assertTrue(before + 89.9 < until < before + 150, until)
        with self.assertRaises(KeyError), client.busy(90):
            raise KeyError("in there")
        self.assertIn(b'"ready"', agentd.asked[3][1])
        with self.assertRaises(holdfast.Invalid), client.busy(0):
            self.fail("it has no end")
        self.assertEqual(len(agentd.asked), 4)
        away = self.agentd(OK + b"{}", b"HTTP/1.0 503 x\r\n\r\n").client()
        with self.assertRaises(KeyError), away.busy(90):  # which is what the author has to know
            raise KeyError("in there")

    def test_events_are_told_and_pings_answered(self):
        agentd = self.agentd(
            OK + b'event: ping\ndata: {"id":"3"}\n\nevent: unheard_of\ndata: -\n\n'
                 b'event: stop\ndata: {"grace":"5s"}\n\n',
            b"HTTP/1.0 204 x\r\n\r\n",
            OK + b'event: thawed\ndata: {"frozenFor":"1.250s"}\n\n'
                 b'event: jeopardy\ndata: {"until":"2026-01-31T08:15:30.250Z"}\n\n'
                 b'event: task\ndata: {}\n\n')
        client = agentd.client()
        self.assertEqual([client.next_event(5).kind for _ in range(2)], ["ping", "stop"])
        self.assertIn("POST /v1/pong ", agentd.asked[1][0])
        self.assertEqual(agentd.asked[1][1], b'{"id": "3"}')
        self.assertEqual(client.next_event(5).seconds, 1.25)  # of another connection: the first one ended
        self.assertEqual(client.next_event(5).until.timestamp(), 1769847330.25)
        self.assertRaises(holdfast.Corrupt, client.next_event, 5)
        self.assertIsNone(self.agentd(b"HTTP/1.0 503 x\r\n\r\n").client().next_event(0.3))
        self.assertRaises(holdfast.Denied, self.agentd(b"HTTP/1.0 401 x\r\n\r\n").client().next_event, 5)

    def test_a_stream_that_shows_no_sign_of_life_is_begun_anew(self):
        agentd = self.agentd(b"HTTP/1.0 200 OK\r\nX-Holdfast-Alive: 50\r\n\r\n: alive\n\n",
                             OK + b'event: task\ndata: {"id":"t1"}\n\n')
        self.assertEqual(agentd.client().next_event(30).id, "t1")

    def test_an_interruption_ends_what_waits_and_nothing_else(self):
        agentd = self.agentd(None, OK + b"{}")
        client = agentd.client(patience=60)
        threading.Timer(0.1, client.interrupt).start()
        self.assertRaises(holdfast.Interrupted, client.claim, 300)
        self.assertEqual(list(client.events()), [])
        self.assertEqual(list(client.tasks()), [])
        client.complete("t1")
        client.close()
        client.close()

    def test_who_interrupts_a_child_does_not_interrupt_its_parent(self):
        client = self.agentd(b"HTTP/1.0 204 x\r\n\r\n").client()
        child = os.fork()
        if child == 0:  # with its parent's handlers for signals, and what they write to
            with suppress(BaseException):
                client.interrupt()
                client.interrupt()
                with suppress(holdfast.Interrupted):
                    client.next_event(5)
                    os._exit(1)
                os._exit(0)
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertIsNone(client.claim(300))
        client.interrupt()
        self.assertRaises(holdfast.Interrupted, client.next_event, 5)

    def test_an_agentd_that_hangs_up_kills_nobody(self):
        agentd = self.agentd(b"")
        agentd.hangs_up = True
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as who writes to pipes likes to have it
            with suppress(BaseException):
                with suppress(holdfast.Unavailable):
                    agentd.client().save("t1", bytes(4 << 20))
                    os._exit(1)
                os._exit(0)
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()
