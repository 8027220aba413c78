"""What makes a node repeatable: below the shell there is no clock, no chance, no order that differs from run to run."""

import ast
import re
from collections.abc import Container, Iterator
from typing import Final

from tests.tidy.tree import Finding, Source

FORBIDDEN: Final = frozenset(
    "asyncio socket zmq time random os threading uuid secrets datetime logging".split()  # noqa: SIM905  # reads as a list
)
DOORS: Final = {("src/weft/base/chance.py", "random")}
ORDERLESS: Final = frozenset({"sorted", "set", "frozenset", "any", "all", "sum", "min", "max", "len"})
ORDERED: Final = frozenset({"list", "tuple", "enumerate", "iter", "map", "filter", "zip", "next", "reversed"})
SET_METHODS: Final = frozenset({"union", "intersection", "difference", "symmetric_difference"})
SET_OPERATORS: Final = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
COMPREHENSIONS: Final = (ast.ListComp, ast.GeneratorExp, ast.DictComp)
WAITING: Final[tuple[type[ast.expr | ast.stmt], ...]] = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
CONSUMING: Final[tuple[type[ast.AST], ...]] = (ast.For, *COMPREHENSIONS, ast.Starred, ast.Call)
INSTANTS: Final = frozenset({"at", "mono", "wall"})
ROOMS: Final = ("messages.py", "states.py", "core.py", "limits.py")
UNBOUNDED: Final = frozenset({"str", "bytes", "bytearray", "list", "dict", "set", "frozenset", "tuple"})
DECODERS: Final = frozenset({"decode", "Decoder"})


def forbidden_imports(source: Source) -> Iterator[Finding]:
    """No module that brings in clocks, sockets, threads or chance."""
    if not source.below_the_shell:
        return
    for node in source.imports:
        for name in _imported(node):
            top = name.partition(".")[0]
            if top in FORBIDDEN and (source.path, top) not in DOORS:
                yield source.finding(
                    node.lineno, f"imports {top}", "hand in `now` or a `Chance`; the shell does the rest"
                )


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [] if node.level else [node.module or ""]


def waiting(source: Source) -> Iterator[Finding]:
    """Nothing waits below the shell."""
    for kind in WAITING if source.below_the_shell else ():
        for node in source.of(kind):
            yield source.finding(node.lineno, "waits", "emit an effect, take the outcome as an order")


def identity_of_memory(source: Source) -> Iterator[Finding]:
    """`hash` and `id` differ from run to run."""
    for node in source.of(ast.Call) if source.below_the_shell else ():
        if isinstance(node.func, ast.Name) and node.func.id in ("hash", "id"):
            yield source.finding(
                node.lineno, f"{node.func.id}()", "use a key of the value itself, or blake2b of its bytes"
            )


def iteration_over_sets(source: Source) -> Iterator[Finding]:
    """The order of a set differs from run to run; what consumes one must not care."""
    if not source.below_the_shell or source.tree is None:
        return
    known = _set_names(source)
    harmless = {id(argument) for node in source.of(ast.Call) for argument in _orderless_arguments(node)}
    for node in (node for kind in CONSUMING for node in source.of(kind)):
        for consumed in _consumed(node, harmless):
            if _is_set(consumed, known) and not source.is_answered(consumed.lineno):
                yield source.finding(
                    consumed.lineno, "iterates over a set", "sorted(…), or a dict, which keeps its order"
                )


def _orderless_arguments(call: ast.Call) -> list[ast.expr]:
    """Arguments of calls for which order does not matter."""
    return call.args if isinstance(call.func, ast.Name) and call.func.id in ORDERLESS else []


def _consumed(node: ast.AST, harmless: set[int]) -> list[ast.expr]:
    """What a node takes item by item, in order."""
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, COMPREHENSIONS) and id(node) not in harmless:
        return [clause.iter for clause in node.generators]
    if isinstance(node, ast.Starred) and not isinstance(node.ctx, ast.Store):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDERED:
        return node.args
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _consumed_by_method(node, node.func)
    return []


