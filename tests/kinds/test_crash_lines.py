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
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/s/tools/ring", line 7, in <module>
  |     asyncio.run(main())
  |   File "/usr/lib/python3.11/asyncio/taskgroups.py", line 145, in __aexit__
  |     raise me from None
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/s/tools/ring", line 3, in pull
    |     raise ValueError("no rope")
    | ValueError: no rope
    +------------------------------------
"""
GO = """panic: assignment to entry in nil map

goroutine 1 [running]:
panic({0x45d7a0, 0x47b5d8})
\t/usr/local/go/src/runtime/panic.go:884 +0x212
main.pull(...)
\t/s/ring/main.go:3
main.main()
\t/s/ring/main.go:4 +0x45
exit status 2
"""
RUBY_GEM = (
    "/usr/lib/ruby/3.1.0/json/common.rb:216:in `parse': unexpected token at '' (JSON::ParserError)\n"
    "\tfrom /usr/lib/ruby/3.1.0/json/common.rb:216:in `parse'\n\tfrom /s/tools/ring:4:in `<main>'\n"
)
PHP = (
    "PHP Fatal error:  Uncaught Exception: no rope in /s/ring.php:4\nStack trace:\n#0 {main}\n"
    "  thrown in /s/ring.php on line 4\n"
)
RUST = "\nthread 'main' panicked at src/main.rs:3:5:\nno rope\nnote: run with `RUST_BACKTRACE=1` environment variable\n"
LUA = "lua: /s/ring.lua:4: no rope\nstack traceback:\n\t[C]: in function 'error'\n"
DENO = "error: Uncaught (in promise) TypeError: no moon\n    at tide (file:///s/almanac.ts:12:9)\n"
DOTNET = """Unhandled exception. System.InvalidOperationException: no rope
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Ring.Pull() in /s/Ring.cs:line 4
   at Ring.Main() in /s/Ring.cs:line 9
"""


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (GROUP, "ValueError: no rope (ring, line 3)"),
        (GO, "panic: assignment to entry in nil map (main.go, line 3)"),
        (RUBY_GEM, "unexpected token at '' (JSON::ParserError) (ring, line 4)"),
        (PHP, "Exception: no rope (ring.php, line 4)"),
        (
            "PHP Parse error:  syntax error, unexpected token \"}\" in /s/ring.php on line 3\n",
            'syntax error, unexpected token "}" (ring.php, line 3)',
        ),
        (RUST, "panic: no rope (main.rs, line 3)"),
        ("thread 'main' panicked at 'no rope', src/main.rs:3:5\n", "panic: no rope (main.rs, line 3)"),
        (LUA, "no rope (ring.lua, line 4)"),
        (DENO, "TypeError: no moon (almanac.ts, line 12)"),
        (DOTNET, "System.InvalidOperationException: no rope (Ring.cs, line 4)"),
        (
            "not ok at /usr/share/perl5/JSON/PP.pm line 900.\n\tmain::pull() called at /s/ring line 9\n",
            "not ok (ring, line 9)",
        ),
        (
            "Can't locate Rope.pm in @INC (you may need to install the Rope module) (@INC contains: /etc/perl /usr/"
            "share/perl5) at /s/ring line 2.\nBEGIN failed--compilation aborted at /s/ring line 2.\n",
            "Can't locate Rope.pm in @INC (you may need to install the Rope module) (ring, line 2)",
        ),
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


def test_a_long_message_does_not_hide_the_place() -> None:
    said = last_words(f"no rope {'/usr/lib ' * 60}there at /s/ring line 2.\n")
    assert said.endswith("… (ring, line 2)"), said
    assert len(said) < 320


def test_what_is_no_crash_ends_with_its_last_line() -> None:
    assert last_words("warming up\nno oil\n") == "stderr ends: no oil"
    assert last_words("") == ""


@pytest.mark.parametrize(
    ("program", "source", "line"),
    [
        ("python3", "def pull():\n    raise KeyError('rope')\npull()\n", "KeyError: 'rope' (tool, line 2)"),
        ("node", "function pull() {\n  throw new RangeError('rope');\n}\npull();\n", "RangeError: rope (tool, line 2)"),
        ("node", "throw 'a text';\n", "a text (tool, line 1)"),
        (
            "node",
            "class Lost extends Error {\n  name = 'Lost';\n}\nasync function go() {\n  throw new Lost('no way');\n}\n"
            "go();\n",
            "Lost: no way (tool, line 5)",
        ),
        ("node", "\nrequire('./nothere');\n", "Error: Cannot find module './nothere' (tool, line 2)"),
        ("node", "Promise.reject(5);\n", 'a promise was rejected and nobody caught it: "5"'),
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
