"""Makes every one-line change of the core's forward passes and initialisers, as syntax trees."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from types import CodeType

import vit_steps

FOLDER = Path(vit_steps.__file__).parent
INIT = "__init__"
PLACES = {
    "patches": {"patchify", INIT, "forward"},
    "tokens": {INIT, "forward"},
    "heads": {"split_heads", "merge_heads", "split_qkv"},
    "attention": {"scaled_dot_product_attention", INIT, "forward"},
    "encoder": {INIT, "forward"},
    "vit": {"init_weights", "pool_tokens", INIT, "read", "features", "forward"},
}


def path_of(file: str) -> str:
    return str(FOLDER / f"{file}.py")


SOURCES = {file: Path(path_of(file)).read_text("utf-8") for file in PLACES}
SOUND = {file: compile(source, path_of(file), "exec") for file, source in SOURCES.items()}


@dataclass(frozen=True)
class Mutation:
    """One line of the package, changed."""

    file: str  # without its ending
    line: int
    before: str  # the statement
    after: str
    code: CodeType = field(compare=False, repr=False)  # of the whole file as it is now

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} → {self.after}"


# What can be changed -----------------------------------------------------------------------------

OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OTHERS = {
    "norm1": ("norm2",),
    "norm2": ("norm1",),
    "weight": ("bias",),
    "zeros_": ("ones_",),
    "trunc_normal_": ("normal_",),
    "softmax": ("log_softmax",),
    "GELU": ("ReLU", "Tanh"),
}
LIBRARIES = {"self", "nn", "nn.init", "torch", "F"}  # what stands before a dot and is no tensor
NUMBERS = {0: (1, -1), 1: (0, 2, -1), 2: (1, 3), -1: (-2, 0, 1)}
NUMBERS |= {0.02: (1.0, 0.0), 0.2: (1.0, 0.0), 0.5: (1.0, 2.0)}


def value(node: ast.expr) -> object:
    """The constant that an expression is, a minus before it included; None if it is none."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def patterns(text: str) -> Iterator[str]:
    """An einops pattern with two of its names swapped, on one side or the other."""
    sides = text.split("->")
    for i, side in enumerate(sides):
        for one, two in combinations(re.findall(r"\w+", side), 2):
            swapped = {one: two, two: one}
            mixed = re.sub(r"\w+", lambda m, s=swapped: s.get(m[0], m[0]), side)
            yield "->".join([*sides[:i], mixed, *sides[i + 1 :]])


def of_expression(node: ast.expr, names: list[str]) -> Iterator[ast.expr]:
    """What may stand in place of an expression."""
    constant = value(node)
    if isinstance(constant, bool):
        yield ast.Constant(not constant)
    elif isinstance(constant, (int, float)):
        yield from (ast.parse(repr(n), mode="eval").body for n in NUMBERS.get(constant, ()))
    elif isinstance(constant, str) and "->" in constant:
        yield from map(ast.Constant, patterns(constant))
    elif isinstance(node, ast.BinOp):
        yield node.left
        yield node.right
        yield ast.BinOp(node.right, node.op, node.left)
        if type(node.op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Attribute):
        for other in OTHERS.get(node.attr, ()):
            yield ast.Attribute(node.value, other, ast.Load())
        if node.attr == "mT":
            yield node.value
    elif isinstance(node, ast.Call):
        yield from node.args[:1]
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in LIBRARIES:
            yield node.func.value
        for i, (one, two) in enumerate(pairwise(node.args)):
            swapped = [*node.args[:i], two, one, *node.args[i + 2 :]]
            yield ast.Call(node.func, swapped, node.keywords)
        for i, keyword in enumerate(node.keywords):
            others = node.keywords[:i] + node.keywords[i + 1 :]
            yield ast.Call(node.func, node.args, others)
            if keyword.arg == "eps":
                eps = ast.keyword("eps", ast.Constant(1e-3))
                yield ast.Call(node.func, node.args, [*others, eps])
    elif isinstance(node, ast.Name) and node.id in names:
        yield from (ast.Name(name, ast.Load()) for name in names if name != node.id)


