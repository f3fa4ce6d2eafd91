#!/usr/bin/env python3
"""Tests `petlab fetch` with a local server that has the hub's paths. One file because all cases use
this server and its faults.

usage: fetching.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import time

import tiny_world
from hub_server import HubServer, git_blob_id, sha256
from tiny_world import PETLAB, TinyWorld

CDN = "/cdn/"


class FetchWorld(TinyWorld):
    def setUp(self):
        super().setUp()
        self.hub = HubServer()
        self.addCleanup(self.hub.close)
        self.hub_environment = {}
        weights = (self.root / "tiny/model.safetensors").read_bytes()
        self.files = {"config.json": (self.root / "tiny/config.json").read_bytes(),
                      "vocab.txt": (self.root / "tiny/vocab.txt").read_bytes(),
                      "tokenizer_config.json": b'{"do_lower_case": true}',
                      "model.safetensors": weights,
                      "pytorch_model.bin": b"never asked for", "README.md": b"# tiny",
                      ".gitattributes": b"*.bin filter=lfs"}
        self.wanted = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]
        self.model = self.hub.add("someone/tiny-bert", self.files)
        self.cache = self.root / "hf/hub"
        self.folder = self.cache / "models--someone--tiny-bert"
        self.weights = CDN + sha256(weights)

    def environment(self):
        environment = {name: value for name, value in super().environment().items()
                       if not name.startswith(("HF_", "HUGGING", "TRANSFORMERS", "CURL_", "SSL_"))
                       and not name.lower().endswith("_proxy")}
        return environment | {"HF_HOME": str(self.root / "hf"),
                              "HF_ENDPOINT": self.hub.url} | self.hub_environment

    def fetch(self, *words, name="someone/tiny-bert"):
        return self.end(self.start_fetch(*words, name=name))

    def start_fetch(self, *words, name="someone/tiny-bert", **options):
        return self.start("fetch", "backbone", name, "--retry-delay", "10ms", *words, **options)

    def end(self, process, timeout=120):
        done = super().end(process, timeout)
        for part in ("out", "err"):
            setattr(done, part, getattr(done, part).replace(self.hub.url, "HUB").replace(
                f"127.0.0.1:{self.hub.port}", "HUB"))
        return done

    def snapshot(self, commit=None):
        return self.folder / "snapshots" / (commit or self.model.head)

    def check_whole(self, files=None, folder=None):
        """Checks that the folder has exactly the files that petlab reads, complete."""
        folder = folder or self.snapshot()
        files = files or {name: self.files[name] for name in self.wanted}
        there = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        self.assertEqual(there, files)

    def nothing_half(self):
        for blob in (self.folder / "blobs").glob("*"):
            if blob.suffix != ".incomplete":
                content = blob.read_bytes()
                self.assertIn(blob.name, (sha256(content), git_blob_id(content)))
        self.assertEqual([path for path in self.folder.glob("snapshots/*/config.json")], [])
        self.assertFalse((self.folder / "refs/main").exists())


class Fetching(FetchWorld):
    def test_a_backbone_is_fetched_into_the_cache_and_found(self):
        done = self.fetch()
        self.assertEqual((done.code, done.err), (0, ""), done)
        size = sum(len(self.files[name]) for name in self.wanted) / 1e6
        self.assertEqual(done.out, f"someone/tiny-bert: 4 files, {size:.1f} MB, commit "
                         f"{self.model.head}, in ROOT/hf/hub/models--someone--tiny-bert/snapshots/"
                         f"{self.model.head}\ndownloaded {size:.1f} MB\n"
                         "in a sweep: `backbone: someone/tiny-bert`\n")
        self.check_whole()
        self.assertEqual((self.folder / "refs/main").read_text(), self.model.head)
        self.assertEqual(os.readlink(self.snapshot() / "vocab.txt"),
                         "../../blobs/" + git_blob_id(self.files["vocab.txt"]))
        self.assertEqual(os.readlink(self.snapshot() / "model.safetensors"),
                         "../../blobs/" + sha256(self.files["model.safetensors"]))
        self.write("sweep.yaml", tiny_world.SWEEP.replace("./tiny", "tiny-bert"))
        plan = self.petlab("plan", "sweep.yaml")
        self.assertEqual(plan.code, 0, plan)

    def test_a_second_fetch_downloads_nothing_and_a_commit_needs_no_request(self):
        self.assertEqual(self.fetch().code, 0)
        self.hub.forget()
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        self.assertIn("all files were already there\n", done.out)
        self.assertEqual(self.hub.paths(), ["/api/models/someone/tiny-bert/revision/main"])
        self.hub.forget()
        done = self.fetch("--revision", self.model.head)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.hub.requests, [])
        self.hub_environment = {"HF_HUB_OFFLINE": "1"}
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.hub.requests, [])

    def test_without_the_fetch_program_petlab_says_what_is_missing(self):
        (self.root / "alone").mkdir()
        alone = self.root / "alone/petlab"
        shutil.copy(PETLAB, alone)
        done = subprocess.run([alone, "fetch", "backbone", "someone/tiny-bert"], text=True,
                              env=self.environment(), capture_output=True)
        self.assertEqual((done.returncode, done.stderr.replace(str(self.root), "ROOT")),
                         (1, "petlab: ROOT/alone/petlab-fetch: cannot be run: No such file or "
                             "directory; it is built next to petlab\n"))
        self.assertEqual(self.hub.requests, [])

    def test_offline_the_error_names_the_variable_that_forbids_the_download(self):
        self.hub_environment = {"HF_HUB_OFFLINE": "1"}
        done = self.fetch()
        self.assertEqual((done.code, done.err),
                         (1, "petlab: someone/tiny-bert: revision main is not in the cache, "
                             "and HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) forbids "
                             "downloading it: unset it\n"))
        self.assertEqual(self.hub.requests, [])

    def test_a_new_commit_downloads_only_changed_files(self):
        self.assertEqual(self.fetch().code, 0)
        before = self.model.head
        files = self.files | {"vocab.txt": self.files["vocab.txt"] + b"new\n"}
        self.model.commits["a" * 40] = files
        self.model.refs["main"] = "a" * 40
        self.hub.forget()
        self.assertEqual(self.fetch().code, 0)
        self.assertEqual([path for path in self.hub.paths() if "/api/" not in path],
                         [f"/someone/tiny-bert/resolve/{'a' * 40}/vocab.txt"])
        self.check_whole({name: files[name] for name in self.wanted})
        self.check_whole(folder=self.snapshot(before))
        self.assertEqual((self.folder / "refs/main").read_text(), "a" * 40)

    def test_a_branch_with_a_slash_is_kept_next_to_main(self):
        self.assertEqual(self.fetch().code, 0)
        self.model.commits["b" * 40] = self.files | {"vocab.txt": b"[PAD]\n"}
        self.model.refs["refs/pr/1"] = "b" * 40
        done = self.fetch("--revision", "refs/pr/1")
        self.assertEqual(done.code, 0, done)
        self.assertIn("in a sweep: `backbone: someone/tiny-bert@refs/pr/1`", done.out)
        self.assertEqual((self.folder / "refs/refs/pr/1").read_text(), "b" * 40)
        self.assertEqual((self.folder / "refs/main").read_text(), self.model.head)

    def test_shards_are_fetched_with_their_index(self):
        self.files.pop("model.safetensors")
        shards = {f"model-0000{i}-of-00002.safetensors": bytes([i]) * 1000 for i in (1, 2)}
        index = {"weight_map": {f"layer.{i}": name for i, name in enumerate(shards)}}
        files = self.files | shards | {"model.safetensors.index.json": json.dumps(index).encode(),
                                       "other.safetensors": b"no shard of it"}
        self.model = self.hub.add("someone/tiny-bert", files)
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        wanted = sorted({*self.wanted, *shards, "model.safetensors.index.json"}
                        - {"model.safetensors"})
        self.check_whole({name: files[name] for name in wanted})

    def test_pickled_weights_are_fetched_only_without_others(self):
        files = {name: self.files[name] for name in self.files if name != "model.safetensors"}
        self.model = self.hub.add("someone/tiny-bert", files)
        self.assertEqual(self.fetch().code, 0)
        self.assertEqual((self.snapshot() / "pytorch_model.bin").read_bytes(), b"never asked for")

    def test_a_renamed_model_is_kept_under_the_requested_name(self):
        self.hub.moved["tiny-bert"] = "someone/tiny-bert"
        self.folder = self.cache / "models--tiny-bert"
        done = self.fetch(name="tiny-bert")
        self.assertEqual(done.code, 0, done)
        self.check_whole()
        self.assertIn("in a sweep: `backbone: tiny-bert`", done.out)
        # After fetching the new name too, the old one is still unambiguous.
        self.folder = self.cache / "models--someone--tiny-bert"
        self.assertEqual(self.fetch().code, 0)
        self.write("sweep.yaml", tiny_world.SWEEP.replace("./tiny", "tiny-bert"))
        self.assertEqual(self.petlab("plan", "sweep.yaml").code, 0)

    def test_the_token_is_sent_only_to_the_hub(self):
        self.model.token = "hf_secret"
        self.hub_environment = {"HF_TOKEN": "hf_secret"}
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        for _, path, headers in self.hub.requests:
            self.assertEqual(headers.get("Authorization"),
                             None if path.startswith(CDN) else "Bearer hf_secret", path)
        self.assertNotIn("hf_secret", done.out + done.err)

    def test_the_token_of_a_login_is_used_too(self):
        self.model.token = "hf_stored"
        self.write("hf/token", "hf_stored\n")
        self.assertEqual(self.fetch().code, 0)

    def test_into_a_folder_of_plain_files(self):
        done = self.fetch("--into", "models/mine")
        self.assertEqual(done.code, 0, done)
        self.assertIn("in a sweep: `backbone: ROOT/models/mine`\n", done.out)
        self.check_whole(folder=self.root / "models/mine")
        self.assertFalse((self.root / "models/mine/vocab.txt").is_symlink())
        self.assertFalse(self.cache.exists())
        self.hub.forget()
        self.assertIn("all files were already there", self.fetch("--into", "models/mine").out)
        self.assertEqual(len(self.hub.requests), 1)
        # A new commit lacks one file and keeps the configuration.
        files = self.files | {"vocab.txt": b"[PAD]\n"}
        files.pop("tokenizer_config.json")
        self.model.commits["c" * 40] = files
        self.model.refs["main"] = "c" * 40
        self.assertEqual(self.fetch("--into", "models/mine").code, 0)
        self.check_whole({name: files[name] for name in self.wanted if name in files},
                         self.root / "models/mine")

    def test_a_folder_with_other_files_is_left_unchanged(self):
        self.write("mine/config.json", "{}")
        done = self.fetch("--into", "mine")
        self.assertEqual((done.code, done.err),
                         (1, "petlab: ROOT/mine/config.json: exists, but differs from the "
                             "file to fetch; --into needs a new folder, or one created by "
                             "petlab fetch\n"))
        self.assertEqual([path.name for path in (self.root / "mine").iterdir()], ["config.json"])


class Faults(FetchWorld):
    def refused(self, message, *words, code=1, name="someone/tiny-bert"):
        done = self.fetch(*words, name=name)
        self.assertEqual((done.code, done.out, done.err), (code, "", f"petlab: {message}\n"))
        self.nothing_half()

    def survived(self, *notes):
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.err, "".join(f"{note}\n" for note in notes))
        self.check_whole()

    def big(self, size=3_000_000):
        """Replaces the weights by random megabytes, which cannot be trained."""
        self.files["model.safetensors"] = random.Random(5).randbytes(size)
        self.model = self.hub.add("someone/tiny-bert", self.files)
        self.weights = CDN + sha256(self.files["model.safetensors"])
        return size

    def downloaded(self):
        """The downloaded bytes of the weights. Smaller files are not counted: they may be renamed
        between listing and stat."""
        return sum(path.stat().st_size for path in
                   self.folder.glob(f"blobs/{self.weights[5:]}.incomplete"))

    def until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, "what was waited for did not come")
            time.sleep(0.01)

    def request_count(self):
        return sum("/tree/" in path for path in self.hub.paths())

    def ranges(self):
        return [headers.get("Range") for _, path, headers in self.hub.requests
                if path == self.weights]

    def test_invalid_names_are_refused_before_any_request(self):
        for name in ("../x", "a/b/c", "a//b", "-x", "a b", "a--b", "https://x/y"):
            with self.subTest(name):
                done = self.petlab("fetch", "backbone", "--", name)
                self.assertEqual(done.code, 2, done)
                self.assertIn(f"the backbone is '{name}', must be the name of a model on the hub", done.err)
        done = self.fetch("--revision", "../../x")
        self.assertEqual((done.code, done.err),
                         (2, "petlab: --revision is '../../x', must be a branch, a tag or a commit\n"))
        self.hub_environment = {"HF_ENDPOINT": "file:///etc"}
        self.assertEqual(self.fetch().code, 2)
        self.assertEqual(self.hub.requests, [])

    def test_the_error_about_a_missing_or_gated_model_says_what_to_do(self):
        self.refused("someone/tinybert: the model is not at HUB, or it is private (set "
                     "HF_TOKEN to a token that may read it); names have an owner before the "
                     "slash, as in FacebookAI/roberta-base", name="someone/tinybert")
        self.model.token, self.model.gated = "hf_right", True
        self.refused("someone/tiny-bert: access is restricted: accept the conditions on "
                     "HUB/someone/tiny-bert, and set HF_TOKEN to your token "
                     "(HUB/settings/tokens)")
        self.hub_environment = {"HF_TOKEN": "hf_wrong"}
        self.refused("someone/tiny-bert: access is restricted: accept the conditions on "
                     "HUB/someone/tiny-bert, and set HF_TOKEN to your token "
                     "(HUB/settings/tokens); the current token has no access")

    def test_a_missing_revision(self):
        self.refused("someone/tiny-bert: the revision does not exist; --revision must be a "
                     "branch, a tag or a commit of HUB/someone/tiny-bert/commits/main", "--revision", "v9")
        self.refused("someone/tiny-bert: the revision does not exist; --revision must be a "
                     "branch, a tag or a commit of HUB/someone/tiny-bert/commits/main", "--revision", "d" * 40)

    def test_errors_about_unsupported_models_list_their_files(self):
        for files, wanted in (
                ({"README.md": b"x"}, "a config.json, which every backbone has"),
                ({"config.json": b"{}", "tf_model.h5": b"x"},
                 "weights that petlab reads: model.safetensors or pytorch_model.bin, or the index "
                 "of one in shards"),
                ({"config.json": b"{}", "model.safetensors": b"x"},
                 "a tokenizer: vocab.txt, vocab.json with merges.txt, tokenizer.json or a "
                 "SentencePiece model")):
            with self.subTest(wanted):
                self.hub.add("someone/tiny-bert", files)
                self.refused(f"someone/tiny-bert: found {', '.join(files)}, expected {wanted}")

    def test_the_error_without_a_network_says_what_to_do(self):
        self.hub.close()
        done = self.fetch()
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, "^petlab: someone/tiny-bert: HUB cannot be reached: HUB: "
                                   ".*; set HF_ENDPOINT to a mirror or https_proxy to a "
                                   "proxy; without a network, fetch it on another machine and "
                                   "copy ROOT/hf/hub/models--someone--tiny-bert here\n$")
        self.nothing_half()

    def test_another_web_page_is_not_a_hub(self):
        self.hub.faults["/api/models/someone/tiny-bert/revision/main"] = [("rubbish",)]
        self.refused("someone/tiny-bert: HUB names no commit of revision main (HF_ENDPOINT "
                     "sets the server)")
        self.hub.faults[f"/api/models/someone/tiny-bert/tree/{self.model.head}"] = [("rubbish",)]
        self.refused("someone/tiny-bert: found no list, expected the hub's list of files "
                     "(HF_ENDPOINT sets the server)")

    def test_a_redirect_loop_ends(self):
        path = "/api/models/someone/tiny-bert/revision/main"
        self.hub.faults[path] = [("loop",)] * 100
        done = self.fetch()
        self.assertEqual(done.code, 1, done)
        self.assertIn("Maximum (10) redirects followed", done.err)
        self.nothing_half()

    def test_a_busy_server_is_retried(self):
        path = "/api/models/someone/tiny-bert/revision/main"
        self.hub.faults[path] = [("status", 500), ("status", 503)]
        self.hub.faults[self.weights] = [("status", 429, "", "", {"Retry-After": "1"})]
        at = time.monotonic()
        self.survived(f"HUB{path}: the server answered with status 500; retrying in 0.01 s",
                      f"HUB{path}: the server answered with status 503; retrying in 0.02 s",
                      f"HUB/someone/tiny-bert/resolve/{self.model.head}/model.safetensors: the server "
                      "answered with status 429; retrying in 1 s")
        self.assertGreater(time.monotonic() - at, 1)

    def test_a_server_that_stays_down_is_abandoned(self):
        path = "/api/models/someone/tiny-bert/revision/main"
        self.hub.faults[path] = [("status", 502)] * 10
        done = self.fetch("--retries", "2")
        self.assertEqual(done.code, 1, done)
        self.assertEqual(done.err.splitlines()[-1],
                         f"petlab: HUB{path}: the server answered with status 502 (tried 3 times)")
        self.assertEqual(len(self.hub.requests), 3)

    def test_short_reads_are_resumed(self):
        size = self.big()
        self.hub.faults[self.weights] = [("short", 1_000_000), ("drop",), ("short", 500_000)]
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        self.check_whole()
        self.assertEqual(self.ranges(), [None, "bytes=1000000-", "bytes=1000000-", "bytes=1500000-"])
        self.assertLess(self.hub.sent, size + 10_000)

    def test_a_file_always_truncated_at_the_same_place_is_given_up(self):
        self.big()
        self.hub.faults[self.weights] = [("no range", 1_000_000)] * 20
        done = self.fetch("--retries", "3")
        self.assertEqual(done.code, 1, done)
        self.assertIn("(tried 4 times)", done.err)
        self.assertEqual(len(self.ranges()), 4)
        self.nothing_half()

    def test_without_ranges_a_download_starts_again(self):
        self.big()
        self.hub.faults[self.weights] = [("short", 1_000_000), ("no range",)]
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        self.check_whole()

    def test_a_stalled_connection_is_closed_and_the_download_resumed(self):
        self.big()
        self.hub_environment = {"HF_HUB_DOWNLOAD_TIMEOUT": "1"}
        self.hub.faults[self.weights] = [("stall", 1_000_000)]
        done = self.fetch()
        self.assertEqual(done.code, 0, done)
        self.assertIn("retrying in 0.01 s", done.err)
        self.check_whole()
        self.assertEqual(self.ranges(), [None, "bytes=1000000-"])

    def test_a_file_with_a_wrong_digest_is_deleted(self):
        self.hub.faults[self.weights] = [("wrong",)]
        self.refused("model.safetensors: the downloaded file has the wrong digest and was "
                     "deleted; try again, or use another network: something on the way "
                     "changes the data")
        self.assertEqual(list((self.folder / "blobs").glob("*.incomplete")), [])
        self.survived()

    def test_a_wrong_small_file_is_deleted_too(self):
        self.hub.faults[f"/someone/tiny-bert/resolve/{self.model.head}/vocab.txt"] = [("wrong",)]
        done = self.fetch()
        self.assertEqual(done.code, 1, done)
        self.assertIn("vocab.txt: the downloaded file has the wrong digest", done.err)
        self.nothing_half()

    def test_a_damaged_partial_file_is_not_resumed(self):
        size = self.big()
        self.write(self.folder / "blobs" / f"{self.weights[5:]}.incomplete", b"rubbish" * 1000)
        self.survived("model.safetensors: the partial file of an earlier download is damaged; "
                      "starting again")
        self.assertEqual(self.ranges(), ["bytes=7000-", None])
        # A partial file longer than the file is restarted immediately.
        blob = self.folder / "blobs" / self.weights[5:]
        blob.rename(f"{blob}.incomplete")
        with open(f"{blob}.incomplete", "ab") as file:
            file.write(b"more")
        self.hub.forget()
        self.survived()
        self.assertEqual((self.ranges(), self.hub.sent), ([None], size))

    def test_a_file_damaged_later_is_fetched_again(self):
        self.survived()
        blob = self.folder / "blobs" / self.weights[5:]
        content = bytearray(blob.read_bytes())
        content[100] ^= 1
        blob.write_bytes(content)
        self.survived("model.safetensors: the existing file is damaged; downloading it again")

    def test_a_killed_download_resumes_where_it_stopped(self):
        self.big(8_000_000)
        for kill in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            with self.subTest(kill):
                self.hub.forget()
                before = self.downloaded()
                self.hub.faults[self.weights] = [("hold", 1_000_000)]
                process = self.start_fetch()
                self.until(lambda: self.downloaded() >= before + 1_000_000)
                process.send_signal(kill)
                done = self.end(process)
                if kill == signal.SIGKILL:
                    self.assertEqual(done.code, -signal.SIGKILL)
                else:
                    self.assertEqual((done.code, done.err), (
                        3, "interrupted; run the same command to resume\n"))
                self.nothing_half()
        partial, = self.folder.glob("blobs/*.incomplete")
        self.hub.forget()
        there = partial.stat().st_size
        self.survived()
        self.assertEqual(self.ranges(), [f"bytes={there}-"])

    def test_concurrent_fetches_share_one_download(self):
        size = self.big(4_000_000)
        self.hub.faults[self.weights] = [("hold", 1_000_000)]
        both = [self.start_fetch(), self.start_fetch(), self.start_fetch()]
        self.until(lambda: self.request_count() == 6)  # two pages each
        self.hub.go.set()
        for done in map(self.end, both):
            self.assertEqual(done.code, 0, done)
        self.check_whole()
        self.assertEqual(len(self.ranges()), 1)
        self.assertLess(self.hub.sent, size + 10_000)

    def test_two_fetches_into_one_folder(self):
        self.big(4_000_000)
        self.hub.faults[self.weights] = [("hold", 1_000_000)]
        both = [self.start_fetch("--into", "mine"), self.start_fetch("--into", "mine")]
        self.until(lambda: self.request_count() == 4)
        self.hub.go.set()
        for done in map(self.end, both):
            self.assertEqual(done.code, 0, done)
        self.check_whole(folder=self.root / "mine")
        self.assertEqual(len(self.ranges()), 1)

    def test_a_disk_that_is_too_small_is_reported_before_the_download(self):
        disk = self.small_disk("1m")
        self.big()
        self.hub_environment = {"HF_HOME": str(disk)}
        self.folder = disk / "hub/models--someone--tiny-bert"
        done = self.fetch()
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, r"^petlab: ROOT/disk/hub/models--someone--tiny-bert/blobs: the download has 3\.0 MB, but the disk has only [01]\.[0-9] MB free\n$")
        self.assertEqual(self.ranges(), [])

    def test_a_disk_that_fills_up_keeps_the_downloaded_part(self):
        disk = self.small_disk("8m")
        self.big(4_000_000)
        self.hub_environment = {"HF_HOME": str(disk)}
        self.folder = disk / "hub/models--someone--tiny-bert"
        self.hub.faults[self.weights] = [("hold", 500_000)]
        process = self.start_fetch()
        self.until(lambda: self.downloaded() >= 500_000)
        ballast = self.fill(disk, 4)
        self.hub.go.set()
        done = self.end(process)
        self.assertEqual((done.code, done.err), (1, "petlab: model.safetensors: cannot be written: No "
                                                    "space left on device\n"))
        self.nothing_half()
        ballast.unlink()
        self.survived()

    def test_an_unwritable_cache_is_reported(self):
        disk = self.small_disk("1m")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        self.hub_environment = {"HF_HOME": str(disk)}
        done = self.fetch()
        self.assertEqual((done.code, done.err),
                         (1, "petlab: ROOT/disk/hub/models--someone--tiny-bert/blobs: cannot be created: "
                             "Read-only file system\n"))

    def test_a_server_with_an_untrusted_certificate_is_refused(self):
        certificate = self.root / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=petlab's test", "-addext",
                        "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", certificate,
                        "-out", self.root / "public.pem"], check=True, capture_output=True)
        with open(certificate, "ab") as file:
            file.write((self.root / "public.pem").read_bytes())
        secure = HubServer(certificate)
        self.addCleanup(secure.close)
        secure.models["someone/tiny-bert"] = self.model
        self.hub_environment = {"HF_ENDPOINT": secure.url}
        done = self.fetch()
        self.assertEqual(done.code, 1, done)
        self.assertIn("if your proxy signs connections, set SSL_CERT_FILE to its certificates", done.err)
        self.assertEqual(secure.requests, [])
        self.nothing_half()
        self.hub_environment["SSL_CERT_FILE"] = str(self.root / "public.pem")
        self.survived()
        # A redirect must not lead to an unencrypted connection.
        secure.scheme = "http"
        self.hub_environment["HF_HOME"] = str(self.root / "other")
        done = self.fetch()
        self.assertEqual(done.code, 1, done)
        # libcurl's messages before and since release 8.12.
        self.assertRegex(done.err, "Protocol \"http\" (not supported|disabled)")

    def test_a_terminal_shows_the_progress(self):
        self.big(4_000_000)
        self.hub.faults[self.weights] = [("slow", 0.03)]
        self.hub_environment["TERM"] = "xterm"
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        process = self.start_fetch(stderr=follower)
        os.close(follower)
        shown = b""
        while True:
            try:
                more = os.read(leader, 65536)
            except OSError:
                break
            if not more:
                break
            shown += more
        self.assertEqual(self.end(process).code, 0)
        text = shown.decode()
        self.assertRegex(text, r"model\.safetensors  [0-3]\.\d MB of 4\.0 MB")
        self.assertRegex(text, r"4\.0 MB of 4\.0 MB, \d+\.\d MB/s, 0 s left")


class Data(FetchWorld):
    """Failures of data downloads. tests/fetch/data_test.cpp tests the archives' contents."""

    def fetch_data(self, *words):
        return self.petlab("fetch", "data", *words, "--from", self.hub.url, "--retry-delay", "10ms")

    def nothing_there(self):
        self.assertFalse((self.root / "home/data/glue").exists())

    def test_unknown_task_names(self):
        done = self.fetch_data("colla")
        self.assertEqual((done.code, done.err),
                         (2, "petlab: unknown task \"colla\"; did you mean \"cola\"?\n"))
        done = self.fetch_data("movie-polarity")
        self.assertEqual(done.code, 2, done)
        self.assertIn("movie-polarity: petlab cannot fetch its data; they are "
                      "hutto_ICWSM_2014.tar.gz", done.err)
        self.assertEqual(self.fetch_data("cola", "--from", "dl.org").code, 2)
        self.assertEqual(self.petlab("fetch", "data").code, 2)
        done = self.petlab("fetch", "dta", "cola")
        self.assertEqual((done.code, done.err),
                         (2, "petlab: unknown subcommand of fetch \"dta\"; did you mean "
                             "\"data\"? (see --help)\n"))
        self.assertEqual(self.hub.requests, [])

    def test_an_archive_with_a_wrong_digest_is_deleted(self):
        self.hub.files["/glue/data/CoLA.zip"] = b"x" * 376971
        self.hub.faults["/glue/data/CoLA.zip"] = [("short", 100_000), ("status", 503)]
        done = self.fetch_data("cola")
        self.assertEqual((done.code, done.out), (1, ""), done)
        self.assertEqual(done.err.splitlines()[-1], "petlab: CoLA.zip: the downloaded file "
                                                    "has the wrong digest and was deleted; "
                                                    "try again, or use another network: "
                                                    "something on the way changes the data")
        self.assertEqual([headers.get("Range") for _, _, headers in self.hub.requests],
                         [None, "bytes=100000-", "bytes=100000-"])
        self.nothing_there()

    def test_a_server_without_the_archive_and_no_server(self):
        done = self.fetch_data("glue")
        self.assertEqual((done.code, done.err), (1, "petlab: HUB/glue/data/CoLA.zip: the server "
                                                    "answered with status 404\n"))
        self.hub.close()
        done = self.fetch_data("rte")
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, "^petlab: rte: HUB: .*; set --from to another server with "
                                   "the same files, or https_proxy to a proxy; without a "
                                   "network, unpack the task's archive from "
                                   "gluebenchmark.com/tasks to ROOT/home/data/glue/RTE\n$")
        self.nothing_there()

    def test_the_users_data_are_left_alone(self):
        for name in ("train.tsv", "dev.tsv"):
            self.write(f"data/glue/CoLA/{name}", "mine\n")
            self.write(f"home/data/glue/RTE/{name}", "mine\n")
        done = self.fetch_data("cola", "rte")
        self.assertEqual((done.code, done.out),
                         (0, "cola: already in ROOT/data/glue/CoLA\nrte: kept (petlab did not download it), in ROOT/home/data/glue/RTE\n"))
        self.assertEqual(self.hub.requests, [])


