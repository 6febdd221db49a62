"""The papers' engines that a broker can use, by the names of the setting `matching.engine`.

Each takes every predicate of the language, and adds and removes requests at run time. Two engines of the
papers are missing. ParallelTree in one process is the improved tree with more work, and its worker processes
would cost more per event than the match. DRtCluster only computes where Rt-Cluster's clusters should be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpwsn.matching.language.reference_engine import Engine, NaiveEngine
from hpwsn.matching.papers.categories import CategoryEngine
from hpwsn.matching.papers.counting import CountingEngine, ForwardingEngine, PreIndexEngine
from hpwsn.matching.papers.kd_tree import KdTreeEngine
from hpwsn.matching.papers.rt_cluster import RtCluster
from hpwsn.matching.papers.sequential import SequentialEngine, SubOrderEngine
from hpwsn.matching.papers.trees import ImprovedTree, NormalTree

SELECTABLE: Mapping[str, Callable[[], Engine]] = {
    "matching_tree": ImprovedTree,
    "normal_tree": NormalTree,
    "cma": CategoryEngine,
    "pre_index": PreIndexEngine,
    "counting": CountingEngine,
    "forwarding": ForwardingEngine,
    "sequential": SequentialEngine,
    "sub_order": SubOrderEngine,
    "naive": NaiveEngine,
    "kd_tree": KdTreeEngine,
    "rt_cluster": RtCluster,
}
