"""Trees gone through in the order of the text, however deeply expressions are nested in them.

A long chain (``"a" + "b" + ...``, ``a.b().c()...``, ``elif`` after ``elif``) is a tree as deep as it is long, and
``ast.NodeVisitor`` calls itself for each level of it: Python's limit is reached by some five hundred.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

Following = Iterable[ast.AST | Callable[[], None]] | None


class Walker:
    """Visits nodes as ``ast.NodeVisitor`` does, by methods ``visit_X``, without calling itself for each level.

    A method returns the nodes that are to be visited next, in their order, before whatever was left to be done; and
    among them functions, which are called when it is their turn: what has to be done once a part of the tree was seen.
    """

    def visit(self, node: ast.AST) -> None:
        """Visit a node, and all that follows from it."""
        waiting: list[ast.AST | Callable[[], None]] = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.AST):
                method: Callable[[ast.AST], Following] = getattr(
                    self, f"visit_{type(one).__name__}", ast.iter_child_nodes
                )
                waiting.extend(reversed([*(method(one) or ())]))
            else:
                one()


def operands(node: ast.BinOp) -> Sequence[ast.expr]:
    """The operands of ``a | b | c``, or of another chain of one operator, in the order of the text."""
    found: list[ast.expr] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp) and type(left.op) is type(node.op):
        found.append(left.right)
        left = left.left
    return [left, *reversed(found)]


def written(node: ast.AST) -> str:
    """An expression as ``ast.unparse`` writes it; ``...`` for one that is nested too deeply for that."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return "..."
