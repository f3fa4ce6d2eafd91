#!/usr/bin/env bash
# Fuzzes all readers and tokenizers, or the given targets, for SECONDS of processor time each, under
# AddressSanitizer and UBSan (docs/internals/fuzzing.md).
#
#   scripts/fuzz.sh SECONDS [TARGET...]     TARGET as in tests/fuzz/CMakeLists.txt: tokenizer_13a
#
# New inputs are kept in build/fuzz/corpus, where the next run starts. Stops at the first finding
# and leaves its input in build/fuzz/findings. Targets that write files run about ten times as fast
# with TMPDIR in memory: TMPDIR=/dev/shm.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ "${1:-}" =~ ^[1-9][0-9]*$ ]] || die "the first argument is '${1:-}', must be seconds a target"
seconds=$1
shift
command -v clang++ >/dev/null || die "there is no clang++; scripts/setup.sh --dev installs it"
cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DPETLAB_FUZZ=ON -DPETLAB_SANITIZE=ON -DPETLAB_WITH_TORCH=OFF -DPETLAB_BENCH=OFF \
  -DPETLAB_TESTS=ON >build/fuzz-configure.log 2>&1 ||
  { cat build/fuzz-configure.log >&2 && die "cmake could not configure build/fuzz"; }
mapfile -t known < <(ninja -C build/fuzz -t targets all | sed -n 's/^fuzz_\([a-z0-9_]*\): phony$/\1/p' |
  grep -v _inputs | sort)
targets=("${known[@]}")
if [ $# -gt 0 ]; then
  targets=("$@")
  for target in "${targets[@]}"; do
    [[ " ${known[*]} " == *" $target "* ]] || die "there is no target '$target'; known: ${known[*]}"
  done
fi
cmake --build build/fuzz -j "$(jobs_for_build)" --target "${targets[@]/#/fuzz_}"

# cpu_seconds PID: processor time of a running process; 0 if it has ended.
ticks=$(getconf CLK_TCK)
cpu_seconds() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || { echo 0 && return; }
  # After "pid (name) ": the state is field 3, utime 14, stime 15.
  local fields
  read -ra fields <<<"${stat##*) }"
  echo $(((fields[11] + fields[12]) / ticks))
}
fuzzer=
trap '[ -z "$fuzzer" ] || kill "$fuzzer" 2>/dev/null || true' EXIT
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  findings=build/fuzz/findings/$target
  log=build/fuzz/$target.log
  mkdir -p "$corpus" "$findings"
  build/fuzz/bin/fuzz_"$target" -max_len=512 -print_final_stats=1 -artifact_prefix="$findings/" \
    "$corpus" >"$log" 2>&1 &
  fuzzer=$!
  # Measured in processor time, which reflects the work done even on a busy machine.
  while kill -0 "$fuzzer" 2>/dev/null; do
    sleep 1
    used=$(cpu_seconds "$fuzzer")
    if [ "$used" -ge "$seconds" ]; then
      # SIGUSR1 ends libFuzzer between two inputs. On SIGINT it prints and cleans up inside the
      # signal handler, which hangs if the signal arrives during malloc.
      kill -USR1 "$fuzzer" || true
      break
    fi
  done
  status=0
  wait "$fuzzer" || status=$?
  fuzzer=
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ "$status" -ne 0 ] || ! grep -q 'trying to exit gracefully' "$log"; then
    tail -n 40 "$log" >&2
    die "$target: a finding (exit code $status) in $findings; the whole output: $log"
  fi
  say "$target: no finding in $used processor seconds, $runs inputs"
done