def of_statement(node: ast.stmt) -> Iterator[ast.stmt]:
    """What may stand in place of a statement."""
    if isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    if isinstance(node, (ast.Assign, ast.Expr, ast.For)):
        yield ast.Pass()
    if isinstance(node, ast.For):
        later = ast.Subscript(node.iter, ast.Slice(ast.Constant(1)), ast.Load())
        yield ast.For(node.target, later, node.body, [])
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        parts = node.targets[0].elts
        for i, (one, two) in enumerate(pairwise(parts)):
            swapped = ast.Tuple([*parts[:i], two, one, *parts[i + 2 :]], ast.Store())
            yield ast.Assign([swapped], node.value)


def of_border(node: ast.AST) -> bool:
    """Whether a statement only asks what an input is, or is a docstring."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = ast.unparse(node.value.func)
        return called.startswith("check_") or called.endswith(("grid_size", INIT))
    raises = isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)
    return raises or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def tensors_of(function: ast.FunctionDef) -> list[str]:
    """The names that stand for tensors in a function that has no initial values to set."""
    if function.name == INIT:
        return []
    names = [a.arg for a in function.args.args if ast.unparse(a.annotation or a) == "Tensor"]
    stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and is_store(n)]
    other = {"_", "pattern", "rate", "mask", "attention", "tokens", "embed_dim", "block"}
    return sorted({*names, *stored} - other)


def is_store(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def text_of(statement: ast.AST) -> str:
    """A statement in one line; of an `if` or a loop the head."""
    return ast.unparse(ast.fix_missing_locations(statement)).splitlines()[0]


@dataclass(frozen=True)
class Spot:
    """A place in a tree, and what may stand there instead."""

    holder: ast.AST
    name: str
    at: int | None
    old: ast.AST
    new: ast.AST
    statement: ast.stmt

    def put(self, node: ast.AST) -> None:
        """Put a node there."""
        if self.at is None:
            setattr(self.holder, self.name, node)
        else:
            getattr(self.holder, self.name)[self.at] = node


def spots(holder: ast.AST, names: list[str], around: ast.stmt | None = None) -> Iterator[Spot]:
    """All that can be changed below a node."""
    for name, held in ast.iter_fields(holder):
        for i, child in enumerate(held if isinstance(held, list) else [held]):
            at = i if isinstance(held, list) else None
            if isinstance(child, ast.stmt) and not of_border(child):
                for new in of_statement(child):
                    yield Spot(holder, name, at, child, new, child)
                yield from spots(child, names, child)
            elif isinstance(child, ast.expr) and around is not None:
                if not is_store(child):
                    for new in of_expression(child, names):
                        yield Spot(holder, name, at, child, new, around)
                if value(child) is None:  # a minus belongs to its number
                    yield from spots(child, names, around)
            elif isinstance(child, (ast.keyword, ast.comprehension)):
                yield from spots(child, names, around)


def mutations() -> list[Mutation]:
    """All of them, each once."""
    made: dict[tuple[str, int, str], Mutation] = {}
    for file, source in SOURCES.items():
        tree = ast.parse(source)
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef) or function.name not in PLACES[file]:
                continue
            body = ast.Module(function.body, [])  # without the signature
            for spot in list(spots(body, tensors_of(function))):
                line, before = spot.statement.lineno, text_of(spot.statement)
                spot.put(spot.new)
                after = text_of(spot.new if spot.old is spot.statement else spot.statement)
                if after != before and (file, line, after) not in made:
                    code = compile(ast.fix_missing_locations(tree), path_of(file), "exec")
                    made[file, line, after] = Mutation(file, line, before, after, code)
                spot.put(spot.old)
    return list(made.values())
