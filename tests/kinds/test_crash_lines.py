"""The line that matters in a crash, as each language tells it; where the language is installed, by a real one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from narratoria.kinds.process.crash_lines import crash_line, last_words

PYTHON = """Traceback (most recent call last):
  File "/s/tools/ring", line 9, in <module>
    main()
  File "/s/tools/ring", line 5, in main
    json.loads("{")
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
json.decoder.JSONDecodeError: Expecting property name: line 1 column 2 (char 1)
"""
NODE = """/s/tools/almanac:12
  throw new TypeError("no moon");
  ^

TypeError: no moon
    at tide (/s/tools/almanac:12:9)
    at Module._compile (node:internal/modules/cjs/loader:1256:14)

Node.js v18.19.0
"""
RUBY = "/s/tools/ring:4:in `pull': no rope (RuntimeError)\n\tfrom /s/tools/ring:9:in `<main>'\n"
PERL = "no rope at /s/tools/ring line 4, <STDIN> line 1.\n\tmain::pull() called at /s/tools/ring line 9\n"
JAVA = """Exception in thread "main" java.lang.RuntimeException: outer
\tat Ring.main(Ring.java:9)
Caused by: java.lang.IllegalStateException: no rope
\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)
\tat Ring.pull(Ring.java:4)
\t... 1 more
"""


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (PYTHON, "json.decoder.JSONDecodeError: Expecting property name: line 1 column 2 (char 1) (ring, line 5)"),
        (
            '  File "/s/ring", line 2\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n',
            "SyntaxError: invalid syntax (ring, line 2)",
        ),
        (NODE, "TypeError: no moon (almanac, line 12)"),
        (RUBY, "no rope (RuntimeError) (ring, line 4)"),
        (PERL, "no rope (ring, line 4)"),
        (JAVA, "java.lang.IllegalStateException: no rope (Ring.java, line 4)"),
        (
            "Ring.java:4: error: ';' expected\n  int x = 1\n           ^\n1 error\nerror: compilation failed\n",
            "error: ';' expected (Ring.java, line 4)",
        ),
        (
            'syntax error at /s/ring line 3, near "my "\nGlobal symbol "$x" requires explicit package name at /s/ring '
            "line 4.\nExecution of /s/ring aborted due to compilation errors.\n",
            "syntax error (ring, line 3)",
        ),
        ("warming up\nall is well\n", ""),
        ("12:30:01: done\n", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_line_that_matters_is_found(stderr: str, line: str) -> None:
    assert crash_line(stderr) == line


def test_what_is_no_crash_ends_with_its_last_line() -> None:
    assert last_words("warming up\nno oil\n") == "stderr ends: no oil"
    assert last_words("") == ""


@pytest.mark.parametrize(
    ("program", "source", "line"),
    [
        ("python3", "def pull():\n    raise KeyError('rope')\npull()\n", "KeyError: 'rope' (tool, line 2)"),
        ("node", "function pull() {\n  throw new RangeError('rope');\n}\npull();\n", "RangeError: rope (tool, line 2)"),
        ("perl", "sub pull {\n  die 'no rope';\n}\npull();\n", "no rope (tool, line 2)"),
        ("ruby", "def pull\n  raise 'no rope'\nend\npull\n", "no rope (RuntimeError) (tool, line 2)"),
    ],
)  # fmt: skip
def test_a_real_crash_is_understood(tmp_path: Path, program: str, source: str, line: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (tmp_path / "tool").write_text(source, encoding="utf-8")
    ended = subprocess.run([program, tmp_path / "tool"], capture_output=True, timeout=60)
    assert crash_line(ended.stderr.decode()) == line
