"""Random meshes for the agreement of clients, each of a kind named after its special feature, and their resources."""
import random

# Kinds on which the texts of Torc, C-core and grpc-go agree, so that their picks must be the same.
LIKE = ["plain", "weighted", "localities", "hash_key", "policies", "multi_value", "dead", "priorities", "all"]
# Kinds that show one known reason to differ each. Four more kinds are made only when they are asked for by name: istio
# (a locality weighs what its endpoints weigh together), hash_key_ignored (GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT),
# request_hash_header and empty_hash_header (A76).
UNLIKE = ["fraction_order", "locality_order", "regex_groups", "empty_rewrite", "ipv6_text", "terminal_absent"]

HCM = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
WORDS = ["ada", "grace", "alan", "edsger", "barbara", "donald", "margaret", "niklaus"]


def kind_of(number):
    """Three of five meshes are of a kind that must agree."""
    kinds = LIKE if number % 5 < 3 else UNLIKE
    return kinds[(number // 5 * (3 if kinds is LIKE else 2) + number % 5) % len(kinds)]


def split_into(rng, items, n):
    """n non-empty runs of the items, in order."""
    cuts = sorted(rng.sample(range(1, len(items)), n - 1))
    return [items[a:b] for a, b in zip([0] + cuts, cuts + [len(items)])]


def random_policies(rng, kind):
    policies = []
    for i in range(rng.randint(2, 4) if kind in ("policies", "all") else 1):
        policy = {"header": f"x-key-{i}"}
        if kind in ("policies", "all") and rng.random() < 0.5:
            policy["regex"], policy["substitution"] = rng.choice(
                [("[0-9]+", "N"), ("-[0-9]$", "-digit"), ("^[a-z]+", "name"), ("[aeiou]", "_")])
        policy["terminal"] = rng.random() < 0.3
        policies.append(policy)
    if kind == "regex_groups":
        policies[0].update(regex="([a-z]+)-([0-9]+)", substitution="\\2/\\1")
    if kind == "terminal_absent":
        policies = [{"header": f"x-key-{i}", "terminal": i == 1} for i in range(3)]
    if kind == "empty_rewrite":
        policies[0].update(regex="[0-9]$", substitution="")
    return policies


def listed_endpoints(rng, kind, places):
    n = rng.randint(2 if kind in ("localities", "locality_order", "all") else 1, min(24, len(places["alive"])))
    if kind == "dead":
        n = max(n, 3)
    if kind == "istio":
        n = 6
    chosen = rng.sample(places["alive"], n)
    if kind == "ipv6_text":
        chosen = rng.sample(places["v6"], min(len(places["v6"]), 5)) + chosen[:3]
    dead = rng.sample(places["dead"], rng.randint(1, max(1, n // 2))) if kind == "dead" else []
    endpoints = []
    for address in chosen + dead:
        host, port = address.rsplit(":", 1)
        host = host.strip("[]")
        # The resource may write the same address otherwise.
        host = "0:0:0:0:0:0:0:1" if host == "::1" else host
        endpoint = {"host": host, "port": int(port), "weight": 1}
        if kind in ("weighted", "localities", "all", "fraction_order", "locality_order", "priorities"):
            endpoint["weight"] = rng.randint(1, 9)
        if kind in ("hash_key", "all", "hash_key_ignored"):
            endpoint["hash_key"] = f"{rng.choice(WORDS)}-{rng.randrange(10**6)}"
        endpoints.append(endpoint)
    if kind in ("fraction_order", "locality_order"):
        rng.shuffle(endpoints)
    else:
        # In order of what is hashed, so that the order of allotment makes no difference.
        by_key = kind != "hash_key_ignored"
        endpoints.sort(key=lambda e: by_key and e.get("hash_key") or f"{e['host']}:{e['port']}")
    return endpoints, dead


def istio_localities(endpoints):
    """A zone with five endpoints and one with a single endpoint. As istiod sends them, a zone's weight is the sum of
    its endpoints' weights."""
    return [{"region": "earth", "zone": zone, "sub_zone": "", "priority": 0, "weight": len(part), "endpoints": part}
            for zone, part in (("z0", endpoints[:5]), ("z1", endpoints[5:]))]


def random_localities(rng, kind, endpoints, places):
    if kind == "istio":
        return istio_localities(endpoints)
    n = min(rng.randint(2, 4), len(endpoints)) if kind in ("localities", "locality_order", "all") else 1
    localities = []
    for i, part in enumerate(split_into(rng, endpoints, n)):
        localities.append({"region": "earth", "zone": f"z{i}", "sub_zone": rng.choice(["", "a"]), "priority": 0,
                           "weight": rng.randint(1, 9) if n > 1 else 1, "endpoints": part})
    if kind == "locality_order":
        rng.shuffle(localities)
    if kind == "priorities":
        for locality in localities:
            locality["priority"] = 1
        refusing = [{"host": a.rsplit(":", 1)[0], "port": int(a.rsplit(":", 1)[1]), "weight": 1}
                    for a in rng.sample(places["dead"], 2)]
        localities.insert(0, {"region": "mars", "zone": "", "sub_zone": "", "priority": 0, "weight": 1,
                              "endpoints": refusing})
    return localities


def make(number, seed, places, kind=None):
    rng = random.Random(f"{seed}/{number}")
    kind = kind or kind_of(number)
    endpoints, dead = listed_endpoints(rng, kind, places)
    smallest = rng.choice([1, 2, 7, 64, 100, 1024, 1024, 1500, 4096, 10000])
    return {"name": f"mesh{number}-{kind}", "kind": kind, "seed": seed, "policies": random_policies(rng, kind),
            "localities": random_localities(rng, kind, endpoints, places), "dead": dead,
            "serving_priority": 1 if kind == "priorities" else 0, "min_ring_size": smallest,
            "max_ring_size": max(smallest, rng.choice([10, 1024, 4096, 8388608]))}


def alive_endpoints(mesh):
    """Addresses that serve, in the resource's order; of IPv4."""
    return [f"{e['host']}:{e['port']}" for l in mesh["localities"] if l["priority"] == mesh["serving_priority"]
            for e in l["endpoints"] if f"{e['host']}:{e['port']}" not in mesh["dead"]]


def random_calls(mesh, n):
    """Headers of n calls: each names at least one thing to hash."""
    rng = random.Random(f"calls/{mesh['seed']}/{mesh['name']}")
    calls = []
    for _ in range(n):
        # A terminal policy whose header is absent is a kind of its own.
        always = mesh["kind"] != "terminal_absent"
        wanted = [p["header"] for p in mesh["policies"] if (always and p.get("terminal")) or rng.random() < 0.7]
        wanted = wanted or [mesh["policies"][-1]["header"]]
        headers = []
        for name in wanted:
            several = {"multi_value": 1.0, "request_hash_header": 0.3}.get(mesh["kind"], 0)
            for _ in range(rng.randint(2, 3) if rng.random() < several else 1):
                empty = rng.random() < {"plain": 0.1, "empty_hash_header": 0.5}.get(mesh["kind"], 0)
                headers.append([name, "" if empty else f"{rng.choice(WORDS)}-{rng.randrange(10**6)}"])
        rng.shuffle(headers)
        calls.append(headers)
    return calls


def hash_policy(policy):
    header = {"header_name": policy["header"]}
    if "regex" in policy:
        header["regex_rewrite"] = {"pattern": {"google_re2": {}, "regex": policy["regex"]},
                                   "substitution": policy["substitution"]}
    return {"header": header, "terminal": policy.get("terminal", False)}


def lb_endpoint(endpoint):
    resource = {"endpoint": {"address": {"socket_address": {"address": endpoint["host"],
                                                            "port_value": endpoint["port"]}}},
                "load_balancing_weight": endpoint["weight"]}
    if endpoint.get("hash_key"):
        resource["metadata"] = {"filter_metadata": {"envoy.lb": {"hash_key": endpoint["hash_key"]}}}
    return resource


def resources(mesh):
    """LDS, RDS, CDS and EDS in proto3 JSON, as `torc serve-xds` and go-control-plane take them."""
    name = mesh["name"]
    listener = {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": name, "api_listener": {
        "api_listener": {"@type": HCM, "rds": {"route_config_name": name, "config_source": {"ads": {}}},
                         "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}]}}}
    route = {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": name, "virtual_hosts": [
        {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": ""}, "route": {
            "cluster": name, "hash_policy": [hash_policy(p) for p in mesh["policies"]]}}]}]}
    cluster = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": name, "type": "EDS",
               "eds_cluster_config": {"eds_config": {"ads": {}}}, "lb_policy": "RING_HASH", "ring_hash_lb_config": {
                   "minimum_ring_size": mesh["min_ring_size"], "maximum_ring_size": mesh["max_ring_size"]}}
    assignment = {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": name,
                  "endpoints": [{"locality": {k: l[k] for k in ("region", "zone", "sub_zone")},
                                 "priority": l["priority"], "load_balancing_weight": l["weight"],
                                 "lb_endpoints": [lb_endpoint(e) for e in l["endpoints"]]} for l in mesh["localities"]]}
    return [listener, route, cluster, assignment]
