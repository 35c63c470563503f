"""Commands are run with real processes: how they end, what they print, what they are given."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.attempt import TimeLimit
from mulligan.domain.errors import DeniedError, MisconfiguredError, ShutdownError, UnavailableError
from mulligan.sandbox.cancellation import CURRENT_CANCELLATION, SHUTDOWN, Cancellation
from mulligan.sandbox.process import Command, run
from world.processes import MULLIGAN, output_of, processes_in, shell, wait_until, with_argv

MEGABYTE = 1024 * 1024


def python(code: str, directory: Path, timeout: float = 20) -> Command:
    return with_argv(shell("", directory, timeout=timeout), sys.executable, "-I", "-S", "-c", code)


# How it ended


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("true", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", -15),
        ("kill -KILL $$", -9),
        ("kill -SEGV $$", -11),
        ("kill -KILL 0", -9),
        ("kill -TERM 0; sleep 9", -15),
    ],
)
def test_the_end_is_told_as_subprocess_tells_it(line: str, code: int, tmp_path: Path) -> None:
    finished = run(shell(line, tmp_path))
    assert (finished.exit_code, finished.stopped_by) == (code, None)


def test_the_duration_is_measured(tmp_path: Path) -> None:
    finished = run(shell("sleep 0.3", tmp_path))
    assert timedelta(seconds=0.3) < finished.duration < timedelta(seconds=30)


# What it printed


def test_output_is_in_the_log_while_the_command_runs(tmp_path: Path) -> None:
    command = shell("echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2", tmp_path)
    running = threading.Thread(target=run, args=[command])
    running.start()
    log = tmp_path / "command.log"
    wait_until(lambda: log.exists() and log.read_text() == "one\n")
    (tmp_path / "go").touch()
    running.join()
    assert log.read_text() == "one\ntwo\n"


def test_the_log_has_all_and_memory_the_tail(tmp_path: Path) -> None:
    finished = run(shell("seq 100000", tmp_path))
    everything = b"".join(b"%d\n" % number for number in range(1, 100001))
    assert finished.tail == everything[-65536:]
    assert finished.output_bytes == len(everything)
    assert (tmp_path / "command.log").read_bytes() == everything


def test_the_log_ends_at_its_limit_and_the_tail_does_not(tmp_path: Path) -> None:
    finished = run(replace(shell("seq 100000; echo last", tmp_path), max_log_bytes=100_000))
    assert (tmp_path / "command.log").stat().st_size == 100_000
    assert finished.text.endswith("\n99999\n100000\nlast\n")


def test_output_that_is_not_text_is_survived(tmp_path: Path) -> None:
    assert run(shell(r"printf 'a\377b'", tmp_path)).text == "a\N{REPLACEMENT CHARACTER}b"


def test_nothing_is_lost_when_a_command_ends_before_it_was_heard(tmp_path: Path) -> None:
    code = (
        "import fcntl, os, signal\n"
        "fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)\n"
        "mulligan = int(open(f'/proc/{os.getppid()}/stat').read().split()[3])\n"
        "os.kill(mulligan, signal.SIGSTOP)\n"
        "os.write(1, b'x' * (1 << 20))\n"
        "open('written', 'w').close()\n"
    )
    (tmp_path / "print.py").write_text(code)
    argv = [sys.executable, "-c", MULLIGAN, f"exec {sys.executable} -I print.py", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as mulligan:
        try:
            wait_until(lambda: (tmp_path / "written").exists() and processes_in(tmp_path) == [])
        finally:
            mulligan.send_signal(signal.SIGCONT)
        assert mulligan.communicate()[0] == f"{1 << 20}\n"


def test_a_command_needs_no_log(tmp_path: Path) -> None:
    assert run(replace(shell("echo x", tmp_path), log=None)).text == "x\n"


def test_the_directory_of_the_log_is_made(tmp_path: Path) -> None:
    log = tmp_path / "a" / "b" / "c.log"
    run(replace(shell("echo x", tmp_path), log=log))
    assert log.read_text() == "x\n"


@pytest.mark.parametrize(
    ("log", "why"), [("/dev/full", "No space left"), ("/proc/x/c.log", "No such file")]
)
def test_a_log_that_cannot_be_written_is_the_machines_fault(
    log: str, why: str, tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError, match=f"The log {log} could not be written: {why}"):
        run(replace(shell("echo x; sleep 20", tmp_path), log=Path(log)))
    assert processes_in(tmp_path) == []


# What it is given


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat | cksum", "cksum"),
        (
            "(while dd bs=65536 count=1 2>>errors | grep -q .; do sleep 0.01; done); echo read",
            "read",
        ),
        ("true; echo never read", "never read"),
        ("exec <&-; sleep 0.1; echo closed", "closed"),
        ("head -c 3", "aaa"),
    ],
    ids=["all", "slowly", "never", "closed", "in part"],
)
def test_a_megabyte_of_input_is_taken_however_it_is_read(
    line: str, expected: str, tmp_path: Path
) -> None:
    content = b"a" * MEGABYTE
    sum_of_it = subprocess.run(["/usr/bin/cksum"], input=content, capture_output=True, check=True)
    finished = run(shell(line, tmp_path, stdin=content))
    assert finished.exit_code == 0
    assert finished.text.strip() == expected.replace("cksum", sum_of_it.stdout.decode().strip())


def test_input_arrives_byte_for_byte(tmp_path: Path) -> None:
    content = "é\0\r\n\N{SNOWMAN}".encode() + bytes(range(256))
    run(shell("cat > copy", tmp_path, stdin=content))
    assert (tmp_path / "copy").read_bytes() == content


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"LANG": "C", "A": "1=2", "EMPTY": ""},
        {"PATH": "/usr/bin:/bin", "LC_ALL": "POSIX"},
        {"PYTHONHOME": "/nowhere", "PYTHONSTARTUP": "x", "PYTHONPATH": "/nowhere"},
    ],
)
def test_the_environment_is_what_was_given_and_nothing_else(
    given: dict[str, str], tmp_path: Path
) -> None:
    command = with_argv(shell("", tmp_path), "/bin/cat", "/proc/self/environ")
    output = run(replace(command, environment=given)).tail
    assert sorted(output.split(b"\0")[:-1]) == sorted(
        f"{name}={value}".encode() for name, value in given.items()
    )


def test_three_descriptors_are_inherited_and_those_named(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "for fd in range(3, 3000):\n"
        "    try: print(fd, os.read(fd, 10))\n"
        "    except OSError: pass\n"
    )
    read, write = os.pipe()
    os.write(write, b"named")
    try:
        assert run(python(code, tmp_path)).text == ""
        finished = run(replace(python(code, tmp_path), pass_fds=(read,)))
        assert finished.text == f"{read} b'named'\n"
    finally:
        os.close(read)
        os.close(write)


def test_a_pipe_that_is_passed_on_ends_when_the_command_closes_it(tmp_path: Path) -> None:
    read, write = os.pipe()
    code = f"import os, time; os.write({write}, b'x'); os.close({write}); time.sleep(20)"
    command = replace(python(code, tmp_path), pass_fds=(write,))
    running = threading.Thread(target=suppressed, args=[command])
    running.start()
    wait_until(lambda: bool(processes_in(tmp_path)))
    os.close(write)
    with os.fdopen(read, "rb") as ours:
        assert ours.read() == b"x"
    assert processes_in(tmp_path) != []
    SHUTDOWN.set()
    running.join()


def test_signals_have_their_usual_meaning_again(tmp_path: Path) -> None:
    status = output_of("cat /proc/self/status", tmp_path).splitlines()
    masks = dict(line.split(":\t") for line in status if line.startswith("Sig"))
    # 32 and 33 are the C library's own; posix_spawn(3) leaves them ignored.
    usual = (1 << 31) - 1
    assert {int(masks[name], 16) & usual for name in ("SigBlk", "SigIgn", "SigCgt")} == {0}


def test_the_command_leads_a_session_of_its_own(tmp_path: Path) -> None:
    code = "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())"
    assert run(python(code, tmp_path)).text == "True\n"


def test_an_interrupt_from_the_terminal_reaches_mulligan_alone(tmp_path: Path) -> None:
    code = "import os; print(os.getpgid(os.getppid()))"
    assert int(run(python(code, tmp_path)).text) != os.getpgid(0)


def test_descriptors_beyond_1024_do_no_harm(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = min(hard, 4096)
    if many < 1200:
        pytest.skip("this machine does not allow 1,200 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (many, hard))
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        assert output_of("echo x", tmp_path) == "x"
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Programs that cannot be started


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (None, 0, "it was not found"),
        ("#!/bin/sh\n", 0o644, "Permission denied"),
        ("#!/nowhere/sh\n", 0o755, "the interpreter in its first line was not"),
        ("neither script nor program", 0o755, "Exec format error"),
    ],
)
def test_a_program_that_cannot_be_started_is_named_with_the_reason(
    content: str | None, mode: int, why: str, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "agent"
    program.parent.mkdir()
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    for name in (str(program), "agent"):
        command = replace(
            with_argv(shell("", tmp_path), name), environment={"PATH": str(program.parent)}
        )
        with pytest.raises(MisconfiguredError, match=f"The program '{name}' cannot be .*{why}"):
            run(command)


def test_a_program_is_looked_for_along_the_path(tmp_path: Path) -> None:
    for place, mode in (("a", 0o644), ("b", 0o755)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "tool").write_text(f"#!/bin/sh\necho {place}\n")
        (tmp_path / place / "tool").chmod(mode)
    path = f"/nowhere:{tmp_path}/a/tool:{tmp_path}/a:{tmp_path}"
    command = replace(with_argv(shell("", tmp_path), "tool"), environment={"PATH": f"{path}/b"})
    assert run(command).text == "b\n"
    with pytest.raises(MisconfiguredError, match="Permission denied"):
        run(replace(command, environment={"PATH": path}))


def test_an_empty_path_never_means_the_worktree(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    command = replace(with_argv(shell("", tmp_path), "tool"), environment={"PATH": ":/bin:"})
    with pytest.raises(MisconfiguredError, match="it was not found"):
        run(command)


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        UnavailableError, match=r"/bin/sh cannot be started in .*/gone: No such file"
    ):
        run(replace(shell("true", tmp_path / "gone"), log=None))


@pytest.mark.parametrize(
    ("line", "variables", "why"),
    [
        ("echo \0", {}, "embedded null byte"),
        ("echo", {"A": "\0"}, "embedded null byte"),
        ("echo", {"A=B": "c"}, "a variable cannot have the name 'A=B'"),
        ("echo", {"": "c"}, "a variable cannot have the name ''"),
    ],
)
def test_what_no_program_can_get_is_told(
    line: str, variables: dict[str, str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(MisconfiguredError, match=f"'/bin/sh' cannot be started: {why}"):
        run(replace(shell(line, tmp_path), environment=variables))


def test_a_machine_that_is_full_is_not_the_operators_fault(tmp_path: Path) -> None:
    busy = tmp_path / "busy"
    busy.write_bytes(Path("/bin/true").read_bytes())
    busy.chmod(0o755)
    with busy.open("ab"), pytest.raises(UnavailableError, match="for now: Text file busy"):
        run(with_argv(shell("", tmp_path), str(busy)))


# Limits


def test_at_the_time_out_it_is_asked_to_end_and_may_say_a_last_word(tmp_path: Path) -> None:
    line = "trap 'echo bye; exit 3' TERM; echo started; sleep 20 & wait"
    finished = run(shell(line, tmp_path, timeout=0.3))
    assert finished.stopped_by is TimeLimit.TIMEOUT
    assert (finished.exit_code, finished.text) == (3, "started\nbye\n")
    assert (tmp_path / "command.log").read_text() == "started\nbye\n"
    assert finished.duration < timedelta(seconds=15)


def test_who_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    line = "trap '' TERM; (trap '' TERM; sleep 21) & sleep 22; sleep 23"
    finished = run(shell(line, tmp_path, timeout=0.3, grace=0.3))
    assert (finished.stopped_by, finished.exit_code) == (TimeLimit.TIMEOUT, -9)
    assert timedelta(seconds=0.6) < finished.duration < timedelta(seconds=15)
    assert processes_in(tmp_path) == []


def test_each_process_is_asked_once(tmp_path: Path) -> None:
    child = "trap 'echo asked' TERM; while :; do sleep 0.05; done"
    finished = run(shell(f"({child}) & sleep 20", tmp_path, timeout=0.3, grace=0.5))
    assert finished.text.count("asked") == 1


def test_silence_is_a_limit_of_its_own(tmp_path: Path) -> None:
    finished = run(shell("echo x; sleep 20", tmp_path, stall=0.4))
    assert (finished.stopped_by, finished.exit_code) == (TimeLimit.STALL_TIMEOUT, -15)


def test_who_keeps_talking_does_not_stall(tmp_path: Path) -> None:
    line = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done"
    assert run(shell(line, tmp_path, stall=0.5)).stopped_by is None


def test_who_listens_may_end_it(tmp_path: Path) -> None:
    heard = bytearray()

    def listen(chunk: bytes) -> TimeLimit | None:
        heard.extend(chunk)
        return TimeLimit.BUDGET if b"2" in heard else None

    line = "echo 1; sleep 0.2; echo 2; sleep 20; echo 3"
    finished = run(replace(shell(line, tmp_path), on_output=listen))
    assert (finished.stopped_by, finished.exit_code) == (TimeLimit.BUDGET, -15)
    assert bytes(heard) == finished.tail == b"1\n2\n"


def test_a_command_that_closes_its_output_is_still_stopped(tmp_path: Path) -> None:
    finished = run(shell("exec >&- 2>&-; sleep 20", tmp_path, timeout=0.4))
    assert finished.stopped_by is TimeLimit.TIMEOUT


# Shutdown


@pytest.fixture(autouse=True)
def _not_stopping() -> Iterator[None]:
    yield
    SHUTDOWN.clear()


def suppressed(command: Command) -> None:
    with suppress(ShutdownError):
        run(command)


def test_nothing_is_started_once_mulligan_stops(tmp_path: Path) -> None:
    SHUTDOWN.set()
    with pytest.raises(ShutdownError, match="Mulligan is stopping"):
        run(shell("touch started", tmp_path))
    assert not (tmp_path / "started").exists()


def test_all_that_runs_is_ended_when_mulligan_stops(tmp_path: Path) -> None:
    ended = list[str]()

    def work(name: str) -> None:
        line = f"trap 'touch {name}.bye; exit' TERM; touch {name}.up; sleep 20 & wait"
        try:
            run(replace(shell(line, tmp_path), log=None))
        except ShutdownError:
            ended.append(name)

    threads = [threading.Thread(target=work, args=[name]) for name in "abcd"]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(list(tmp_path.glob("*.up"))) == 4)
    began = time.monotonic()
    SHUTDOWN.set()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 15
    assert sorted(ended) == ["a", "b", "c", "d"]
    assert len(list(tmp_path.glob("*.bye"))) == 4
    assert processes_in(tmp_path) == []


def test_one_piece_of_work_is_ended_for_a_reason_of_its_own(tmp_path: Path) -> None:
    withdrawn, heard, stop = (
        DeniedError("The request was withdrawn."),
        list[object](),
        Cancellation(),
    )

    def work() -> None:
        CURRENT_CANCELLATION.set(stop)
        try:
            run(shell("touch up; sleep 20", tmp_path))
        except DeniedError as error:
            heard.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until((tmp_path / "up").exists)
    stop.cancel(withdrawn)
    assert output_of("echo others go on", tmp_path) == "others go on"
    thread.join()
    assert heard == [withdrawn]


# What it costs


def test_nothing_is_used_up_by_many_runs(tmp_path: Path) -> None:
    def used() -> tuple[int, int, int]:
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
        return (
            len([*Path("/proc/self/fd").iterdir()]),
            threading.active_count(),
            len(children.split()),
        )

    program = shell("echo x; sleep 30 &", tmp_path, stdin=b"x" * 100_000)
    missing = with_argv(program, "/nowhere")
    run(program)
    before = used()
    for _ in range(10):
        run(program)
        with pytest.raises(MisconfiguredError):
            run(missing)
    # One that stayed at each run would be ten; other parts of this process take one or two.
    assert all(now - then < 10 for now, then in zip(used(), before, strict=True))
