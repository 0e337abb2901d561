"""examples/shell/worker.sh beside an agentd that says what a script tells it to."""

import os
import subprocess
import sys
import unittest

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


if __name__ == "__main__":
    unittest.main()
