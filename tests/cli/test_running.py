"""How a command is stopped, and how an error of the library is told at the command line."""

import logging
import os
import signal
import subprocess
import sys
import time

import pytest
import typer

from rekindle.cli.running import Command, in_flags, load
from rekindle.errors import InvalidSetting


@pytest.mark.parametrize(
    ("command", "message", "words"),
    [
        ("audit", "`fail_above` needs `truth`.", "--fail-above needs --truth."),
        ("attack", "`start` is late.", "--from is late."),
        ("attack", "`dataset` is empty.", "DATASET is empty."),
        ("audit", "Use `resume=False`.", "Use --no-resume."),
        ("audit", "Use `names=False`.", "Use no --names."),
        ("audit", "Set `absent='zero'`.", "Set --absent zero."),
        ("audit", "Set `absent='a b'`.", "Set --absent 'a b'."),
        ("defend", "`below` is -1.", "--suppress-below is -1."),
        ("defend", "Use `overwrite=True`.", "Use --overwrite."),
        ("attack", "`first_step_counts` is odd.", "`first_step_counts` is odd."),
        ("attack", "The file `notes` is odd.", "The file `notes` is odd."),
    ],
)
def test_settings_are_told_as_options(command, message, words):
    assert in_flags(InvalidSetting(message), typer.Context(load(command))) == words


def test_an_error_ends_with_2(capsys):
    app = typer.Typer()

    @app.command(cls=Command)
    def fail(seeds: int = 0) -> None:
        raise InvalidSetting("`seeds` is 0; it must be at least 1.")

    with pytest.raises(SystemExit) as stop:
        app([])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "Error: --seeds is 0; it must be at least 1.\n"


def test_what_the_library_logs_is_shown(capsys):
    app = typer.Typer()

    @app.command(cls=Command)
    def work() -> None:
        logging.getLogger("rekindle").info("Compiling [/x].")

    for _ in range(2):
        with pytest.raises(SystemExit):
            app([])
        assert capsys.readouterr().err == "Compiling [/x].\n"
    logging.getLogger("rekindle").info("Compiling.")
    assert capsys.readouterr().err == ""


LOSING = """
import sys, time
from rekindle.cli.running import Command, stopped_by_signals
import typer

app = typer.Typer()

class Deaf:
    def __del__(self):  # Python drops what is raised here, as in a callback of C code
        print("ready", flush=True)
        time.sleep(1)

@app.command(cls=Command)
def work(putting_away: float = 0.0):
    try:
        Deaf()
        time.sleep(20)
    except KeyboardInterrupt:
        print("putting away", flush=True)
        time.sleep(putting_away)
        print("put away", flush=True)
        raise

with stopped_by_signals():
    app()
"""


def start(*arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", LOSING, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_python_drops_is_not_lost(number):
    process = start()
    time.sleep(0.2)
    process.send_signal(number)
    begin = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 10
    assert (process.returncode, out) == (130, "putting away\nput away\n")
    assert err == "Stopped. Finished files are kept; run the same command again.\n"


def test_a_file_that_was_being_opened_is_not_warned_of():
    script = (
        "import os, signal; from rekindle.cli.running import stopped_by_signals\n"
        "with stopped_by_signals():\n"
        "    try:\n"
        "        open(os.devnull), {}\n"
        "    except KeyboardInterrupt:\n"
        "        print('stopped')\n"
    )
    shown = []
    for interrupted in ("os.kill(os.getpid(), signal.SIGINT)", "print('stopped')"):
        command = [sys.executable, "-W", "error", "-c", script.format(interrupted)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == "stopped\n"
        shown.append("ResourceWarning" in done.stderr)
    assert shown == [False, True]


def test_what_is_being_put_away_is_not_interrupted():
    process = start("--putting-away", "1.5")
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "putting away\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "put away\n")
    assert err.startswith("Stopping. Ask a third time to stop at once.\n")


def test_the_third_request_stops_at_once():
    process = start("--putting-away", "30")
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "putting away\n"
    for _ in range(2):
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
