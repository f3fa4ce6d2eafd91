#!/usr/bin/env bash
# Builds a wheel with petlab's programs, and puts it into build/wheels. It runs on x86-64 Linux with
# glibc 2.28 (RHEL 8) or later. Needs Debian 12 with scripts/setup.sh's packages; no root.
#
#   scripts/wheels.sh              with a trainer for each of the newest three versions of torch
#   scripts/wheels.sh VERSION...   with a trainer for each of these, such as 2.13.0
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -gt 0 ] || set -- 2.13.0 2.14.1 2.15.0
platform=manylinux_2_28_x86_64

scripts/setup.sh
scripts/build.sh release -DPETLAB_TESTS=OFF -DPETLAB_BENCH=OFF
say "Static libraries, and stubs of an old glibc"
scripts/portable/parts.sh
stage=build/wheel
rm -rf "$stage" build/wheels
mkdir -p "$stage/programs" build/wheels
cp -r python/{pyproject.toml,README.md,hatch_build.py,src,launchers} LICENSE NOTICE "$stage"
cp -r "$(scripts/portable/parts.sh)/licences" "$stage"
for program in petlab petlab-fetch petlab-trainer-check; do
  scripts/portable/link_program.py build/release "$program" "$stage/programs/$program"
done

# libtorch VERSION: prints a folder with the headers and libraries that a trainer is linked with.
libtorch() {
  local folder=$PETLAB_HOME/torch-$1 scratch
  if [ ! -e "$folder" ]; then
    scratch=$(mktemp -d "$PETLAB_HOME/.torch.XXXXXX")
    "$PETLAB_HOME/venv/bin/python3" -m pip download --disable-pip-version-check --quiet --no-deps \
      --only-binary=:all: -d "$scratch" "torch==$1" >&2
    "$PETLAB_HOME/venv/bin/python3" - "$scratch" <<'PYTHON'
import pathlib, re, sys, zipfile

scratch = pathlib.Path(sys.argv[1])
(wheel,) = scratch.glob("*.whl")
wanted = re.compile(r"torch/(include/|lib/lib(torch_cpu|c10|gomp)[.-]|version\.py)")
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(scratch, [name for name in archive.namelist() if wanted.match(name)])
wheel.unlink()
PYTHON
    mv "$scratch" "$folder"
  fi
  printf '%s/torch' "$folder"
}
set_up_with=$(sed -n 's/^torch_version=//p' scripts/setup.sh)
for version in "$@"; do
  minor=${version%.*}
  if [ "$version" = "$set_up_with" ]; then
    build=build/release
  else
    say "The trainer for torch $version"
    build=build/torch-$minor
    torch=$(libtorch "$version")
    cmake --preset release -B "$build" -DCMAKE_PREFIX_PATH="$torch" -DPETLAB_TESTS=OFF \
      -DPETLAB_BENCH=OFF >"build/configure-torch-$minor.log" 2>&1 ||
      die "cmake failed (the whole output: build/configure-torch-$minor.log)"
    cmake --build "$build" -j "$(jobs_for_build)" --target petlab-trainer
  fi
  scripts/portable/link_program.py "$build" petlab-trainer \
    "$stage/programs/torch-$minor/petlab-trainer"
done

say "The wheel"
tools=$(scripts/wheel_venv.sh)
(cd "$stage" && "$tools" -m hatchling build --target wheel --directory dist) >build/wheel.log 2>&1 || {
  tail -n 15 build/wheel.log >&2
  die "the wheel cannot be built (the whole output: build/wheel.log)"
}
# Checks that the programs run on such a platform, and says so in the wheel's tag. LibTorch and its
# OpenMP come with the environment's torch.
PATH=$(dirname "$tools"):$PATH "$tools" -m auditwheel repair --plat "$platform" --wheel-dir build/wheels \
  --exclude libtorch_cpu.so --exclude libc10.so --exclude libgomp.so.1 "$stage"/dist/*.whl
wheel=$(echo build/wheels/petlab-*.whl)
say "$wheel: $(($(stat -c %s "$wheel") >> 20)) MiB"
