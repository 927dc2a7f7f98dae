"""The chart in deploy/helm/rota. `make chart` runs all of this, with the tools that it needs."""

import json
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from rota.platform.settings import Settings
from tests.packaging.chart import (
    CHART,
    ROOT,
    VALUES,
    containers,
    helm,
    objects,
    pods,
    rendered,
    tool,
)

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
KNOWN = {f"ROTA_{name.upper()}" for name in Settings.model_fields}
SECRET = {
    f"ROTA_{name.upper()}"
    for name, field in Settings.model_fields.items()
    if "SecretStr" in str(field.annotation)
}
# The chart sets these, because its ports and numbers of pods depend on them.
OWN = {
    *("ROTA_HOST", "ROTA_PORT", "ROTA_METRICS_PORT", "ROTA_PROCESSES"),
    *("ROTA_WORKER_HOST", "ROTA_WORKER_PORT"),
}
# Only for `rota dev`.
DEVELOPMENT = {"ROTA_MODEL_URL"}
VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
CUSTOM_KINDS = {"PodMonitor", "PrometheusRule", "ScaledObject"}
# Findings of checkov that stay, with the reason. Offline, checkov reports no severities.
ACCEPTED = {
    "CKV_K8S_35": "Rota reads its settings from the environment",
    "CKV_K8S_43": "the values decide between a tag and a digest",
}
# A pod that runs once, or that only waits, cannot be probed.
ACCEPTED_OF_TEST = {"CKV_K8S_8", "CKV_K8S_9"}
UNPROBED = ("Pod.rota.rota-test", "Deployment.rota.rota-admin")


def test_the_schema_knows_every_setting_that_is_not_secret() -> None:
    listed = set(SCHEMA["$defs"]["settings"]["propertyNames"]["enum"])
    wanted = KNOWN - SECRET - OWN - DEVELOPMENT
    assert listed == wanted, f"add {wanted - listed} and remove {listed - wanted} there"


def test_all_values_match_the_schema() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(defaults) | {"global"} == set(SCHEMA["properties"])
    assert len(VALUES) == 4
    for values in (defaults, *(yaml.safe_load(file.read_text()) for file in VALUES.values())):
        Draft7Validator(SCHEMA).validate(values)


@pytest.mark.parametrize(
    "settings",
    [
        {"ROTA_SECRET_KEY": "x"},
        {"ROTA_DATABASE_URL": "postgresql://rota:x@db/rota"},
        {"ROTA_MODELS": '{"default": {"provider": "openai", "model": "m", "apiKey": "x"}}'},
        {"ROTA_OIDC_ISSUERS": '[{"issuer": "https://i", "clientId": "c", "clientSecret": "x"}]'},
        {"ROTA_PUBLIC_URI": "https://rota.example.com"},
        {"ROTA_METRICS_PORT": 9999},
    ],
)
def test_the_schema_refuses_secrets_and_settings_that_do_not_exist(
    settings: dict[str, object],
) -> None:
    assert not Draft7Validator(SCHEMA).is_valid({"settings": settings})


def test_templates_use_only_settings_that_exist() -> None:
    used = {
        name
        for file in (CHART / "templates").rglob("*.*")
        for name in re.findall(r"ROTA_[A-Z_]+[A-Z]", file.read_text())
    }
    assert "ROTA_METRICS_PORT" in used
    assert used <= KNOWN


def test_the_version_of_the_chart_is_that_of_rota() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == project["version"]
    assert "dependencies" not in chart


@pytest.mark.parametrize("name", VALUES)
def test_helm_finds_no_problem(name: str) -> None:
    done = helm("lint", "--strict", "-f", str(VALUES[name]), str(CHART))
    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize("name", VALUES)
def test_pods_have_no_rights_and_read_secrets_of_others_only(name: str) -> None:
    found = objects(name)
    assert "Secret" not in {each["kind"] for each in found}
    assert {each["metadata"]["namespace"] for each in found} == {"rota"}
    specs = pods(found)
    assert {"Deployment/rota-serve", "Deployment/rota-worker", "Pod/rota-test"} <= set(specs)
    for spec in specs.values():
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(spec):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"] is True
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
            assert not SECRET & {variable["name"] for variable in container["env"]}
            read = [each["secretRef"]["name"] for each in container.get("envFrom", [])]
            # A router has no keys and no database.
            assert ("rota" in read) == (container["name"] != "router")


