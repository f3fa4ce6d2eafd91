#!/usr/bin/env bash
# Installs what petlab needs on Debian 12 and 13 or Ubuntu 24.04 (x86-64, arm64) and reports each
# step. A second call does nothing.
#
#   scripts/setup.sh          the requirements for building and running petlab
#   scripts/setup.sh --dev    also the tools for tests, checks and fuzzing
#
# PETLAB_HOME          folder for LibTorch, models and data (default ~/.local/share/petlab)
# PETLAB_TORCH_INDEX   the package index for the torch wheel, in place of pip's default
# PETLAB_WITH_GPU      1: install CUDA's libraries even if no GPU is visible (for a container); 0:
#                      never install them
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

dev=false
case "${1:-}" in
  "") ;;
  --dev) dev=true ;;
  *) die "unknown argument '$1'; expected nothing or --dev" ;;
esac

torch_version=2.13.0
packages=(
  g++ cmake ninja-build ccache pkg-config python3 python3-venv ca-certificates
  libsqlite3-dev libsqlitecpp-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev
  libsentencepiece-dev libicu-dev libpcre2-dev nettle-dev libcurl4-openssl-dev libarchive-dev
  zlib1g-dev libjemalloc-dev
)
dev_packages=(catch2 clang clang-format clang-tidy curl libclang-rt-dev git jq sqlite3 shellcheck)
$dev && packages+=("${dev_packages[@]}")
# Distributions put the version into the package names. The oldest available one is preferred,
# because it was tested longest.
boost_versions=(1.81 1.83 1.84 1.85 1.86 1.87 1.88)

mkdir -p "$PETLAB_HOME" || die "cannot make the folder $PETLAB_HOME; PETLAB_HOME names another"

# Locked, because two set-ups running at the same time would overwrite each other's files.
exec 9>"$PETLAB_HOME/.setup.lock" || die "cannot write in $PETLAB_HOME; PETLAB_HOME names another"
flock 9

log=$PETLAB_HOME/setup.log
: >"$log"
# quietly WHAT COMMAND...: writes output to the log; on failure prints the log's end and one line.
quietly() {
  local what=$1
  shift
  if ! "$@" >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    die "$what failed (the whole output: $log)"
  fi
}

# ---- The distribution's packages
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]; }
as_root=()
updated=false
# Updates the package lists once, before the first look-up. True if packages can be installed.
can_install() {
  command -v apt-get >/dev/null || return 1
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || return 1
    as_root=(sudo)
  fi
  $updated || quietly "apt-get update" "${as_root[@]}" apt-get update
  updated=true
}
apt_install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@"
}
why_none() {
  if command -v apt-get >/dev/null; then printf 'not root and no sudo'; else printf 'no apt-get'; fi
}

boost=
for version in "${boost_versions[@]}"; do
  installed "libboost$version-dev" && boost=$version && break
done
if [ -z "$boost" ] && can_install; then
  for version in "${boost_versions[@]}"; do
    [ -n "$(apt-cache search --names-only "^libboost-system$version-dev\$" 2>>"$log")" ] &&
      boost=$version && break
  done
  [ -n "$boost" ] || die "this distribution has no Boost from 1.81 on, which" \
    "Debian 12 and 13 and Ubuntu 24.04 have; the container of docs/guides/install.md runs anywhere"
