#!/usr/bin/env python3
"""What the torch wheel of this Python needs of CUDA's libraries and does not have yet.

    PYTHON scripts/torch_needs.py cpu      prints a requirement a line: to compute on a CPU
    PYTHON scripts/torch_needs.py gpu      the same: to compute on a GPU
    PYTHON scripts/torch_needs.py python   exit code 1 where Python could not import torch for want
                                           of them

Nothing is printed for a CPU build. What is needed stands in the wheel's own metadata.
"""
import importlib.metadata
import sys

from pip._vendor.packaging.requirements import Requirement

# Of all that a CUDA build names, these alone are linked to its library for CPUs.
ON_CPU = ("cudart", "cupti", "runtime")


def named():
    """The requirements of the wheel that are CUDA's libraries, as they apply here."""
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
    """Whether it is installed in that version, with what its extras ask for."""
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
