"""Tests of the transcript runner itself: a runner that lets everything pass would test nothing."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("runner", str(HERE / "run"))
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
loader.exec_module(runner)


class Matching(unittest.TestCase):
    def test_lines_must_be_equal(self):
        self.assertTrue(runner.matches(["a", "b"], ["a", "b"]))
        self.assertFalse(runner.matches(["a"], ["a", "b"]))
        self.assertFalse(runner.matches(["a", "b"], ["a"]))
        self.assertFalse(runner.matches([], ["a"]))

    def test_dots_inside_a_line_stand_for_text_of_that_line(self):
        self.assertTrue(runner.matches(["took ... ms"], ["took 3.25 ms"]))
        self.assertFalse(runner.matches(["took ... ms"], ["took 3.25 s"]))
        self.assertTrue(runner.matches(["(a+b) ..."], ["(a+b) [x]"]))

    def test_dots_alone_stand_for_lines(self):
        self.assertTrue(runner.matches(["a", "...", "c"], ["a", "b", "b", "c"]))
        self.assertTrue(runner.matches(["a", "..."], ["a"]))
        self.assertFalse(runner.matches(["a", "...", "c"], ["a", "b"]))
        self.assertTrue(runner.matches(["...", "b", "..."], ["a", "b", "b", "c"]))


class Files(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name)
        self.trocar = self.folder / "trocar"
        self.trocar.write_text('#!/bin/sh\necho "$@"\n[ "$1" != bad ]\n')
        self.trocar.chmod(0o755)

    def tearDown(self):
        self.scratch.cleanup()

    def run_file(self, name, text, *options):
        path = self.folder / name
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, HERE / "run", "--trocar", self.trocar, *options, path],
            stdout=subprocess.PIPE,
            env={**os.environ, "TROCAR_TEST_MODELS": ""},
        )
        return done.returncode, done.stdout.decode(), path.read_text()

    def test_a_good_transcript_passes(self):
        code, _, _ = self.run_file("a.t", "# why\n\n$ trocar x\nx\n\n$ trocar bad\nbad\n[exit 1]\n")
        self.assertEqual(code, 0)

    def test_wrong_output_fails_with_a_diff(self):
        code, text, _ = self.run_file("a.t", "$ trocar x\ny\n")
        self.assertEqual(code, 1)
        self.assertIn("-y", text)
        self.assertIn("+x", text)

    def test_an_exit_code_that_is_not_expected_fails(self):
        self.assertEqual(self.run_file("a.t", "$ trocar bad\nbad\n")[0], 1)
        self.assertEqual(self.run_file("a.t", "$ trocar x\nx\n[exit 1]\n")[0], 1)

    def test_update_rewrites_what_differs_and_keeps_the_rest(self):
        code, _, text = self.run_file(
            "a.t", "# why\n\n$ trocar x\n...\n\n$ trocar y\nold\nold\n\n$ trocar bad\n", "--update"
        )
        self.assertEqual(code, 0)
        self.assertEqual(
            text, "# why\n\n$ trocar x\n...\n\n$ trocar y\ny\n\n$ trocar bad\nbad\n[exit 1]\n"
        )

    def test_documents_run_their_console_blocks_only(self):
        good = "Text\n```console\n$ trocar a\na\n```\n```\n$ trocar bad\n```\n"
        self.assertEqual(self.run_file("a.md", good)[0], 0)
        self.assertEqual(self.run_file("a.md", "```console\n$ trocar a\nb\n```\n")[0], 1)

    def test_a_block_without_output_only_has_to_succeed(self):
        self.assertEqual(self.run_file("a.md", "```console\n$ trocar a\n$ trocar b\n```\n")[0], 0)
        self.assertEqual(self.run_file("a.md", "```console\n$ trocar bad\n```\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