def _consumed_by_method(call: ast.Call, method: ast.Attribute) -> list[ast.expr]:
    if method.attr == "pop" and not call.args:
        return [method.value]
    return call.args if method.attr in ("join", "extend") else []


def _set_names(source: Source) -> frozenset[str]:
    """Names and attributes that are sets by their annotation, or by what is assigned to them, and never otherwise."""
    yes: set[str] = set()
    no: set[str] = set()
    for target, annotation in _annotated(source):
        (yes if _is_set_annotation(annotation) else no).add(_name(target))
    for node in source.of(ast.Assign):
        is_set = _is_set(node.value, frozenset())
        (yes if is_set else no).update(map(_name, node.targets))
    return frozenset(yes - no - {""})


def _annotated(source: Source) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Names that have an annotation, with it."""
    yield from ((node.target, node.annotation) for node in source.of(ast.AnnAssign))
    yield from ((node, node.annotation) for node in source.of(ast.arg) if node.annotation is not None)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name):
        return node.id
    return f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def _is_set_annotation(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        if _name(node.value).lstrip(".") in ("Final", "ClassVar"):
            return _is_set_annotation(node.slice)
        node = node.value
    return _name(node).lstrip(".") in ("set", "frozenset", "Set", "AbstractSet", "MutableSet")


def _is_set(node: ast.expr, known: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in SET_METHODS:
            return _is_set(node.func.value, known) or _is_keys(node.func.value)
        return _name(node.func) in ("set", "frozenset")
    if isinstance(node, ast.BinOp) and isinstance(node.op, SET_OPERATORS):
        return any(_is_set(side, known) or _is_keys(side) for side in (node.left, node.right))
    return _name(node) in known


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def floats_on_instants(source: Source) -> Iterator[Finding]:
    """An instant is whole nanoseconds; a double has forgotten the last 200 of them."""
    if not source.below_the_shell:
        return
    for node in source.of(ast.BinOp):
        if _mixes_float(node):
            yield source.finding(node.lineno, "float arithmetic on an instant", "stay in whole nanoseconds: // and int")
    for target, annotation in _annotated(source):
        if _name(annotation) == "float" and _is_instant(name := _name(target)):
            yield source.finding(annotation.lineno, f"`{name}` is a float", "whole nanoseconds: int")
    for call in source.of(ast.Call):
        if _name(call.func) == "float" and any(map(_holds_instant, call.args)):
            yield source.finding(call.lineno, "float() of an instant", "stay in whole nanoseconds")


def _mixes_float(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    if not any(map(_holds_instant, sides)):
        return False
    return isinstance(node.op, ast.Div) or any(
        isinstance(s, ast.Constant) and isinstance(s.value, float) for s in sides
    )


def _holds_instant(node: ast.expr) -> bool:
    return _is_instant(_name(node))


def _is_instant(name: str) -> bool:
    bare = name.lstrip(".")
    return bare in INSTANTS or bare.endswith("_at")


def wire_fields_without_bound(source: Source) -> Iterator[Finding]:
    """What msgspec decodes by type needs its bound in the type, before anything is allocated."""
    if source.room != "wire":
        return
    decoded = {name for call in source.of(ast.Call) for name in _decoded_types(call)}
    for node in source.of(ast.ClassDef):
        if node.name in decoded and not source.is_answered(node.lineno):
            yield from _unbounded_fields(source, node)


def _unbounded_fields(source: Source, node: ast.ClassDef) -> Iterator[Finding]:
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or source.is_answered(field.lineno, field.end_lineno):
            continue
        if _is_unbounded(field.annotation):
            instead = "Annotated[…, msgspec.Meta(max_length=…)] with a number of limits"
            yield source.finding(field.lineno, f"`{_name(field.target)}` of {node.name} has no bound", instead)


def _decoded_types(node: ast.Call) -> Iterator[str]:
    """Names given as type to a decoder of msgspec."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in DECODERS:
        given = [keyword.value for keyword in node.keywords if keyword.arg == "type"]
        given += node.args[:1] if node.func.attr == "Decoder" else []
        yield from (inner.id for value in given for inner in ast.walk(value) if isinstance(inner, ast.Name))


