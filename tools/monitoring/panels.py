"""Panels and boards of Grafana, as much of them as Rota needs."""

import json
from dataclasses import dataclass
from typing import Any

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24


@dataclass(frozen=True)
class Panel:
    title: str
    # Each is a query, and the name of its series.
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    # What to think of the values.
    description: str = ""
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False
    # Above this, a value is shown in red.
    limit: float | None = None

    def as_object(self, number: int, x: int, y: int) -> dict[str, Any]:
        steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
        if self.limit is not None:
            steps.append({"color": "red", "value": self.limit})
        defaults: dict[str, Any] = {
            "unit": self.unit,
            "min": 0,
            "thresholds": {"mode": "absolute", "steps": steps},
        }
        if self.kind == "timeseries":
            defaults["custom"] = {
                "fillOpacity": 20 if self.stacked else 0,
                "stacking": {"mode": "normal" if self.stacked else "none"},
                "thresholdsStyle": {"mode": "off" if self.limit is None else "line"},
            }
        return {
            "id": number,
            "title": self.title,
            "description": self.description,
            "type": self.kind,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": 8},
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": self._options(),
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "datasource": DATASOURCE,
                    "expr": query,
                    "legendFormat": name,
                    "instant": self.kind != "timeseries",
                    "range": self.kind == "timeseries",
                }
                for index, (query, name) in enumerate(self.queries)
            ],
        }

    def _options(self) -> dict[str, Any]:
        if self.kind == "timeseries":
            return {
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        if self.kind == "bargauge":
            return {
                "orientation": "horizontal",
                "displayMode": "basic",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            }
        return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}


@dataclass(frozen=True)
class Board:
    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]

    def as_json(self) -> str:
        placed, x, y = [], 0, 0
        for number, panel in enumerate(self.panels, 1):
            if x + panel.width > COLUMNS:
                x, y = 0, y + 8
            placed.append(panel.as_object(number, x, y))
            x += panel.width
        board = {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["rota"],
            "editable": False,
            "schemaVersion": 41,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "",
            "links": [
                {
                    "type": "dashboards",
                    "title": "Rota",
                    "tags": ["rota"],
                    "asDropdown": True,
                    "keepTime": True,
                    "includeVars": True,
                }
            ],
            "templating": {
                "list": [
                    {
                        "name": "datasource",
                        "label": "Data source",
                        "type": "datasource",
                        "query": "prometheus",
                        "current": {},
                        "hide": 0,
                    }
                ]
            },
            "panels": placed,
        }
        return json.dumps(board, indent=1, ensure_ascii=False) + "\n"


def rate(metric: str, *by: str, where: str = "") -> str:
    """How often something happens per second, in all processes."""
    selected = f"sum{_by(by)} (rate({metric}{{{where}}}[$__rate_interval]))"
    return selected.replace("{}", "")


def quantile(of: float, metric: str, *by: str, where: str = "") -> str:
    buckets = rate(f"{metric}_bucket", "le", *by, where=where)
    return f"histogram_quantile({of}, {buckets})"


def quantiles(metric: str, *, where: str = "") -> tuple[tuple[str, str], ...]:
    return tuple(
        (quantile(of, metric, where=where), name)
        for of, name in ((0.5, "median"), (0.95, "p95"), (0.99, "p99"))
    )


def used(taken: str, places: str, *by: str) -> str:
    """The part of all places that is taken."""
    return f"sum{_by(by)} ({taken}) / sum{_by(by)} ({places})"


def changes(metric: str, *by: str) -> str:
    """How many in the last hour."""
    return f"sum{_by(by)} (increase({metric}[1h]))"


def dollars(metric: str, *by: str, per_dollar: int) -> str:
    return f"{changes(metric, *by)} / {per_dollar}"


def or_zero(query: str) -> str:
    """For what may not have happened yet, so that the panel is not empty."""
    return f"{query} or vector(0)"


def _by(names: tuple[str, ...]) -> str:
    return f" by ({', '.join(names)})" if names else ""
