"""What every JSON document holds, as types: the published schemas (docs/schema) are made from them.

The documents themselves are written elsewhere (``machine``, ``bisection_machine``, ``gate_machine``,
``explanation_machine``, ``plan_machine``, ``explain_plan``, ``difference``, ``history``); tests hold real ones against
these types, so that neither can change alone.
"""

from __future__ import annotations

from bisect_env.report.documents.of_bisection import BisectDocument, BisectPlanDocument
from bisect_env.report.documents.of_difference import DiffDocument
from bisect_env.report.documents.of_explanation import ExplainDocument
from bisect_env.report.documents.of_gate import GateDocument
from bisect_env.report.documents.of_history import HistoryDocument
from bisect_env.report.documents.of_inspection import InspectDocument
from bisect_env.report.documents.of_matrix import MatrixDocument
from bisect_env.report.documents.of_plans import ExplainPlanDocument, MatrixPlanDocument
from bisect_env.report.documents.of_simulation import SimulateDocument

DOCUMENTS: dict[str, type] = {
    "matrix": MatrixDocument,
    "matrix-plan": MatrixPlanDocument,
    "bisect": BisectDocument,
    "bisect-plan": BisectPlanDocument,
    "gate": GateDocument,
    "explain": ExplainDocument,
    "explain-plan": ExplainPlanDocument,
    "diff": DiffDocument,
    "simulate": SimulateDocument,
    "history": HistoryDocument,
    "inspect": InspectDocument,
}
"""Each document by the name of its schema."""