class BesidePython(FetchWorld):
    """Hugging Face's library with the same cache and server."""

    def setUp(self):
        super().setUp()
        home = os.environ.get("PETLAB_HOME") or os.path.expanduser("~/.local/share/petlab")
        self.python_program = pathlib.Path(home) / "python-libraries/bin/python3"
        if not self.python_program.exists():
            self.skipTest(f"{self.python_program} is not there (scripts/library_venv.sh makes it)")

    def python(self, code, **environment):
        done = subprocess.run(
            [self.python_program, "-c", "from huggingface_hub import *\n" + code],
            env=self.environment() | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"} | environment,
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.strip()

    def laid_out(self):
        """The model's folder without the private files of petlab and of the library."""
        return {str(path.relative_to(self.folder)):
                os.readlink(path) if path.is_symlink() else path.read_bytes()
                for path in self.folder.rglob("*")
                if path.is_symlink() or path.is_file()
                and path.relative_to(self.folder).parts[0] not in ("petlab", "trees")}

    def test_both_use_the_same_cache_layout(self):
        self.assertEqual(self.fetch().code, 0)
        by_petlab = self.laid_out()
        self.folder.rename(self.root / "before")
        self.python("snapshot_download('someone/tiny-bert', "
                    "allow_patterns=['*.json', 'vocab.txt', '*.safetensors'])")
        self.assertEqual(self.laid_out(), by_petlab)
        # petlab has nothing to download after the library.
        self.hub.forget()
        self.assertIn("all files were already there", self.fetch().out)
        self.assertEqual([path for path in self.hub.paths() if "/api/" not in path], [])

    def test_python_reads_offline_what_petlab_has_fetched(self):
        self.assertEqual(self.fetch().code, 0)
        self.hub.forget()
        self.assertEqual(
            self.python("print(snapshot_download('someone/tiny-bert', local_files_only=True));"
                        "print(hf_hub_download('someone/tiny-bert', 'vocab.txt'));"
                        "print(scan_cache_dir().warnings)", HF_HUB_OFFLINE="1").split("\n"),
            [str(self.snapshot()), str(self.snapshot() / "vocab.txt"), "[]"])
        self.assertEqual(self.hub.requests, [])


if __name__ == "__main__":
    tiny_world.main()
