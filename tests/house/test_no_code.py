"""Nothing that comes over a network reaches code: where the product could run text, by name, and that there is no other place (CFG-083)."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.places import places_of
from tests.tidy.tree import parsed

NAMES = {"eval", "exec", "compile", "__import__", "import_module"}
MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "runpy", "code"}
ATTRIBUTES = {"import_module", "system", "popen", "unsafe_load", "literal_eval"}
EXPECTED = {
    "weft/__init__.py": {"import_module"},  # of modules in its own table, when they are asked for
    "weft/catalog.py": {"import_module"},  # likewise
    "weft/doc.py": {"import_module"},  # likewise
    "weft/cli/chain_replay.py": {"import_module"},  # of handlers that whoever types names
    "weft/cli/completion.py": {"shell"},  # the name of the shell that a script is made for; nothing is run
    "weft/node/functions.py": {"import_module"},  # of filters in a node's own file; replicated ones may name none
    "weft/node/recording.py": {"pickle"},  # a file that its owner names to `weft sim replay`; only Weft's own classes
    "weft/shell/mqtt.py": {"import_module"},  # of a name that stands there
    "weft/wire/store/yamltext.py": {"yaml"},  # which it writes and never reads
}


def found(text: str) -> Iterator[str]:
    """What of that a module uses."""
    module = parsed(text)
    imported = [name.name for node in module.of(ast.Import) for name in node.names]
    imported += [node.module or "" for node in module.of(ast.ImportFrom)]
    yield from (name for name in imported if name.partition(".")[0] in MODULES)
    for call in module.of(ast.Call):
        match call.func:
            case ast.Name(id=name) if name in NAMES:
                yield name
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                yield name
            case _:
                continue
    yield from (
        "shell" for word in module.of(ast.keyword) if word.arg == "shell" and getattr(word.value, "value", True)
    )


FORMS = {"format", "format_map"}
EXPECTED_FORMS = {
    "weft/cli/doc_lines.py": {"words"},  # of the table of lines in that file
    "weft/cli/lake_keep.py": {"line"},  # likewise
    "weft/cli/store.py": {"words"},  # likewise
    "weft/pipeline/doctor.py": {"running.read"},  # Spark's: the name of a source
    "weft/pipeline/source.py": {"spark.read"},  # likewise
    "weft/pipeline/views/view.py": {"self.sql"},  # of the views of this package
    "weft/shell/serve.py": {"line"},  # of a constant
    "weft/sim/plan.py": {"msgspec.json"},  # of JSON
    "weft/torture/plan.py": {"msgspec.json"},  # likewise
}
ASKING = {"execute", "executemany", "executescript", "sql"}
HEARING = ("base", "wire", "cores", "node", "shell", "client")
"""Rooms that hear a network."""
EXPECTED_ASKING = {"weft/cores/chains/expression.py": {"self._program"}}  # a filter of the configuration, in CEL


def calls(text: str, names: set[str]) -> Iterator[str]:
    """Of what, that is no constant, a module calls one of these methods."""
    for call in parsed(text).of(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in names:
            told = ast.unparse(call.func.value)
            if not isinstance(call.func.value, ast.Constant) and not re.match(r"[A-Z_][A-Z0-9_]*\b", told):
                yield told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.format(1)", ["x"]),
        ("'{}'.format(x)", []),
        ("LINE.format(x)", []),
        ("_LINES[x].format(y)", []),
        ("m.a.format_map(y)", ["m.a"]),
    ],
)
def test_what_is_made_of_a_form_is_found(text: str, expected: list[str]) -> None:
    assert expected == list(calls(text, FORMS))


@pytest.mark.proves("SEC-040", part="only constants are format strings, and what hears a network says no SQL")
def test_no_text_of_others_is_a_form_and_who_hears_a_network_says_no_sql() -> None:
    assert EXPECTED_FORMS == places_of(lambda text: calls(text, FORMS))
    assert EXPECTED_ASKING == places_of(lambda text: calls(text, ASKING), *HEARING)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import pickle", ["pickle"]),
        ("from yaml import load", ["yaml"]),
        ("eval(x)", ["eval"]),
        ("importlib.import_module(x)", ["import_module"]),
        ("import_module(x)", ["import_module"]),
        ("os.system(x)", ["system"]),
        ("subprocess.run(x, shell=True)", ["shell"]),
        ("subprocess.run(x, shell=False)", []),
        ("re.compile(x)", []),
    ],
)
def test_what_is_looked_for_is_found(text: str, expected: list[str]) -> None:
    assert expected == list(found(text))


@pytest.mark.proves(
    "CFG-083", part="no text of the network becomes code: the places that could are named, and none hears it"
)
@pytest.mark.proves(
    "SEC-040",
    part="`pickle`, `eval`, `exec`, imports by name, `yaml.load` and shells are used nowhere but in the places named",
)
def test_text_becomes_code_nowhere_but_where_it_is_the_users_own() -> None:
    assert EXPECTED == places_of(found)
