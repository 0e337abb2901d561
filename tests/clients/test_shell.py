"""examples/shell/worker.sh beside an agentd that says what a script tells it to."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True

from test_python import OK, TASK, Agentd, refusal  # noqa: E402

WORKER = os.path.join(os.path.dirname(__file__), "../../examples/shell/worker.sh")


class Test(unittest.TestCase):
    def work(self, *answers):
        """Until it is refused something. What it asked for, and the end of its process."""
        agentd = Agentd(OK + TASK, OK + TASK, *answers)
        self.addCleanup(agentd.close)
        environment = {**os.environ, "HOLDFAST_SOCKET": agentd.path, "HOLDFAST_TOKEN": "secret",
                       "STEP_SECONDS": "0"}
        end = subprocess.run(["sh", WORKER], env=environment, capture_output=True, text=True, timeout=120)
        return [head.partition(" HTTP/")[0] for head, _ in agentd.asked], agentd.asked[-1][1], end

    def test_a_task_without_checkpoint_is_begun_at_its_beginning(self):
        asked, body, end = self.work(b"HTTP/1.0 404 x\r\n\r\n" + refusal(b"not_found"),
                                     b"HTTP/1.0 409 x\r\n\r\n" + refusal(b"conflict"))
        self.assertEqual((asked[-1], body, end.returncode), ("PUT /v1/tasks/t1/checkpoint", b"1", 1))

    def test_one_whose_checkpoint_is_refused_is_not_begun(self):
        for answer in [b"HTTP/1.0 409 x\r\n\r\n" + refusal(b"fenced"),
                       b"HTTP/1.0 413 x\r\n\r\n" + refusal(b"too_large"),
                       b"HTTP/1.0 500 x\r\n\r\n" + refusal(b"corrupt")]:
            asked, _, end = self.work(answer)
            self.assertEqual((asked[-1], len(asked)), ("GET /v1/tasks/t1/checkpoint", 3))
            self.assertEqual(end.returncode, 1)
            self.assertIn('refused: {"error":', end.stderr)

    def test_half_a_checkpoint_is_asked_for_again(self):
        asked, body, _ = self.work(b"HTTP/1.0 200 x\r\nContent-Length: 2\r\n\r\n1",
                                   b"HTTP/1.0 200 x\r\nContent-Length: 1\r\n\r\n0",
                                   b"HTTP/1.0 409 x\r\n\r\n" + refusal(b"conflict"))
        self.assertEqual(asked[2:4], ["GET /v1/tasks/t1/checkpoint"] * 2)
        self.assertEqual((asked[-1], body), ("PUT /v1/tasks/t1/checkpoint", b"1"))

    def test_a_checkpoint_that_is_no_number_is_not_gone_on_from(self):
        for what in [b"", b"x", b"1 2", b"-1"]:
            asked, _, end = self.work(b"HTTP/1.0 200 x\r\nContent-Length: %d\r\n\r\n" % len(what) + what)
            self.assertEqual((len(asked), end.returncode), (3, 1))
            self.assertIn("no number", end.stderr)

    def test_who_looks_at_the_processes_does_not_see_the_token(self):
        with tempfile.TemporaryDirectory() as place:
            curl = os.path.join(place, "curl")
            with open(curl, "w", encoding="ascii") as file:
                file.write('#!/bin/sh\necho "$@" >>%s/seen\nexec %s "$@"\n' % (place, shutil.which("curl")))
            os.chmod(curl, 0o700)
            with unittest.mock.patch.dict(os.environ, PATH=place + ":" + os.environ["PATH"]):
                asked, _, _ = self.work(b"HTTP/1.0 409 x\r\n\r\n" + refusal(b"fenced"))
            self.assertEqual(len(asked), 3)
            with open(os.path.join(place, "seen"), encoding="ascii") as file:
                self.assertNotIn("secret", file.read())


if __name__ == "__main__":
    unittest.main()
