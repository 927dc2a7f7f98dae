"""Who can reach which pod of the chart. `make chart` runs this with helm."""

from typing import Any

from tests.packaging.chart import objects, pods


def policies(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The network policies, by the part that they select."""
    return {
        each["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each["spec"]
        for each in found
        if each["kind"] == "NetworkPolicy"
    }


def test_network_policies_select_every_pod() -> None:
    parts = {"serve", "worker", "migrate", "admin", "ledger", "test"}
    assert set(policies(objects("production"))) == {*parts, "collect", "reconcile"}
    assert set(policies(objects("minimal"))) == parts
    assert set(policies(objects("cells"))) == {*parts, "router"}


def test_clients_reach_cells_through_routers() -> None:
    found = objects("cells", "--set", "service.type=LoadBalancer")
    types = {
        each["metadata"]["name"]: each["spec"]["type"]
        for each in found
        if each["kind"] == "Service"
    }
    assert types == {"rota-router": "LoadBalancer", "rota-serve": "ClusterIP"}
    [ingress] = [each for each in found if each["kind"] == "Ingress"]
    [rule] = ingress["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert path["backend"]["service"]["name"] == "rota-router"
    [router] = pods(found)["Deployment/rota-router"]["containers"]
    settings = {each["name"]: each["value"] for each in router["env"]}
    assert (router["args"], settings["ROTA_ALLOW_PLAINTEXT"]) == (["router"], "true")
    assert settings["ROTA_CELLS"].startswith("eu1=http://eu1-rota-serve.eu1.svc,eu2=")


def test_clients_outside_the_cluster_reach_a_load_balancer() -> None:
    def sources(*options: str) -> dict[str, list[dict[str, Any]] | None]:
        found = policies(objects("cells", *options))
        return {part: found[part]["ingress"][0].get("from") for part in ("serve", "router")}

    everyone_inside: dict[str, Any] = {"namespaceSelector": {}}
    no_clients = "networkPolicy.clients=null"
    inside = sources("--set", no_clients)
    assert inside["router"] == [everyone_inside]
    outside = sources("--set", no_clients, "--set", "service.type=LoadBalancer")
    assert outside == {"serve": inside["serve"], "router": None}
    # --set would only change the first client of the file.
    block = 'networkPolicy.clients=[{"ipBlock": {"cidr": "192.0.2.0/24"}}]'
    chosen = sources("--set-json", block, "--set", "service.type=LoadBalancer")
    assert chosen["router"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]


def test_a_router_reaches_names_and_cells_only() -> None:
    found = policies(objects("cells"))
    ports = [[port["port"] for port in each["ports"]] for each in found["router"]["egress"]]
    assert ports == [[53, 53], [8080]]
    [to_serve, _] = found["serve"]["ingress"]
    parts = [
        each["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for each in to_serve["from"]
        if "podSelector" in each
    ]
    assert parts == ["test", "router"]
