"""Rewrites a module's source so that what is watched in it calls the witness; every line keeps its number.

Pure: source in, syntax tree and the hooks that it calls out. A hook is a global of the module; the loader puts it
there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from witness_rewritten import HOW, KINDS, PREFIX, Hook, Rewritten, words
from witness_syntax import asks, definitions, is_text, last_part, own_names
from witness_targets import RAISED, Found, Function, Guard, Key, Module


def rewrite(source: str | bytes, path: str, module: Module, flags: Mapping[str, str]) -> Rewritten:
    """Rewrite one module.

    Args:
        source: its text.
        path: as the findings should call it, ``torch/fx/_symbolic_trace.py``.
        module: what to follow in it.
        flags: process-global flags of other modules, which this one may reach as attributes; by name their states.

    Raises:
        SyntaxError: the source is none of this Python.
    """
    tree = ast.parse(source)
    kinds = dict(definitions(tree, module))
    own = {name: state for name, (state, kind) in kinds.items() if kind == "flag"}
    locals_ = {name: state for name, (state, kind) in kinds.items() if kind == "thread-local"}
    rewriter = _Rewriter(path, module, own, locals_, {**flags, **own})
    rewriter.visit(tree)
    ast.fix_missing_locations(tree)
    found = [Found(state, f"{path}: {name}", KINDS[kind]) for name, (state, kind) in kinds.items() if kind in KINDS]
    wanted = [(state, pattern.pattern, [n for n in kinds if pattern.fullmatch(n)]) for state, pattern in module.flags]
    missing = [(state, f"module-level flag {pattern}") for state, pattern, names in wanted if not names]
    missing += [
        (state, f"flag {name} of a kind that the witness knows")
        for name, (state, kind) in kinds.items()
        if kind == "other"
    ]
    named = {text for _, text in rewriter.seen}
    items: tuple[Function | Guard | Key, ...] = (*module.functions, *module.guards, *module.keys)
    for item in items:
        if item.name not in named and getattr(item, "instead", "") not in named:
            missing.append((item.state, words(item)))
    missing += [(state, name) for state, name in (*module.locks, *module.objects) if name not in named]
    return Rewritten(tree, tuple(rewriter.hooks), (*found, *rewriter.found), tuple(missing), own)


class _Rewriter(ast.NodeTransformer):
    def __init__(
        self,
        path: str,
        module: Module,
        own: Mapping[str, str],
        locals_: Mapping[str, str],
        attributes: Mapping[str, str],
    ) -> None:
        self.hooks: list[Hook] = []
        self.found: list[Found] = []
        self.seen: set[tuple[str, str]] = set()
        self._path, self._module = path, module
        self._own, self._locals, self._attributes = own, locals_, attributes
        self._objects = {name: state for state, name in module.objects}
        self._locks = {name: state for state, name in module.locks}
        self._places: list[str] = []
        self._hidden: list[set[str]] = []
        self._guards: list[Guard] = []
        self._keys: list[Key] = []

    # Names -----------------------------------------------------------------------------------------------------------

    def _global(self, name: str) -> bool:
        """Whether ``name`` means the module's here; code of the module's own level only defines it."""
        return bool(self._hidden) and not any(name in hidden for hidden in self._hidden)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._own and self._global(node.id):
            return self._call(node, "read", self._own[node.id], node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and self._hidden:
            if node.attr in self._attributes:
                self._tell(node.attr, self._attributes[node.attr])
                return self._call(node, "read attribute", self._attributes[node.attr], node.attr, node.value)
            if isinstance(node.value, ast.Name) and node.value.id in self._locals:
                return self._call(node, "read own", self._locals[node.value.id], node.value.id, node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        first = node.args[0] if node.args else None
        if (
            last_part(node.func) == "getattr"
            and isinstance(first, ast.Name)
            and first.id in self._locals
            and self._hidden
        ):
            return self._call(node, "read own", self._locals[first.id], first.id, node)
        for key in self._keys:
            if last_part(node.func) == "get" and isinstance(first, ast.Constant) and first.value == key.key:
                self._note(key.name, key.state, f"the look-up of {key.key}")
                owner = next((part for part in ast.walk(node.func) if isinstance(part, ast.Name)), first)
                return self._call(node, "found", key.state, key.key, node, owner)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        if not self._places and isinstance(node.targets[0], ast.Name) and node.targets[0].id in self._locks:
            name = node.targets[0].id
            self._note(name, self._locks[name], "a proxy: wait, acquire, release")
            node.value = self._call(node.value, "lock", self._locks[name], name, node.value)
            return node
        node.value = self.visit(node.value)
        target = node.targets[0]
        if len(node.targets) == 1 and self._hidden:
            if isinstance(target, ast.Name) and target.id in self._own and self._global(target.id):
                return ast.Expr(self._call(node, "store", self._own[target.id], target.id, node.value))
            if isinstance(target, ast.Name) and target.id in self._objects and self._global(target.id):
                self._note(target.id, self._objects[target.id], "replaced by another thread than the last")
                return ast.Expr(self._call(node, "replace", self._objects[target.id], target.id, node.value))
            if isinstance(target, ast.Attribute) and target.attr in self._attributes:
                state = self._attributes[target.attr]
                self._tell(target.attr, state)
                call = self._call(node, "store attribute", state, target.attr, self.visit(target.value), node.value)
                return ast.copy_location(ast.Expr(call), node)
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                state = self._locals.get(target.value.id, "")
                if state:
                    node.value = self._call(node.value, "store own", state, target.value.id, node.value)
        node.targets = [self.visit(target) for target in node.targets]
        return node

    def _tell(self, name: str, state: str) -> None:
        """A flag of another module is reached from here."""
        if name not in self._own:
            self._note(name, state, "stores and loads from another module")

    # Functions -------------------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._places.append(node.name)
        self.generic_visit(node)
        self._places.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._places.append(node.name)
        place = ".".join(self._places)
        functions = [f for f in self._module.functions if f".{place}".endswith(f".{f.name}")]
        guards = [g for g in self._module.guards if f".{place}".endswith(f".{g.name}")]
        keys = [k for k in self._module.keys if f".{place}".endswith(f".{k.name}")]
        self._hidden.append(own_names(node))
        outer = self._guards, self._keys
        self._guards, self._keys = guards, keys
        node.body = [kept for statement in node.body for kept in _listed(self.visit(statement))]
        self._guards, self._keys = outer
        self._hidden.pop()
        for function in functions:
            self._follow(node, function, place)
        self._places.pop()
        return node

    def _follow(self, node: ast.FunctionDef | ast.AsyncFunctionDef, function: Function, place: str) -> None:
        has = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        arguments = [ast.Name(name, ast.Load()) for name in function.arguments if name in has]
        start = 1 if is_text(node.body[0]) else 0
        head, body = node.body[:start], node.body[start:]
        last = body[-1]

        # What two methods open and close is their object's.
        what = place.rpartition(".")[0] if function.how in ("opens", "closes") else place

        def statement(kind: str, at: ast.AST, *given: ast.expr) -> ast.stmt:
            call = self._call(at, kind, function.state, what, *given)
            return ast.copy_location(ast.Expr(call), at)

        def finally_(kind: str, *given: ast.expr) -> list[ast.stmt]:
            return [ast.Try(body, [], [], [statement(kind, last, *given)])]

        if function.how == "call":
            node.body = [*head, statement("call", node, *arguments), *body]
        elif function.how == "returns":
            _Returns(self, function.state, place).visit_all(body)
        elif function.how == "after":
            node.body = [*head, *finally_("after", *arguments)]
        elif function.how == "opens":
            node.body = [*head, statement("enter", node, *arguments), *body]
        elif function.how == "closes":
            node.body = [*head, *finally_("leave", *arguments)]
        else:
            node.body = [*head, statement("enter", node, *arguments), *finally_("leave")]
        self.seen.add((function.state, function.name))
        self.found.append(Found(function.state, f"{self._path}: {place}", HOW[function.how]))

    # Branches --------------------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> ast.AST:
        asked = [(guard, way) for guard in self._guards if (way := asks(node.test, guard.asks)) is not None]
        self.generic_visit(node)
        for guard, way in asked:
            self._obey(node.body if way else node.orelse, guard)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        asked = [(guard, way) for guard in self._guards if (way := asks(node.test, guard.asks)) is not None]
        self.generic_visit(node)
        for guard, way in asked:
            branch = node.body if way else node.orelse
            call = self._call(branch, "obeyed", guard.state, f"took {ast.unparse(branch)}")
            chosen = ast.copy_location(ast.IfExp(call, branch, branch), branch)
            node.body, node.orelse = (chosen, node.orelse) if way else (node.body, chosen)
            self._guarded(guard)
        return node

    def _obey(self, body: list[ast.stmt], guard: Guard) -> None:
        """Tell before every statement of the branch that leaves the function."""
        place = 0
        while place < len(body):
            statement = body[place]
            if isinstance(statement, (ast.Raise, ast.Return)):
                text = RAISED if isinstance(statement, ast.Raise) else "ran the eager original"
                call = self._call(statement, "obeyed", guard.state, text)
                body.insert(place, ast.copy_location(ast.Expr(call), statement))
                self._guarded(guard)
                place += 1
            elif isinstance(statement, ast.If):
                self._obey(statement.body, guard)
                self._obey(statement.orelse, guard)
            place += 1

    def _guarded(self, guard: Guard) -> None:
        self._note(guard.name, guard.state, f"the branch on {' or '.join(guard.asks)}")

    # Hooks -----------------------------------------------------------------------------------------------------------

    def _note(self, name: str, state: str, how: str) -> None:
        found = Found(state, f"{self._path}: {name}", how)
        if found not in self.found:
            self.found.append(found)
        self.seen.add((state, name))

    def call_of(self, at: ast.AST, kind: str, state: str, detail: str, *arguments: ast.expr) -> ast.expr:
        """A call of a hook, at the place of a node."""
        return self._call(at, kind, state, detail, *arguments)

    def _call(self, at: ast.AST, kind: str, state: str, detail: str, *arguments: ast.expr) -> ast.expr:
        hook = Hook(f"{PREFIX}{len(self.hooks)}", kind, state, detail)
        self.hooks.append(hook)
        call = ast.Call(ast.Name(hook.name, ast.Load()), list(arguments), [])
        line = getattr(at, "lineno", 1)
        column = getattr(at, "col_offset", 0)
        # One line: a traceback's marks would otherwise span what is no longer there.
        for part in ast.walk(call):
            if not hasattr(part, "lineno"):
                part.lineno = part.end_lineno = line  # type: ignore[attr-defined]
                part.col_offset = part.end_col_offset = column  # type: ignore[attr-defined]
        return call


class _Returns(ast.NodeTransformer):
    """Passes what a function returns through a hook; functions inside it are others."""

    def __init__(self, rewriter: _Rewriter, state: str, place: str) -> None:
        self._rewriter, self._state, self._place = rewriter, state, place

    def visit_all(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None:
            node.value = self._rewriter.call_of(node, "returns", self._state, self._place, node.value)
        return node


def _listed(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]
