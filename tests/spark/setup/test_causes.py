"""The line of a Spark error that says what happened, out of the hundred that it has."""

import pytest
from ottla.spark.setup.causes import is_cancelled, sentence_of

CALL = "An error occurred while calling o63.collectToPython.\n"
STACK = "\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2856)\n"
STAGE = (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0"
    " failed 1 times, most recent failure: Lost task 0.0 in stage 1.0 (TID 1) (node executor 1): "
)
NOT_PARQUET = (
    f"{CALL}{STAGE}org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error"
    f" while reading file file:///a.parquet.\n{STACK}\nDriver stacktrace:\n{STACK}"
    "Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error"
    f" while reading file file:///a.parquet.\n{STACK}"
    "Caused by: java.lang.RuntimeException: file:/a.parquet is not a Parquet file. Expected magic"
    f" number at tail, but found [0, 1, 2, 3]\n{STACK}\t... 17 more\n"
)
EXITED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n"
CRASHED = (
    f"{CALL}{STAGE}{EXITED}{STACK}Caused by: {EXITED}{STACK}"
    f"Caused by: java.io.EOFException\n{STACK}\t... 16 more\n"
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "worker.py", line 1, in main\n    process()\n'
    "ValueError: the tape is full\nand more on that\n\n"
)
RESET = CRASHED.replace("java.io.EOFException\n", "java.net.SocketException: Connection reset\n")
IN_WORKER = (
    f"{CALL}{STAGE}org.apache.spark.api.python.PythonException: {TRACEBACK}{STACK}"
    f"Caused by: org.apache.spark.api.python.PythonException: {TRACEBACK}{STACK}\t... 1 more\n"
)
JOB_3 = "Job 3 cancelled part of cancelled job group a"
CANCELLED = f"{CALL}: org.apache.spark.SparkException: {JOB_3}\n{STACK}"
GONE = "java.io.FileNotFoundException: File file:/gone does not exist"
NO_FORMAT = "org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] no delta"
NO_PARQUET = (
    "java.lang.RuntimeException: file:/a.parquet is not a Parquet file. Expected magic number at"
    " tail, but found [0, 1, 2, 3]"
)
REFUSED = "java.net.ConnectException: refused"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NOT_PARQUET, NO_PARQUET),
        (CRASHED, "Python worker exited unexpectedly (crashed)"),
        (RESET, "Python worker exited unexpectedly (crashed)"),
        (IN_WORKER, "ValueError: the tape is full"),
        (CANCELLED, JOB_3),
        (f"{CALL}: java.lang.IllegalStateException: no\n{STACK}Caused by: {GONE}\n{STACK}", GONE),
        # An inner failure behind the traceback of a worker is the cause of it.
        (f"{IN_WORKER}Caused by: {REFUSED}\n", REFUSED),
        # Which class is looked for by the name of a format says nothing to anybody.
        (f"{CALL}: {NO_FORMAT}\nCaused by: java.lang.ClassNotFoundException: a.B\n", NO_FORMAT),
        # What a message holds is no cause.
        ("[PATH_NOT_FOUND] no path\nCaused by: who knows: what\n", "[PATH_NOT_FOUND] no path"),
        ("", "RuntimeError"),
        (CALL, CALL.strip()),
    ],
)
def test_the_innermost_cause_is_told(text: str, says: str) -> None:
    assert sentence_of(RuntimeError(text)) == says


@pytest.mark.parametrize(
    ("sentence", "cancelled"),
    [
        (JOB_3, True),
        ("[SPARK_JOB_CANCELLED] Job 5 cancelled as part of cancellation of all jobs", True),
        ("[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008", True),
        ("ValueError: the order was cancelled", False),
    ],
)
def test_a_cancelled_job_is_known_from_a_failed_one(sentence: str, cancelled: bool) -> None:
    assert is_cancelled(sentence) is cancelled
