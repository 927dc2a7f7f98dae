"""Boards, alerts and runbooks agree with each other and with what Rota exports."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.packaging import promql
from tests.packaging.board_queries import MONITORING, board_queries, boards, exported, rules
from tools.monitoring.__main__ import files

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
ALERTS = [rule for rule in rules() if "alert" in rule]
RECORDED = {rule["record"] for rule in rules() if "record" in rule}
QUERIES = [
    *board_queries(),
    *((rule.get("alert") or rule["record"], str(rule["expr"])) for rule in rules()),
]
# Labels that Prometheus or a rule adds, and metrics of others.
ADDED = {"job", "instance", "cell"}
OTHERS = {
    "up": set[str](),
    "process_cpu_seconds_total": set[str](),
    "process_resident_memory_bytes": set[str](),
    "kube_job_failed": {"namespace", "job_name", "condition"},
}
promtool = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    promtool is None,
    reason="the rules were NOT tested: run `make monitoring`, which needs promtool",
)


def test_generated_files_are_up_to_date() -> None:
    for path, content in files().items():
        assert path.read_text() == content, f"{path.name}: run `python -m tools.monitoring`"
    known = {path for path in files() if path.parent.name == "boards"}
    assert set((MONITORING / "boards").iterdir()) == known


def test_boards_and_rules_name_only_metrics_and_labels_that_exist() -> None:
    known = exported()
    assert len(known) > 40
    assert len(QUERIES) > 100
    for name, query in QUERIES:
        named = promql.read(query)
        assert named.selected, name
        labels = set[str](ADDED)
        for metric, selected in named.selected.items():
            if metric in RECORDED:
                own = {"slo"}
            elif metric in OTHERS:
                own = OTHERS[metric]
            else:
                assert metric in known, f"{name}: {metric} is not exported"
                own = set(known[metric].labels)
                assert (known[metric].kind == "counter") == (metric in named.rates), (
                    f"{name}: {metric} is a {known[metric].kind}"
                )
            assert selected <= own | ADDED, f"{name}: {metric} has no label {selected - own}"
            labels |= own
        assert named.grouped <= labels, f"{name}: no metric has {named.grouped - labels}"


@pytest.mark.parametrize(
    "wrong",
    [
        "sum(rate(rota_http_requests_total[5m])",
        "sum(rota_outbox_dead))",
        "rota_outbox_dead # a comment",
    ],
)
def test_the_reader_of_queries_refuses_what_it_does_not_understand(wrong: str) -> None:
    with pytest.raises(promql.NotUnderstood):
        promql.read(wrong)


def test_the_reader_of_queries_finds_metrics_and_labels() -> None:
    named = promql.read('topk(3, sum by (a, b) (rate(m_total{c="x}", d!~"by"}[5m]))) / max(n) > 1')
    assert dict(named.selected) == {"m_total": {"c", "d"}, "n": set()}
    assert (named.grouped, named.rates) == ({"a", "b"}, {"m_total"})


def test_every_exported_metric_is_documented() -> None:
    text = (ROOT / "docs" / "monitoring.md").read_text()
    names = {re.sub(r"_(bucket|count|sum)$", "", name) for name in exported()}
    missing = [name for name in sorted(names) if f"`{name}" not in text]
    assert not missing, f"describe them in docs/monitoring.md: {missing}"


def test_every_subject_has_a_board_and_every_panel_a_unit_and_a_place() -> None:
    assert set(boards()) == {
        *("rota-traffic", "rota-runs", "rota-money", "rota-tool-servers", "rota-relay"),
        *("rota-accounts", "rota-objectives"),
    }
    for board in boards().values():
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
        assert len(set(places)) == len(places)
        for panel in board["panels"]:
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert all(target["legendFormat"] for target in panel["targets"])


def test_every_alert_has_a_severity_a_summary_and_a_runbook() -> None:
    linked = set()
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        runbook = ROOT / rule["annotations"]["runbook_url"]
        text = runbook.read_text()
        assert f"Alert: `{rule['alert']}`" in text
        for part in ("## What it means", "## What to look at", "## What to do"):
            assert part in text
        assert f"`{rule['alert']}`" in (RUNBOOKS / "README.md").read_text()
        linked.add(runbook)
    assert linked == set(RUNBOOKS.glob("*.md")) - {RUNBOOKS / "README.md"}


def test_links_and_boards_in_runbooks_exist() -> None:
    titles = {board["title"].removeprefix("Rota / ") for board in boards().values()}
    for runbook in RUNBOOKS.glob("*.md"):
        text = runbook.read_text()
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (RUNBOOKS / link).exists(), f"{runbook.name}: {link}"
        for board in re.findall(r"[Bb]oard\s+\*([^*]+)\*", text):
            assert " ".join(board.split()) in titles, f"{runbook.name}: {board}"


def test_every_alert_is_tested_both_ways() -> None:
    fires, quiet = set[str](), set[str]()
    for file in (MONITORING / "tests").glob("*.yaml"):
        for case in yaml.safe_load(file.read_text())["tests"]:
            for test in case["promql_expr_test"]:
                alert = re.search(r'alertname="(\w+)"', test["expr"])
                assert alert
                (fires if test["exp_samples"] else quiet).add(alert[1])
    assert fires == quiet == {rule["alert"] for rule in ALERTS}


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    assert promtool
    paths = [str(file) for file in (MONITORING / "rules").glob("*.yaml")]
    done = subprocess.run([promtool, "check", "rules", *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_in_compose_reads_the_rules_and_grafana_the_boards() -> None:
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    mounted = {volume.split(":")[0] for volume in compose["prometheus"]["volumes"]}
    assert "./monitoring/rules" in mounted
    config = yaml.safe_load((ROOT / "deploy" / "compose" / "prometheus.yaml").read_text())
    assert config["rule_files"] == ["/etc/prometheus/rules/*.yaml"]
    assert "./monitoring/rules:/etc/prometheus/rules:ro" in compose["prometheus"]["volumes"]
    provider = yaml.safe_load((ROOT / "deploy" / "compose" / "grafana-boards.yaml").read_text())
    [folder] = {each["options"]["path"] for each in provider["providers"]}
    assert f"./monitoring/boards:{folder}:ro" in compose["grafana"]["volumes"]
