#!/usr/bin/env python3
"""Prints the CUDA libraries that this Python's torch wheel needs and that are not installed.

    PYTHON scripts/torch_needs.py cpu      prints one requirement per line: to compute on a CPU
    PYTHON scripts/torch_needs.py gpu      the same: to compute on a GPU
    PYTHON scripts/torch_needs.py python   exits with 1 if Python cannot import torch without
                                           them

Nothing is printed for a CPU build. The requirements come from the wheel's metadata.
"""
import importlib.metadata
import sys

from pip._vendor.packaging.requirements import Requirement

# A CUDA build links its CPU library only to these of the packages it lists.
ON_CPU = ("cudart", "cupti", "runtime")


def named():
    """The wheel's requirements for CUDA's libraries that apply on this machine."""
    for text in importlib.metadata.requires("torch") or ():
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        requirement.marker = None
        if requirement.name.startswith("nvidia-") or requirement.name == "cuda-toolkit":
            yield requirement


def for_cpu(requirements):
    for requirement in requirements:
        if requirement.name == "cuda-toolkit":
            requirement.extras &= set(ON_CPU)
            yield requirement
        elif any(part in requirement.name for part in ON_CPU):
            yield requirement


def is_there(requirement):
    """True if that version is installed, including the requirements of its extras."""
    try:
        distribution = importlib.metadata.distribution(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    if not requirement.specifier.contains(distribution.version, prereleases=True):
        return False
    for text in distribution.requires or ():
        needed = Requirement(text)
        for extra in requirement.extras:
            if needed.marker and needed.marker.evaluate({"extra": extra}):
                needed.marker = None
                if not is_there(needed):
                    return False
                break
    return True


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("cpu", "gpu", "python"):
        sys.exit("torch_needs.py: expected cpu, gpu or python")
    needs = list(named())
    if sys.argv[1] == "cpu":
        needs = list(for_cpu(needs))
    missing = [requirement for requirement in needs if not is_there(requirement)]
    if sys.argv[1] == "python":
        sys.exit(1 if missing else 0)
    for requirement in missing:
        print(requirement)


main()
