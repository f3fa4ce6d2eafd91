#!/usr/bin/env python3
"""Tests that TensorBoard reads the files of `petlab db export --tensorboard`.

usage: tensorboard.py FOLDER_OF_PROGRAMS

The exit code is 77 (skipped) without TensorBoard (scripts/tensorboard_venv.sh installs it).
"""
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
if "PETLAB_TENSORBOARD" not in os.environ:
    found = subprocess.run([SOURCE / "scripts/tensorboard_venv.sh", "--there"], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        print("skipped: TensorBoard is not there; scripts/tensorboard_venv.sh installs it")
        sys.exit(77)
    os.environ["PETLAB_TENSORBOARD"] = found.stdout.strip()
    # Restarts elsewhere, since this file has the package's name.
    os.execv(found.stdout.strip(), [found.stdout.strip(), __file__, *sys.argv[1:]])

HERE = sys.path.pop(0)
import tensorboard.plugins.hparams.plugin_data_pb2 as hparams  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402

sys.path.insert(0, HERE)
import tiny_world  # noqa: E402
from exchange_world import ExchangeWorld  # noqa: E402


class Tensorboard(ExchangeWorld):
    def setUp(self):
        super().setUp()
        self.machine("a", "--only", "seed=1..2")
        self.on("a", "db", "export", "--tensorboard", "tb")

    def test_its_reader_finds_every_value_hyperparameter_and_outcome(self):
        folders = sorted(path.parent for path in self.root.glob("tb/**/*tfevents*"))
        self.assertEqual(len(folders), 4)
        for folder in folders:
            trial = folder.name
            # The record reader checks checksums and stops at a wrong one.
            raw = list(RawEventFileLoader(str(next(folder.iterdir()))).Load())
            self.assertEqual(len(raw), 1 + 1 + 7 + 1)
            events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
            events.Reload()
            values = self.query(f"SELECT split || '/' || task || '/' || name AS tag, step, value FROM results "
                                f"WHERE trial_id = '{trial}' ORDER BY seq", "a.db")
            found = []
            for tag in events.PluginTagToContent("scalars"):
                found += [{"tag": tag, "step": event.step, "value": tensor_util.make_ndarray(event.tensor_proto).item()}
                          for event in events.Tensors(tag)]
            losses = [row for row in found if row["tag"] == "train/loss"]
            key = lambda row: (row["tag"], row["step"])
            self.assertEqual(sorted((row for row in found if row not in losses), key=key), sorted(values, key=key))
            recorded = [json.loads(line) for line in (self.root / f"a.runs/{trial}/1/events.jsonl").read_text().splitlines()]
            self.assertEqual([(row["step"], row["value"]) for row in losses],
                             [(one["step"], one["loss"]) for one in recorded if one["type"] == "progress"])
            times = {one["step"]: one["time"] for one in recorded if one["type"] == "progress"}
            self.assertEqual({event.step: event.wall_time for event in events.Tensors("train/loss")}, times)
            summaries = [hparams.HParamsPluginData.FromString(content)
                         for _, content in sorted(events.PluginTagToContent("hparams").items())]
            end, start = summaries[0].session_end_info, summaries[1].session_start_info
            self.assertEqual(end.status, 1)
            config = json.loads(self.query(f"SELECT config FROM trials WHERE trial_id = '{trial}'", "a.db")[0]["config"])
            self.assertEqual(start.hparams["seed"].number_value, config["seed"])
            self.assertEqual(start.hparams["variant"].string_value, folder.parent.name)
            self.assertEqual(start.hparams["training.learning_rate"].number_value, config["training"]["learning_rate"])
            self.assertEqual(start.hparams["module.share"].bool_value, config["module"]["share"])
            self.assertEqual(start.hparams["module.share"].WhichOneof("kind"), "bool_value")


if __name__ == "__main__":
    tiny_world.main()
