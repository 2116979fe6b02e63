"""torc ring --maglev against a construction of the tables of its own: 1,000 random sets of hosts, weights and localities."""
import json
import os
import random
import sys
import tempfile

sys.path[:0] = [os.path.join(os.environ["TORC_SOURCE_DIR"], "test"), os.path.join(os.environ["TORC_SOURCE_DIR"], "test", "interop")]
from ring_model import xxh64
from support.kit import check, main, run

PRIMES = [n for n in range(2, 1200) if all(n % d for d in range(2, int(n ** 0.5) + 1))]
SETS, WITH_LOCALITIES = 1000, 150


def table_of(hosts, size):
    """hosts: [(key, part of the weight)]. Envoy's rounds, with a remainder for each step."""
    order = sorted(range(len(hosts)), key=lambda i: hosts[i][0].encode())
    offset = {i: xxh64(hosts[i][0].encode()) % size for i in order}
    skip = {i: xxh64(hosts[i][0].encode(), 1) % (size - 1) + 1 for i in order}
    following, target = dict.fromkeys(order, 0), dict.fromkeys(order, 0.0)
    largest = max(weight for _, weight in hosts)
    table, free, iteration = [None] * size, size, 0
    while free:
        iteration += 1
        for i in order:
            if not free:
                break
            if iteration * hosts[i][1] < target[i]:
                continue
            target[i] += largest
            while table[slot := (offset[i] + skip[i] * following[i]) % size] is not None:
                following[i] += 1
            table[slot] = hosts[i][0]
            following[i] += 1
            free -= 1
    return table


def dumped(*args, stdin=""):
    lines = run("ring", *args, "--dump", stdin=stdin).stdout.splitlines()
    check([line.split(" ", 1)[0] for line in lines] == [str(i) for i in range(len(lines))], "slots in order")
    return [line.split(" ", 1)[1] for line in lines]


def weight_of(rng):
    return rng.choice([1, 1, 1, rng.randint(1, 10), rng.randint(1, 1000), rng.randint(1, 2 ** 20)])


def keys_of(rng, n):
    form = rng.choice(["10.0.{}.{}:80", "[2001:db8::{:x}:{:x}]:443"])
    return [form.format(i // 250 + 1, i % 250 + 1) for i in rng.sample(range(2000), n)]


def test_random_sets():
    rng = random.Random(20261123)
    for number in range(SETS - WITH_LOCALITIES):
        keys, size = keys_of(rng, rng.randint(1, 40)), rng.choice(PRIMES)
        weights = [weight_of(rng) for _ in keys]
        text = "".join(f"{key}={weight}\n" for key, weight in zip(keys, weights))
        wanted = table_of([(key, weight * 1.0 / sum(weights)) for key, weight in zip(keys, weights)], size)
        got = dumped("--maglev", "--table-size", str(size), "--endpoints", "-", stdin=text)
        check(got == wanted, f"set {number}, {size} slots:\n{text}")


def test_random_localities():
    rng = random.Random(22)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mesh.json")
        for number in range(WITH_LOCALITIES):
            size, weighted = rng.choice(PRIMES), rng.random() < 0.8
            keys, localities, hosts = keys_of(rng, 30), [], []
            shares = [weight_of(rng) for _ in range(rng.randint(1, 5))]
            for at, share in enumerate(shares):
                own = [(keys[at * 6 + i], weight_of(rng)) for i in range(rng.randint(1, 6))]
                localities.append({"locality": {"zone": f"z{at}"}, "load_balancing_weight": share, "lb_endpoints": [
                    {"load_balancing_weight": weight, "endpoint": {"address": {"socket_address": {
                        "address": key.rsplit(":", 1)[0].strip("[]"), "port_value": int(key.rsplit(":", 1)[1])}}}}
                    for key, weight in own]})
                hosts += [(key, weight, share, sum(weight for _, weight in own)) for key, weight in own]
            every = sum(weight for _, weight, _, _ in hosts)
            parts = [(key, weight * (share / sum(shares)) / whole if weighted else weight * 1.0 / every)
                     for key, weight, share, whole in hosts]
            cluster = {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "c", "type": "EDS",
                       "eds_cluster_config": {"eds_config": {"ads": {}}}, "lb_policy": "MAGLEV",
                       "maglev_lb_config": {"table_size": size},
                       "common_lb_config": {"locality_weighted_lb_config": {}} if weighted else {}}
            assignment = {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
                          "cluster_name": "c", "endpoints": localities}
            with open(path, "w", encoding="utf-8") as out:
                json.dump({"version_info": "1", "resources": [cluster, assignment]}, out)
            got = dumped("--resources", path, "--cluster", "c")
            check(got == table_of(parts, size), f"localities {number}: {json.dumps(localities)}")


def test_the_command():
    ports = [part for port in range(90, 96) for part in ("-e", f"127.0.0.1:{port}")]
    seven = [*ports, "--maglev", "--table-size", "7"]
    check(dumped(*seven) == [f"127.0.0.1:9{i}" for i in (2, 4, 0, 1, 5, 0, 3)], "Envoy's table")
    shown = json.loads(run("ring", *seven, "-o", "json").stdout)
    check(shown["table_size"] == 7 and shown["entries"] == 7 and [e["entries"] for e in shown["endpoints"]] == [2, 1, 1, 1, 1, 1], str(shown))
    check(abs(shown["endpoints"][0]["hash_share"] - 2 / 7) < 1e-6, str(shown))
    key = json.loads(run("ring", *seven, "--key", "abc", "-o", "json").stdout)
    check(key["ring_index"] == xxh64(b"abc") % 7, str(key))
    walk = run("ring", *seven, "--walk", "abc").stdout.split()
    check(walk[0] == key["endpoint"] and len(set(walk)) == 6, str(walk))
    moved = json.loads(run("ring", *seven, "--remove", "127.0.0.1:92", "-o", "json").stdout)
    check(1 / 7 <= moved["moved"] + 1e-9 and any(m["from"] == "127.0.0.1:92" for m in moved["moves"]), str(moved))
    for args, why in ((["--table-size", "8", "--maglev"], "not a prime"), (["--table-size", "7"], "goes with --maglev"),
                      (["--maglev", "--min", "3"], "are for rings"), (["--maglev", "--svg", "-"], "no picture"),
                      (["--maglev", "--table-size", "5000012"], "5000011")):
        refused = run("ring", *ports, *args, status=2)
        check(why in refused.stderr, refused.stderr)


main(test_random_sets, test_random_localities, test_the_command)
