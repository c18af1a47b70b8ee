"""Figures and widgets. Names load on use, so that importing memlab.show costs nothing."""

from importlib import import_module
from typing import Any

_NAMES = {
    "style": ["use_style", "describe", "show_figure"],
    "plots": [
        "plot_context_windows",
        "plot_cumulative_cost",
        "plot_kept_by_reducer",
        "plot_probe_answers",
        "plot_similarities",
        "plot_similarity_distribution",
        "plot_similarity_matrix",
        "plot_token_cost",
        "plot_tokens_by_strategy",
        "plot_vectors_2d",
    ],
    "explore": [
        "cost_curves",
        "prompt_tokens",
        "similarity_explorer",
        "similarity_figure",
        "token_cost_explorer",
        "token_cost_figure",
    ],
    "order_pareto": ["plot_repeat_pareto"],
    "order_widget": ["order_figure", "order_player"],
    "orders": ["plot_retrieved", "plot_strategies"],
    "retrieval": ["pareto_front", "plot_heat_map", "plot_pareto", "plot_precision_recall"],
    "retrieval_map": ["plot_evidence_ranks", "plot_memory_map"],
    "retrieval_widget": ["retrieval_explorer", "retrieval_figure"],
    "scopes": ["plot_scope_matrix", "scope_explorer", "scope_figure"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return import_module(f"memlab.show.{name}")
    if name not in _HOME:
        raise AttributeError(f"memlab.show has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"memlab.show.{_HOME[name]}"), name)