def test_each_process_has_the_secret_of_its_own_database_login() -> None:
    specs = pods(objects("production"))
    for name, own in (
        ("Deployment/rota-serve", "rota-serve"),
        ("Deployment/rota-worker", "rota-worker"),
        ("CronJob/rota-ledger", "rota-worker"),
        ("Job/rota-migrate", "rota-migrate"),
    ):
        for container in containers(specs[name]):
            assert [each["secretRef"]["name"] for each in container["envFrom"]] == ["rota", own]


def test_operator_commands_have_a_pod_with_the_secrets_of_workers_and_migrations() -> None:
    found = objects("production")
    [admin] = [
        each
        for each in found
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "rota-admin"
    ]
    assert admin["spec"]["replicas"] == 0
    [container] = admin["spec"]["template"]["spec"]["containers"]
    read = [each["secretRef"]["name"] for each in container["envFrom"]]
    assert read == ["rota", "rota-worker", "rota-migrate"]
    # It waits without a shell until it is stopped.
    with subprocess.Popen([sys.executable, "-c", container["args"][0]]) as waiting:
        waiting.terminate()
        assert waiting.wait(30) in (0, -signal.SIGTERM)


def test_settings_reach_the_processes_as_they_are_written() -> None:
    [worker] = pods(objects("production"))["Deployment/rota-worker"]["containers"]
    variables = {each["name"]: each["value"] for each in worker["env"]}
    assert variables["ROTA_RUN_MAX_TOKENS"] == "20000000"
    assert variables["ROTA_PROCESSES"] == "12"
    assert variables["ROTA_ENV"] == "production"


