"""Programs that tests need and that Python does not bring."""

import os
import shutil
from typing import NoReturn

import pytest


def required(program: str) -> str:
    """The path of a program, without which the test is left out; in CI it fails."""
    found = shutil.which(program)
    if found is None:
        leave_out(f"{program} is missing")
    return found


def leave_out(reason: str) -> NoReturn:
    """Leave a test out for what is missing on this machine; in CI it fails."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
