"""Help, version and completion: what somebody asks for who does not know the program yet."""

import shutil
import subprocess
import sys
from pathlib import Path

import ottla
import pytest
from ottla import cli
from support.commands import Run

PROGRAM = "from ottla.cli import main; main()"


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("verb", ["", *sorted(cli.VERBS)])
def test_help_is_whole_at_every_width(
    run: Run, monkeypatch: pytest.MonkeyPatch, verb: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = run(*([verb] if verb else []), "--help")
    assert ran.status == 0
    below = ran.out.partition("\n\n")[2]
    assert "..." not in below
    assert "…" not in below
    lists = below.partition("Options:\n")[2]
    assert lists
    assert [line for line in lists.splitlines() if len(line) > columns] == []


def test_the_first_sentence_of_each_verb_is_told_whole(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    told = " ".join(run("--help").out.split())
    assert "Rebuild indexes, producer snapshots and leader epochs." in told


def test_help_of_a_verb_is_what_its_option_shows(run: Run) -> None:
    assert run("help", "read").out == run("read", "--help").out
    assert run("help").out == run("--help").out


def test_help_of_no_verb_names_the_nearest(run: Run) -> None:
    ran = run("help", "raed")
    assert (ran.status, ran.out) == (64, "")
    assert "no command is named 'raed'; did you mean read?" in ran.err


@pytest.mark.parametrize("asked", ["version", "-v", "-V", "--version"])
def test_the_version_has_four_names(run: Run, asked: str) -> None:
    assert (run(asked).status, run(asked).out) == (0, f"ottla {ottla.__version__}\n")


def completed(words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash is told to go on with behind the last of these words."""
    monkeypatch.setenv("_OTTLA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ottla re", ["plain,read", "plain,rebuild"]),
        ("ottla read --isolation ", ["plain,read_uncommitted", "plain,read_committed"]),
        ("ottla explain crc-", ["plain,crc-mismatch"]),
        ("ottla help ser", ["plain,serve"]),
        ("ottla inspect ", ["file,"]),
    ],
)
def test_a_shell_is_told_what_may_come_next(
    words: str, offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completed(words, monkeypatch) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_what_it_can_read(run: Run, shell: str, tmp_path: Path) -> None:
    ran = run("completion", shell)
    assert ran.status == 0
    assert f"_OTTLA_COMPLETE={shell}_complete" in ran.out
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(ran.out)
        subprocess.run([shell, "-n", str(script)], check=True, timeout=60)


def test_a_shell_that_is_not_known_is_wrong_usage(run: Run) -> None:
    assert run("completion", "tcsh").status == 64
    ran = run("completion")
    assert ran.status == 64
    assert "\\x09" not in ran.err


@pytest.mark.parametrize("verb", sorted(cli.VERBS))
def test_what_a_status_means_fits_a_narrow_screen(run: Run, verb: str) -> None:
    _, found, statuses = run("help", verb).out.partition("Exit status:\n")
    lines = statuses.partition("\n\n")[0].splitlines() if found else []
    assert [line for line in lines if len(line) > 60] == []
