#!/usr/bin/env python3
"""Compiles petlab's kernels for GPUs with NVRTC, which needs no GPU, and checks what they need: how
much they spill from registers to memory, and that a block of any GPU has their shared memory.
Needs scripts/nvrtc_venv.sh; skipped without it."""
import argparse
import ctypes
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]
KERNELS = ROOT / "trainer/compute/kernels"
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
# (file, type, size): heads of 64, as in BERT, RoBERTa and T5; rows of 768 and 1024.
FORMS = [("attention", number, 64) for number in ("FLOAT", "BFLOAT16", "DOUBLE")]
FORMS += [("rows", number, size) for number in ("FLOAT", "BFLOAT16", "DOUBLE") for size in (3, 4)]
FORMS += [("masks", "FLOAT", 1), ("masks", "DOUBLE", 1), ("dropout", "FLOAT", 1)]
SHARED_BYTES = 48 * 1024
# The compiler spills a few bytes of attention's backward so that more warps fit. Forbidden to, it
# made the kernels 1.3 to 2.1 times slower on an H200.
SPILLED_BYTES = 32
REPORT = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill "
                    r"stores, (\d+) bytes spill loads.*?Used (\d+) registers(.*?)\n", re.DOTALL)


class Compiler:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)

    def call(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def report(self, text, options):
        """Returns the compiler's log. Exits with it if the text is wrong."""
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"petlab.cu", 0, None, None)
        words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        error = self.call("nvrtcCompileProgram", program, len(options), words)
        size = ctypes.c_size_t()
        self.call("nvrtcGetProgramLogSize", program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.call("nvrtcGetProgramLog", program, log)
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        if error:
            sys.exit(f"{' '.join(options)}: {log.value.decode()}")
        return log.value.decode()


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    there = subprocess.run([ROOT / "scripts/nvrtc_venv.sh", "--there"], stdout=subprocess.PIPE, text=True)
    if there.returncode:
        print("skipped: scripts/nvrtc_venv.sh has not been run")
        sys.exit(77)
    packages = pathlib.Path(there.stdout.strip()).parents[1] / "lib"
    libraries = next(packages.glob("python*/site-packages/nvidia/cu13/lib"))
    for builtins in libraries.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)  # NVRTC looks for it in the system's folders only
    compiler = Compiler(next(libraries.glob("libnvrtc.so.*")))
    failed = False
    print("| kernel | type, size | GPU | registers | shared bytes | spilled bytes |\n" + "| --- " * 6 + "|")
    for name, number, size in FORMS:
        text = "".join((KERNELS / part).read_text() for part in ("arguments.h", "prelude.cu", name + ".cu"))
        for architecture in ARCHITECTURES:
            # As in trainer/compute/cuda_kernels.cpp.
            log = compiler.report(text, [f"--gpu-architecture={architecture}", "--std=c++17",
                                         "-default-device", f"-DNUMBER_{number}", f"-DSIZE={size}",
                                         "--ptxas-options=-v"])
            found = REPORT.findall(log)
            if not found:
                sys.exit(f"no report for {name}: {log}")
            for kernel, _, stores, loads, registers, rest in found:
                shared = re.search(r"(\d+) bytes smem", rest)
                shared = int(shared[1]) if shared else 0
                spilled = int(stores) + int(loads)
                failed |= spilled > SPILLED_BYTES or shared > SHARED_BYTES
                print(f"| {kernel} | {number}, {size} | {architecture} | {registers} | {shared} | {spilled} |")
    if failed:
        sys.exit(f"a kernel spills more than {SPILLED_BYTES} bytes or needs more than {SHARED_BYTES} of "
                 "shared memory")


if __name__ == "__main__":
    main()