def test_the_schema_of_the_database_is_updated_before_everything_else() -> None:
    found = objects("production")
    [job] = [each for each in found if each["kind"] == "Job"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    spec = job["spec"]["template"]["spec"]
    assert [each["args"] for each in containers(spec)] == [
        ["admin", "migrate"],
        ["admin", "agents", "sync", "--add-only"],
    ]
    # What it uses exists before it, too.
    needed = [
        each
        for each in found
        if each["metadata"]["name"] == "rota-migrate" and each["kind"] != "Job"
    ]
    assert {each["kind"] for each in needed} == {"ServiceAccount", "NetworkPolicy"}
    for each in needed:
        assert int(each["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0


def test_a_worker_has_the_time_of_the_longest_call_and_autoscalers_own_its_number() -> None:
    for name, kind in (("production", "HorizontalPodAutoscaler"), ("keda", "ScaledObject")):
        found = objects(name)
        [worker] = [
            each
            for each in found
            if each["kind"] == "Deployment" and each["metadata"]["name"] == "rota-worker"
        ]
        assert worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 620
        assert "replicas" not in worker["spec"]
        assert kind in {each["kind"] for each in found}
        assert "rota_queue_age_seconds" in json.dumps(found)


def test_no_process_stops_before_a_new_one_is_ready_except_with_recreate() -> None:
    """Two releases run side by side, so nothing has to stop for an upgrade."""
    one_by_one = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    }
    for name, workers in (("minimal", one_by_one), ("keda", {"type": "Recreate"})):
        strategies = {
            each["metadata"]["name"]: each["spec"]["strategy"]
            for each in objects(name)
            if each["kind"] == "Deployment" and "strategy" in each["spec"]
        }
        assert strategies == {"rota-serve": one_by_one, "rota-worker": workers}


def test_workers_scale_by_the_longest_wait_of_their_own_release() -> None:
    [hpa] = [
        each["spec"]
        for each in objects("production")
        if each["kind"] == "HorizontalPodAutoscaler" and each["metadata"]["name"] == "rota-worker"
    ]
    # An adapter would add the values of all workers, which measure the same queue.
    assert hpa["metrics"][0]["external"]["metric"]["name"] == "rota_queue_age_seconds_max"
    assert "as: rota_queue_age_seconds_max" in (ROOT / "docs" / "deployment.md").read_text()
    [keda] = [each["spec"] for each in objects("keda") if each["kind"] == "ScaledObject"]
    query = keda["triggers"][0]["metadata"]["query"]
    assert query == 'max(rota_queue_age_seconds{namespace="rota"})'


def test_metrics_of_a_cell_have_its_name_and_those_of_a_router_name_the_cells_themselves() -> None:
    labels = {
        each["metadata"]["name"]: {
            rule["targetLabel"]: rule["replacement"]
            for rule in each["spec"]["podMetricsEndpoints"][0]["relabelings"]
        }
        for each in objects("cells")
        if each["kind"] == "PodMonitor"
    }
    assert labels == {
        "rota-serve": {"job": "rota-serve", "cell": "eu1"},
        "rota-worker": {"job": "rota-worker", "cell": "eu1"},
        "rota-router": {"job": "rota-router"},
    }


def test_jobs_of_the_night_repeat_what_a_restart_of_the_database_stops() -> None:
    jobs = {
        each["metadata"]["name"]: each["spec"]["jobTemplate"]["spec"]
        for each in objects("production")
        if each["kind"] == "CronJob"
    }
    assert set(jobs) == {"rota-ledger", "rota-reconcile", "rota-collect"}
    for name, job in jobs.items():
        assert job["backoffLimit"] == 6
        # The alert about it ends by itself.
        assert job["ttlSecondsAfterFinished"] > 86_400
        [rule] = job["podFailurePolicy"]["rules"]
        assert rule["action"] == "FailJob"
        assert rule["onExitCodes"]["containerName"] == name.removeprefix("rota-")
    final = {
        name: job["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"]
        for name, job in jobs.items()
    }
    # Without the database, the checks exit with 8, and `collect` with 1.
    assert final == {"rota-ledger": [1, 2], "rota-reconcile": [1, 2], "rota-collect": [2]}
    spec = jobs["rota-collect"]["template"]["spec"]
    [collect] = spec["containers"]
    assert collect["args"][:5] == ["admin", "restore", "collect", "--since", "26h"]
    assert {"name": "collected", "mountPath": collect["args"][-1]} in collect["volumeMounts"]
    assert "CronJob" not in {
        each["kind"] for each in objects("minimal", "--set", "ledgerCheck.enabled=false")
    }


def test_rules_and_boards_of_the_chart_are_those_of_the_repository() -> None:
    found = objects("production")
    rules = [each["spec"] for each in found if each["kind"] == "PrometheusRule"]
    files = [
        yaml.safe_load((ROOT / "deploy" / "monitoring" / "rules" / f"{name}.yaml").read_text())
        for name in ("alerts", "slos")
    ]
    base = "https://runbooks.example.com/rota"
    assert json.loads(json.dumps(rules).replace(base, "docs/runbooks")) == files
    assert base in json.dumps(rules)
    boards = {
        name: json.loads(content)
        for each in found
        if each["kind"] == "ConfigMap"
        for name, content in each["data"].items()
    }
    for file in (ROOT / "deploy" / "monitoring" / "boards").glob("*.json"):
        assert boards.pop(file.name) == json.loads(file.read_text())
    assert not boards


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_every_object(version: str, tmp_path: Path) -> None:
    validate = tool("kubernetes-validate")
    for name in VALUES:
        file = tmp_path / f"{name}.yaml"
        known = [each for each in objects(name) if each["kind"] not in CUSTOM_KINDS]
        file.write_text(yaml.safe_dump_all(known))
        done = subprocess.run(
            [validate, "--strict", "-k", version, str(file)], capture_output=True, text=True
        )
        output = done.stdout + done.stderr
        assert done.returncode == 0, output
        assert "WARN" not in output
        assert output.count("passed") == len(known), output


def test_checkov_finds_nothing_that_matters(tmp_path: Path) -> None:
    checkov = tool("checkov")
    for name in VALUES:
        (tmp_path / f"{name}.yaml").write_text(rendered(name))
    done = subprocess.run(
        [
            *(checkov, "--directory", str(tmp_path), "--framework", "kubernetes"),
            *("--compact", "--skip-download", "--output", "json"),
        ],
        capture_output=True,
        text=True,
    )
    report = json.loads(done.stdout)
    print(f"checkov: {report['summary']}")
    assert report["summary"]["passed"] > 500
    assert report["summary"]["parsing_errors"] == 0
    findings = {
        (each["check_id"], each["resource"])
        for each in report["results"]["failed_checks"]
        if each["check_id"] not in ACCEPTED
    }
    assert findings <= {(check, pod) for check in ACCEPTED_OF_TEST for pod in UNPROBED}
