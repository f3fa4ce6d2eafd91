#!/usr/bin/env python3
"""Tests races between a `petlab run` that is creating files and another that removes abandoned ones.

usage: half_made_files.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator. One
run stops at a call of the C library (tests/support/fault_shim.cpp) and continues after the other.
"""
import fcntl
import signal

import tiny_world
from scripted_world import ScriptedWorld


class HalfMadeFiles(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write_sweep({}, {})

    def stopped_at(self, call, path):
        run = self.start_scripted(faults=f"stop program=petlab calls={call} path={path}")
        self.until(lambda: f"stopped at {call} " in self.messages(run))
        return run

    def go_on(self, run):
        run.send_signal(signal.SIGCONT)
        return self.end(run)

    def test_a_file_that_is_not_yet_renamed_is_not_removed(self):
        run = self.stopped_at("rename", "*/sweeps/scripted.jsonl")
        other = self.run_scripted()
        self.assertEqual(other.code, 0, other)
        done = self.go_on(run)
        self.assertEqual(done.code, 0, done)

    def test_a_new_file_with_the_name_of_an_abandoned_one_is_not_removed(self):
        for name, path in ((".sweep.db.new-12345-0123abcd", "*.db.new-*"),
                           ("sweep.runs/sweeps/scripted.jsonl.aBcDeF", "*/scripted.jsonl.??????")):
            with self.subTest(name):
                made = self.write(name, "")
                run = self.stopped_at("flock", path)  # has opened the first file
                made.unlink()
                with open(made, "x") as again:
                    fcntl.flock(again, fcntl.LOCK_EX)
                    done = self.go_on(run)
                    self.assertEqual(done.code, 0, done)
                    self.assertTrue(made.exists())
                # Without a lock it is abandoned.
                self.assertEqual(self.run_scripted().code, 0)
                self.assertFalse(made.exists())

    def test_an_abandoned_post_is_removed_and_one_that_is_being_written_is_not(self):
        inbox = self.root / "sweep.runs/.inbox"
        inbox.mkdir(parents=True)
        post = inbox / "12345-0123abcd.json.aBcDeF"
        with open(post, "x") as being_written:
            fcntl.flock(being_written, fcntl.LOCK_EX)
            self.assertEqual(self.run_scripted().code, 0)
            self.assertTrue(post.exists())
        self.assertEqual(self.run_scripted().code, 0)
        self.assertFalse(post.exists())


if __name__ == "__main__":
    tiny_world.main()
