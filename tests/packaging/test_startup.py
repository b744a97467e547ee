"""`import ottla` loads the engine and the records; the audit comes when it is first used."""

import pickle
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla import cli
from support.logs import write_log_directory

OURS = {
    "ottla",
    "ottla._engine",
    "ottla.audit",
    "ottla.errors",
    "ottla.on_demand",
    "ottla.records",
}

# Each costs a good part of what the engine does, or starts something.
COSTLY = {
    "asyncio",
    "concurrent",
    "dataclasses",
    "datetime",
    "difflib",
    "inspect",
    "json",
    "logging",
    "multiprocessing",
    "numpy",
    "pickle",
    "selectors",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "urllib",
}


def printed_by(program: str) -> str:
    """What a program prints in an interpreter of its own."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement: str) -> set[str]:
    """Modules that a statement loads, beyond those that every interpreter has."""
    program = (
        f"import sys; before = {{*sys.modules}}\n{statement}\nprint(*{{*sys.modules}} - before)"
    )
    return set(printed_by(program).split())


def test_the_package_loads_the_engine_the_records_and_nothing_costly() -> None:
    loaded = loaded_by("import ottla")
    assert {name for name in loaded if name.startswith("ottla")} == OURS
    assert loaded & COSTLY == set()


def test_a_verb_loads_no_other() -> None:
    loaded = loaded_by("from ottla.cli import run; run(['serve', '--port', 'none'])")
    verbs = {f"ottla.cli.{verb}" for verb in cli.VERBS}
    assert loaded & verbs == {"ottla.cli.serve"}
    assert not loaded & {"ottla.audit.pipeline", "ottla.logs", "ottla.storage", "rich", "numpy"}


def test_an_audit_of_sound_logs_does_not_load_what_findings_events_and_advice_are_made_of(
    tmp_path: Path,
) -> None:
    logs = write_log_directory(tmp_path / "logs")
    loaded = loaded_by(f"from ottla.cli import run; assert run(['audit', {str(logs)!r}]) == 0")
    assert "ottla.audit.pipeline" in loaded
    assert not loaded & {
        "ottla.audit.advice",
        "ottla.audit.catalogue.finding",
        "ottla.audit.result.events",
        "ottla.audit.result.grouped",
    }


@pytest.mark.parametrize(
    "use",
    [
        "assert callable(ottla.audit)",
        "from ottla import audit; assert audit is ottla.audit",
        "from ottla.audit import audit; assert audit is ottla.audit",
        "import ottla.audit; assert callable(ottla.audit)",
        "import ottla.audit.pipeline; assert callable(ottla.audit)",
        "from ottla.audit import AuditResult; assert AuditResult is ottla.AuditResult",
        "from ottla.audit import pipeline; assert callable(ottla.audit) and pipeline.run_audit",
        "import ottla.cli; assert callable(ottla.audit)",
        "ottla.storage.files_of; ottla.severity.Severity",
    ],
)
def test_the_audit_is_a_function_and_a_package_whatever_is_imported_first(use: str) -> None:
    assert printed_by(f"import ottla\n{use}") == ""


def test_every_public_name_is_there_and_listed() -> None:
    for name in ("ottla", "ottla.client", "ottla.records"):
        program = f"import {name} as p; print({{*p.__all__}} - {{*dir(p)}} or 'none')"
        assert printed_by(program) == "none\n"
    names = "from ottla import *; import ottla; print(len({*ottla.__all__} - {*globals()}))"
    assert printed_by(names) == "0\n"
    for package in (ottla, sys.modules["ottla.audit"]):
        public: list[str] = package.__all__
        assert all(getattr(package, name) is not None for name in public)


def test_a_name_that_is_not_there_is_an_attribute_error_with_the_package() -> None:
    for name in ("ottla", "ottla.audit"):
        package: Any = sys.modules[name]
        with pytest.raises(AttributeError, match=f"^module '{name}' has no attribute 'verdicts'$"):
            _ = package.verdicts


@pytest.mark.parametrize("name", ["audit", "AuditResult", "predict_recovery", "TopicConfig"])
def test_a_public_name_is_pickled_and_found_by_an_interpreter_without_the_audit(name: str) -> None:
    pickled = pickle.dumps(getattr(ottla, name))
    assert printed_by(f"import pickle; print(pickle.loads({pickled!r}).__name__)") == f"{name}\n"


@pytest.mark.measures
def test_the_package_starts_in_a_fraction_of_what_the_audit_takes() -> None:
    def cpu_of(statement: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed_by(statement)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    rounds = [(cpu_of("import ottla"), cpu_of("import ottla.audit.pipeline")) for _ in range(5)]
    package, audit = (min(column) for column in zip(*rounds, strict=True))
    assert package < 0.5 * audit, rounds
