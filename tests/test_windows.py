"""Windows is out, and that is said in one sentence before anything else goes wrong."""

import subprocess
import sys

import pytest

# What a Windows Python lacks cannot be imported here either; nothing of ours may come to it.
PRETEND = """
import sys
sys.platform = "win32"
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
sys.argv = {argv!r}
sys.orig_argv = {orig!r}
import narratoria
"""


def on_windows(argv, orig=("python",)):
    code = PRETEND.format(argv=argv, orig=list(orig))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_an_import_is_an_import_error_that_names_wsl():
    ended = on_windows(["script.py"])
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: Narratoria runs on Linux and macOS") and "WSL" in last


@pytest.mark.parametrize(
    ("argv", "orig"),
    [
        (["C:\\\\Scripts\\\\narratoria.exe", "play"], ["python"]),
        (["C:\\\\Scripts\\\\narratoria-script.py"], ["python"]),
        (["-m"], ["python", "-m", "narratoria"]),
    ],
)
def test_the_command_says_one_sentence_and_ends(argv, orig):
    ended = on_windows(argv, orig)
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.count("\n") == 1 and "WSL" in ended.stderr, ended.stderr