fi
boost=${boost:-${boost_versions[0]}}
packages+=("libboost$boost-dev" "libboost-system$boost-dev")
$dev && packages+=("libboost-context$boost-dev")

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
if [ ${#missing[@]} -eq 0 ]; then
  say "Packages of the distribution: all ${#packages[@]} are installed"
else
  can_install || die "$(why_none); have these packages installed and try again: ${missing[*]}"
  say "Packages of the distribution: installing ${missing[*]}"
  quietly "apt-get install" apt_install "${missing[@]}"
fi

# ---- Requirements of single tests, which are skipped if these cannot be installed
# for_a_test WHAT PACKAGES...
for_a_test() {
  local what=$1 missing=() package
  shift
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  if [ ${#missing[@]} -eq 0 ]; then
    say "$what for its test: installed"
  elif can_install; then
    say "$what for its test: installing ${missing[*]}"
    apt_install "${missing[@]}" >>"$log" 2>&1 ||
      say "$what for its test: cannot be installed here; its test will be skipped"
  else
    say "$what for its test: not there; the test will be skipped"
  fi
}
if $dev; then
  for_a_test Slurm slurmctld slurmd slurm-client munge
  # Debian's package. Ubuntu's is a snap, which the test does not use.
  for_a_test Chromium chromium
  # 350 MB; compiles the LaTeX of reports, with booktabs and pgfplots, and of score tables.
  for_a_test LaTeX texlive-latex-base texlive-latex-recommended texlive-pictures
fi

# ---- A virtual environment: for LibTorch's wheel, and for the Python of petlab's tools
venv=$PETLAB_HOME/venv
if ! "$venv/bin/python3" -m pip --version >/dev/null 2>&1; then
  rm -rf "$venv"
  quietly "python3 -m venv" python3 -m venv "$venv"
fi

# ---- LibTorch, from the Python wheel (only its libraries are used)
# Any build works: petlab links only what all of them contain (docs/internals/building.md).
torch_folder() {
  find "$venv/lib" -maxdepth 3 -type d -path '*/site-packages/torch' 2>/dev/null | head -n 1
}
torch_found() {
  local folder
  folder=$(torch_folder)
  [ -n "$folder" ] && [ -e "$folder/lib/libtorch_cpu.so" ] &&
    grep -q "^__version__ = '$torch_version" "$folder/version.py"
}
libtorch_named() {
  local prefix place
  for prefix in ${CMAKE_PREFIX_PATH//[:;]/ }; do
    for place in "$prefix" "$prefix/torch" "$prefix/libtorch" "$prefix/../.."; do
      [ -e "$place/lib/libtorch_cpu.so" ] && [ -e "$place/include/ATen/ATen.h" ] && return 0
    done
  done
  return 1
}
gpu_there() {
  case "${PETLAB_WITH_GPU:-}" in
    "") timeout 20 nvidia-smi -L 2>/dev/null | grep -q '^GPU ' ;;
    0) false ;;
    1) true ;;
    *) die "PETLAB_WITH_GPU is '$PETLAB_WITH_GPU', expected 0 or 1" ;;
  esac
}
mib_of() { du -sm "$@" 2>/dev/null | awk '{sum += $1} END {print sum + 0}'; }
pip_install() {
  "$venv/bin/python3" -m pip install --disable-pip-version-check "${index[@]}" "$@"
}
index=()
[ -n "${PETLAB_TORCH_INDEX:-}" ] && index=(--index-url "$PETLAB_TORCH_INDEX")
if [ -n "${CMAKE_PREFIX_PATH:-}" ] && libtorch_named; then
  say "LibTorch: the one that CMAKE_PREFIX_PATH names"
else
  if torch_found; then
    say "LibTorch: torch $torch_version is installed"
  else
    say "LibTorch: downloading the wheel torch==$torch_version (200 MB, a CUDA build 530 MB)"
    # --no-deps, because only its C++ libraries are used.
    quietly "pip install torch==$torch_version (PETLAB_TORCH_INDEX names another index)" \
      pip_install --no-deps "torch==$torch_version"
    torch_found || die "pip installed torch, but $torch_version is not in $venv"
    say "LibTorch: $(mib_of "$(torch_folder)") MiB in $(torch_folder)"
  fi
  # On a CPU, a CUDA build needs two small libraries; on a GPU, all that it lists.
  with=cpu
  gpu_there && with=gpu
  needs=$("$venv/bin/python3" scripts/torch_needs.py "$with" 2>>"$log") ||
    die "cannot tell which libraries the torch wheel in $venv needs (the whole output: $log)"
  if [ -n "$needs" ]; then
    mapfile -t needs <<<"$needs"
    if [ "$with" = gpu ]; then
      say "LibTorch is a CUDA build, for a GPU: installing what it needs of CUDA (2.4 GB)"
    else
      say "LibTorch is a CUDA build, and there is no GPU: installing the two libraries (13 MB) that" \
        "it needs on a CPU; PETLAB_WITH_GPU=1 installs all"
    fi
    quietly "pip install ${needs[*]}" pip_install "${needs[@]}"
    say "LibTorch: $(mib_of "$(dirname "$(torch_folder)")/nvidia") MiB of CUDA's libraries"
  fi
fi

# ---- A small real encoder and real labelled text, as petlab quickstart gets them
"$venv/bin/python3" -I scripts/samples.py "$PETLAB_HOME" setup.sh || exit 1

# ---- vl-convert, which draws figures without a browser
figure_package=vl-convert-python==1.9.0.post1
figures_there() {
  "$venv/bin/python3" -I -c 'import importlib.metadata, sys
name, version = sys.argv[1].split("==")
sys.exit(importlib.metadata.version(name) != version)' "$figure_package" 2>/dev/null
}
if figures_there; then
  say "Figures as pictures and in pages: $figure_package is installed"
else
  say "Figures as pictures and in pages: downloading 34 MB ($figure_package)"
  # Without PETLAB_TORCH_INDEX, which may name an index that has only torch.
  if ! "$venv/bin/python3" -m pip install --disable-pip-version-check "$figure_package" \
    >>"$log" 2>&1 || ! figures_there; then
    say "Figures as pictures and in pages: cannot be drawn here ($log); their specifications" \
      "(--format vega) are written all the same"
  fi
fi

# ---- Tools for the tests of the Python package and for tests against Python libraries
if $dev; then
  # test_tool NAME SCRIPT WITHOUT: installs a virtual environment, or reports what is skipped
  # without it. Each waits for its downloads most of the time, so they run together.
  test_tool() {
    local python
    if python=$("scripts/$2" 2>>"$log"); then
      say "$1: ${python%/bin/python3}"
    else
      say "$1: cannot be installed ($log); $3"
    fi
  }
  test_tool "Tools for the Python package's tests" python_venv.sh "these tests are skipped" &
  test_tool "TensorBoard" tensorboard_venv.sh "the test with its reader is skipped" &
  test_tool "MLflow, trackio and W&B" trackers_venv.sh "the test with them is skipped" &
  test_tool "Tools for the paper's rehearsal" statistics_venv.sh "a part of it is skipped" &
  test_tool "A browser for report pages" browser_venv.sh "a test is skipped" &
  test_tool "The prose linter" prose_venv.sh "the check of the pages is skipped" &
  test_tool "The schemas' validator" schema_venv.sh "a test is skipped" &
  test_tool "Optuna" optuna_venv.sh "the test that searches by TPE is skipped" &
  test_tool "The site builder" site_venv.sh "its test is skipped" &
  test_tool "NVRTC, which compiles kernels for GPUs" nvrtc_venv.sh "a test is skipped" &
  if [ -n "$(torch_folder)" ] &&
    ! "$venv/bin/python3" scripts/torch_needs.py python >>"$log" 2>&1; then
    say "PEFT and AdapterHub: left out, with the tests beside them: they need a torch that Python" \
      "can import, which the CUDA build without a GPU is not (PETLAB_TORCH_INDEX names an index" \
      "with the CPU build)"
  elif python_libraries=$(scripts/library_venv.sh 2>>"$log"); then
    say "PEFT and AdapterHub: ${python_libraries%/bin/python3}"
  else
    say "PEFT and AdapterHub: cannot be installed ($log); the tests beside them are skipped"
  fi
  wait
fi
say "Set-up is complete"
