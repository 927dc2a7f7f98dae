"""What boards and rules ask, and what Rota's processes export."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

import rota
from rota.platform.top_accounts import TopAccounts

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"


@dataclass(frozen=True)
class Exported:
    kind: str
    labels: frozenset[str]


def exported() -> dict[str, Exported]:
    """Every metric of Rota by the name of its samples."""
    for module in pkgutil.walk_packages(rota.__path__, "rota."):
        if not module.name.endswith("__main__") and ".static" not in module.name:
            importlib.import_module(module.name)
    found = {}
    for collector in set(REGISTRY._collector_to_names):
        if isinstance(collector, TopAccounts):
            found[collector.name] = Exported("counter", frozenset({"account"}))
        elif isinstance(collector, MetricWrapperBase) and collector._name.startswith("rota_"):
            labels = frozenset(collector._labelnames)
            found |= dict(_samples(collector._name, collector._type, labels))
    return found


def _samples(name: str, kind: str | None, labels: frozenset[str]) -> Iterator[tuple[str, Exported]]:
    if kind == "counter":
        yield f"{name}_total", Exported(kind, labels)
    elif kind == "histogram":
        yield f"{name}_bucket", Exported("counter", labels | {"le"})
        yield f"{name}_count", Exported("counter", labels)
        yield f"{name}_sum", Exported("counter", labels)
    else:
        yield name, Exported(str(kind), labels)


def boards() -> dict[str, dict[str, Any]]:
    return {
        file.stem: json.loads(file.read_text())
        for file in sorted((MONITORING / "boards").glob("*.json"))
    }


def board_queries() -> list[tuple[str, str]]:
    """The name of each panel with its query."""
    return [
        (f"{board['title']} / {panel['title']}", target["expr"])
        for board in boards().values()
        for panel in board["panels"]
        for target in panel["targets"]
    ]


def rules() -> list[dict[str, Any]]:
    return [
        rule
        for file in sorted((MONITORING / "rules").glob("*.yaml"))
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]