def _is_unbounded(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.BinOp):
        return _is_unbounded(annotation.left) or _is_unbounded(annotation.right)
    if isinstance(annotation, ast.Subscript):
        name = _name(annotation.value)
        if name == "tuple":
            inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
            return any(isinstance(item, ast.Constant) and item.value is Ellipsis for item in inner)
        return name in UNBOUNDED
    return _name(annotation) in UNBOUNDED


def untyped_decoding(source: Source) -> Iterator[Finding]:
    """8 MB of nested nothing become 567 MB when decoded without a type (SEC-042)."""
    for node in source.of(ast.Call) if source.below_the_shell else ():
        if _is_untyped_decoder(node) and not source.is_answered(node.lineno):
            yield source.finding(node.lineno, "decodes without a type", "msgspec with type=…, or walk over heads first")


def _is_untyped_decoder(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    dotted = ast.unparse(call.func)
    if dotted in ("json.loads", "json.load", "msgpack.unpackb", "msgpack.unpack", "pickle.loads", "yaml.load"):
        return True
    if not dotted.startswith("msgspec.") or call.func.attr not in DECODERS:
        return False
    typed = any(keyword.arg == "type" for keyword in call.keywords)
    return not typed and not (call.func.attr == "Decoder" and call.args)


def rooms_of_cores(files: list[Source]) -> Iterator[Finding]:
    """Who knows one core knows them all."""
    packages: dict[str, set[str]] = {}
    for source in files:
        parts = source.path.split("/")
        if parts[:3] == ["src", "weft", "cores"] and len(parts) > 4 and parts[3] != "kit":
            packages.setdefault("/".join(parts[:4]), set()).add(parts[4])
    for package, names in packages.items():
        for room in ROOMS:
            if room not in names:
                yield Finding(package, 1, f"no {room}", "every core has its four rooms, see src/weft/cores/template")


ROUND: Final = ("weft.sim.",)
"""Where modules may know each other: a simulated machine and what stands on it (docs/decisions/0019)."""


def circles_of_imports(files: list[Source]) -> Iterator[Finding]:
    """Whoever reads a module reads what it imports first; in a circle there is no first (HSE-009).

    Imports inside functions, and for types alone, count. An answer on the line of one of them opens the circle.
    """
    modules = {_module_of(source.path): source for source in files if source.path.startswith("src/") and source.tree}
    edges = {name: dict(_edges(name, source, modules)) for name, source in modules.items()}
    for name, found in edges.items():
        for other, line in found.items():
            if not name.startswith(ROUND) and _reaches(other, name, edges):
                yield modules[name].finding(line, f"a circle: {other} comes back to {name}", "a port, or one module")


def _module_of(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _edges(name: str, source: Source, modules: Container[str]) -> Iterator[tuple[str, int]]:
    for node in source.imports:
        if not source.is_answered(node.lineno, node.end_lineno):
            yield from ((found, node.lineno) for found in _targets(node, modules) if found != name)


def _targets(node: ast.Import | ast.ImportFrom, modules: Container[str]) -> list[str]:
    """The modules that are meant: `a.b` of `from a import b`, or `a` where that is none."""
    bases = _imported(node)
    inner = (
        [f"{base}.{alias.name}" for base in bases for alias in node.names] if isinstance(node, ast.ImportFrom) else []
    )
    return [each for each in inner if each in modules] or [each for each in bases if each in modules]


def _reaches(start: str, goal: str, edges: dict[str, dict[str, int]]) -> bool:
    seen, todo = {start}, [start]
    while todo:
        at = todo.pop()
        if at == goal:
            return True
        new = [other for other in edges[at] if other not in seen]
        seen.update(new)
        todo += new
    return False


SMALL_LINES: Final = 60
JOINED_LINES: Final = 400
OWN_ROOMS: Final = re.compile(r"/(?:\w*states|limits|messages|show|core|__init__)\.py$")
"""Rooms that every package of its kind has, however small they are."""


def small_modules(files: list[Source]) -> Iterator[Finding]:
    """A module of less than 60 lines with one reader is a paragraph of that reader's module (HSE-009).

    Left alone: rooms that each package of the kind has; rows of a series, which a package gathers in its `__init__`; what
    another directory or a late import reads; and what would make the reader's module longer than 400 lines.
    """
    modules = {_module_of(source.path): source for source in files if source.path.startswith("src/") and source.tree}
    readers: dict[str, set[str]] = {}
    for name, source in modules.items():
        for target, reader in _read_by(name, source, modules):
            readers.setdefault(target, set()).add(reader)
    for name, source in modules.items():
        found = readers.get(name, set()) - {name}
        if len(found) != 1 or len(source.lines) >= SMALL_LINES or OWN_ROOMS.search(source.path):
            continue
        home = modules.get(found.pop())
        if home is not None and _could_hold(home, source) and not source.is_answered(1, 12):
            yield source.finding(1, f"{len(source.lines)} lines that one module reads", f"goes home to {home.path}")


def _read_by(name: str, source: Source, modules: Container[str]) -> Iterator[tuple[str, str]]:
    """What a module imports, with its own name; with none for what it imports late."""
    for node in source.imports:
        yield from ((target, "" if node.col_offset else name) for target in _targets(node, modules))


def _could_hold(reader: Source, small: Source) -> bool:
    is_near = reader.path.rpartition("/")[0] == small.path.rpartition("/")[0]
    is_gathered = reader.path.endswith("/__init__.py")
    return is_near and not is_gathered and len(reader.lines) + len(small.lines) <= JOINED_LINES


OF_THE_KIT: Final = {"Table": "plain_table of weft.cli.kit.console", "EXIT_CODES": "the names of weft.cli.kit.exits"}
COMPLAINT: Final = re.compile(r"""print\(f?["']weft: """)


def nouns_past_the_kit(source: Source) -> Iterator[Finding]:
    """One table, one complaint, one list of exit statuses for all nouns of the command line (HSE-004)."""
    if source.room != "cli" or source.path.startswith("src/weft/cli/kit/"):
        return
    used = [node.func for node in source.of(ast.Call)] + [node.value for node in source.of(ast.Subscript)]
    for node in used:
        if (name := _name(node)) in OF_THE_KIT and not source.is_answered(node.lineno):
            yield source.finding(node.lineno, f"a `{name}` of its own", OF_THE_KIT[name])
    for number, line in enumerate(source.lines, 1):
        if COMPLAINT.search(line) and not source.is_answered(number):
            yield source.finding(number, "complains by itself", "complain or notice of weft.cli.kit.exits")


OF_OUTBOX: Final = frozenset({"Persist", "Tell", "Reply", "Perform", "Connect"})


def effects_past_the_outbox(source: Source) -> Iterator[Finding]:
    """What a core wants done goes into the outbox of the kit: who knows one core's walls knows them all."""
    if source.room != "cores" or source.path.startswith("src/weft/cores/kit/"):
        return
    for node in source.of(ast.Call):
        if _name(node.func) in OF_OUTBOX and not source.is_answered(node.lineno):
            yield source.finding(node.lineno, f"makes a `{_name(node.func)}`", "a verb of weft.cores.kit.outbox.Outbox")


def functions_in_tables(source: Source) -> Iterator[Finding]:
    """A state table holds no logic."""
    if source.room == "cores" and source.path.endswith("/states.py"):
        for node in source.functions:
            if not source.is_answered(node.lineno):
                yield source.finding(node.lineno, f"`{node.name}` in a state table", "logic stands in core.py")
