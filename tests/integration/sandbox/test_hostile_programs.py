"""Programs that want more than they may have: each ends, its host lives, and the next program runs."""

from __future__ import annotations

import os
import resource

import pytest

from wayline.sandbox import Failed, Limits, Sandbox
from wayline.testkit.walks import cases

from .programs import asked, program, run

HOST_MEMORY_MAX_BYTES = 128 * 1024 * 1024
"""How much the host may grow over one program."""

LIMITS = Limits(execution_s_max=0.5, memory_bytes_max=32 * 1024 * 1024)

MEMORY = {
    "a list without end": "held = []\nwhile True: held.append('x' * 1000)",
    "a repeated text": "'x' * 10**10",
    "a repeated list": "[0] * 10**10",
    "a power": "2 ** 10**9",
    "a shift": "1 << 10**11",
    "texts that double": "text = 'x'\nwhile True: text += text",
    "a replacement": "('a' * 10**6).replace('a', 'b' * 10**6)",
    "a join": "('x' * 10**6).join(['y'] * 10**6)",
    "a width in a format": "'{:>9999999999}'.format('x')",
    "a width in an f-string": "width = 10**10\nf'{0:{width}}'",
    "an old format": "'%9999999999d' % 1",
    "an eager generator": "sum(n for n in range(10**10))",
    "a list of a range": "list(range(10**10))",
    "a dict that grows": "held = {}\nfor n in range(10**9): held[n] = str(n)",
    "cycles of lists": "held = []\nwhile True:\n    one = [0] * 1000\n    one.append(one)\n    held.append(one)",
    "a product": "import itertools\nlist(itertools.product(range(100), repeat=10))",
    "bytes": "b'x' * 10**10",
    "padding": "'x'.ljust(10**10)",
    "a large exception": "raise ValueError('x' * 10**9)",
}
TIME = {
    "a loop": "while True: pass",
    "a loop that catches everything": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "a loop in finally": "try:\n    while True: pass\nfinally:\n    while True: pass",
    "a count": "for n in range(10**15): pass",
    "squares of squares": "number = 3\nwhile True: number = number * number",
    "digits": "import sys\nsys.set_int_max_str_digits(0)\nstr(7 ** 5_000_000)",
    "a sort by a slow key": "sorted(range(10**6), key=lambda n: sum(range(n)))",
    "sleeps without end": "import asyncio\nwhile True: await asyncio.sleep(0)",
    "gathered loops": (
        "import asyncio\nasync def spin():\n    while True: await asyncio.sleep(0)\n"
        "await asyncio.gather(*[spin() for n in range(50)])"
    ),
    "a membership of a range": "any(n in range(0, 10**18, 7) for n in range(10**9))",
}
STACK = {
    "recursion": "def f(n): return f(n + 1)\nf(0)",
    "two functions": "def f(n): return g(n)\ndef g(n): return f(n)\nf(0)",
    "recursion that catches": "def f():\n    try: return f()\n    except RecursionError: return f()\nf()",
    "a lambda of itself": "f = lambda g: g(g)\nf(f)",
    "deep brackets": "(" * 20_000 + "1" + ")" * 20_000,
    "deep lists": "[" * 5_000 + "]" * 5_000,
    "deep operators": "-" * 20_000 + "1",
    "deep attributes": "a" + ".a" * 20_000,
    "deep text": "eval('(' * 10_000 + ')' * 10_000)",
    "equal nested lists": (
        "one, other = [], []\nfor n in range(200_000):\n    one, other = [one], [other]\none == other"
    ),
    "json of nested lists": "import json\nheld = []\nfor n in range(200_000): held = [held]\njson.dumps(held)",
    "nested json": "import json\njson.loads('[' * 500_000)",
}
OUTSIDE = {
    "a file": "open('/etc/passwd').read()",
    "a written file": "open('/tmp/x', 'w').write('x')",
    "a path": "from pathlib import Path\nPath('/etc/passwd').read_text()",
    "a directory": "import os\nos.listdir('/')",
    "the environment": "import os\nos.environ['PATH']",
    "one variable": "import os\nos.getenv('PATH').upper()",
    "a command": "import os\nos.system('id')",
    "a process": "__import__('subprocess').run(['id'])",
    "a socket": "__import__('socket').socket()",
    "a library": "__import__('ctypes').CDLL(None)",
    "a thread": "__import__('threading').Thread()",
    "an import by name": "__import__('importlib').import_module('os')",
    "a request": "__import__('urllib.request').request.urlopen('http://127.0.0.1')",
    "input": "input()",
    "a process that is ended": "__import__('os').kill(1, 9)",
    "an exit": "__import__('os')._exit(0)",
}
ATTRIBUTES = {
    "subclasses": "().__class__.__bases__[0].__subclasses__()",
    "globals": "(lambda: 0).__globals__",
    "code": "(lambda: 0).__code__.co_consts",
    "builtins": "__builtins__.__dict__['open']",
    "a frame": "(lambda: 0).__closure__[0].cell_contents",
    "a traceback": "try:\n    1 / 0\nexcept Exception as error:\n    error.__traceback__.tb_frame.f_globals",
    "an attribute by name": "getattr((), '__cl' + 'ass__').__mro__[1].__subclasses__()",
    "an attribute in a format": "'{0.__class__.__init__.__globals__}'.format(ValueError())",
    "a tool's insides": "fetch.__globals__",
    "a class that is changed": "str.upper = lambda self: 'x'",
    "eval": "eval('().__class__.__base__.__subclasses__()')",
    "exec": "exec('import socket')",
    "compile": "eval(compile('1', 'x', 'eval').co_code)",
}
HOST = {
    "calls without end": "while True:\n    try:\n        await fetch(url='a')\n    except Exception: pass",
    "undefined names without end": "while True:\n    try:\n        eval('nobody')\n    except NameError: pass",
    "files without end": "while True:\n    try:\n        open('/x')\n    except PermissionError: pass",
    "prints without end": "while True:\n    try:\n        print('x' * 10_000)\n    except BaseException: pass",
    "calls beside each other without end": (
        "import asyncio\nawait asyncio.gather(*[fetch(url=str(n)) for n in range(100_000)])"
    ),
    "an argument of shared lists": (
        "held = [0]\nfor n in range(60): held = [held, held]\nawait crm_save(record={'x': held})"
    ),
    "a deep argument": "held = []\nfor n in range(20_000): held = [held]\nawait crm_save(record={'x': held})",
    "a large argument": "await fetch(url='x' * 10_000_000)",
    "a hundred thousand arguments": "await eval('fetch')(**{'a' + str(n): n for n in range(100_000)})",
    "a huge integer": "await eval('crm_save')(record={'n': 1 << 1_000_000})",
    "a long name": "await eval('x' * 1_000_000)()",
}
TYPES = {
    "a type that doubles": "held = [0]\n" + "held = [held, held]\n" * 3_000,
    "a literal that changes": "n = 0\nwhile n < 10:\n" + "    n = n + 1\n" * 3_000,
    "a union of literals": (
        "import random\nn = 0\n"
        + "".join(f"if random.random() > 2: n = {number}\n" for number in range(1_800))
        + "m = n\n"
        + "m = m * n\n" * 20
    ),
    "lambdas in lambdas": "f = " + "lambda x: " * 3_000 + "1",
    "a long sum": "x = " + " + ".join(["'a'"] * 12_000),
}
"""Hostile to the type check."""
FAILING = MEMORY | TIME | STACK | OUTSIDE | ATTRIBUTES | HOST | TYPES
ENDING = {
    "a repr of nested lists": "held = []\nfor n in range(200_000): held = [held]\nrepr(held)",
    "an argument of itself": "held = {}\nheld['x'] = held\nawait crm_save(record=held)",
    "half a character": "await fetch(url='\\ud800')",
    "a value of shared lists": "held = [0]\nfor n in range(60): held = [held, held]\nheld",
    "a value of itself": "held = []\nheld.append(held)\nheld",
    "a deep value": "held = []\nfor n in range(5_000): held = [held]\nheld",
    "a large value": "['x' * 1000] * 5_000",
    "a huge integer as value": "1 << 1_000_000",
    "an endless expression": "import re\nre.match('(a+)+$', 'a' * 5_000 + 'b')",
    "a function as value": "fetch",
    "a class as value": "class Thing: pass\nThing",
    "a builtin as value": "print",
    "half a character as value": "'\\ud800'",
    "sleep": "import time\ntime.sleep(10**6)",
    "sleeps": "import asyncio\nawait asyncio.gather(*[asyncio.sleep(10**6) for n in range(1_000)])\nlen('done')",
}
"""These may end with a value, as long as it is a small one."""


def memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_there_are_enough_of_them():
    assert len(FAILING | ENDING) >= 45


@pytest.fixture
async def sandbox():
    async with Sandbox(limits=LIMITS) as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", cases(FAILING, share=8))
async def test_a_hostile_program_fails_and_the_next_one_runs(sandbox: Sandbox, name: str):
    before = memory_bytes()

    turn = await run(sandbox, FAILING[name])

    assert isinstance(turn, Failed), turn
    assert turn.message
    assert len(turn.message) < 5_000
    assert memory_bytes() - before < HOST_MEMORY_MAX_BYTES
    assert asked(await sandbox.start(program("await fetch(url='next')"))) == [(1, "fetch", {"url": "next"})]


@pytest.mark.parametrize("name", cases(ENDING, share=4))
async def test_a_hostile_value_stays_small_and_the_next_program_runs(sandbox: Sandbox, name: str):
    before = memory_bytes()

    turn = await run(sandbox, ENDING[name])

    assert len(repr(turn)) < 3 * LIMITS.value_bytes_max
    assert memory_bytes() - before < HOST_MEMORY_MAX_BYTES
    assert asked(await sandbox.start(program("await fetch(url='next')"))) == [(1, "fetch", {"url": "next"})]


@pytest.mark.parametrize("name", cases(OUTSIDE | ATTRIBUTES | STACK, share=8))
async def test_the_interpreter_holds_without_the_type_check(sandbox: Sandbox, name: str):
    hidden = f"exec({FAILING[name]!r})"

    turn = await run(sandbox, hidden)

    assert isinstance(turn, Failed), turn
    assert turn.reason != "rejected", turn.message
    assert os.environ["PATH"] not in turn.message
