"""Incremental ADS when the control plane's process ends and another takes its place: nothing that is unchanged is sent
again, though the new process knows nothing of the client."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (bootstrap, check, cluster, endpoints, free_address, listener, main, routes, running, write_resources)
from support.proxy import proxy_to

CLUSTERS, ENDPOINTS = 1000, 10


def mesh(changed=0):
    """A thousand clusters of ten endpoints; `changed` is part of one address."""
    listed = [{"match": {"prefix": f"/s{i}/"}, "route": {"cluster": f"c{i}"}} for i in range(CLUSTERS)]
    resources = [listener("orders", "r"), routes("r", *listed)]
    for i in range(CLUSTERS):
        resources.append(cluster(f"c{i}"))
        resources.append(endpoints(f"c{i}", *[
            f"10.{changed if i == 7 and e == 0 else 0}.{i % 250}.{i // 250 * 10 + e}:80" for e in range(ENDPOINTS)]))
    return resources


def incremental(address):
    env = bootstrap(address)
    config = json.loads(env["GRPC_XDS_BOOTSTRAP_CONFIG"])
    config["xds_servers"][0]["server_features"] = ["torc.incremental_ads"]
    return {**env, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(config)}


def is_answer(line, error=None):
    ads = json.loads(line).get("ads") if line.startswith("{") else None
    return ads and ads["type"].endswith("ClusterLoadAssignment") and ads["nonce"] and ads["error"] == error


def test_nothing_unchanged_is_sent_again():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mesh.json")
        write_resources(path, "1", *mesh())
        serve = ("serve-xds", "--resources", path, "--log", "json", "--listen")
        with running(*serve, free_address()) as server:
            at = server.listening()
            with proxy_to(at) as proxy, running("xds", "--watch", "xds:///orders", env=incremental(proxy.address)) as watch:
                watch.wait_line(lambda line: line.endswith("xds:///orders resolved"))
                server.wait_line(is_answer)
                full, told = proxy.take_received(), len(watch.seen)
                server.kill()
                with running(*serve, at) as again:
                    again.listening()
                    for _ in range(4):
                        again.wait_line(lambda line: '"initial_versions":' in line)
                    listed = [json.loads(line)["ads"] for line in again.seen if line.startswith('{"ads"')]
                    check({ads["stream"] for ads in listed} == {1}, "the first stream of this control plane")
                    said = {ads["type"].rsplit(".", 1)[1]: ads["initial_versions"] for ads in listed}
                    check(said == {"Listener": 1, "RouteConfiguration": 1, "Cluster": CLUSTERS,
                                   "ClusterLoadAssignment": CLUSTERS}, f"what the client has: {said}")
                    write_resources(path, "2", *mesh(1))
                    again.wait_line(is_answer)
                    received = proxy.take_received()
                    watch.wait_line(lambda line: " ACKED ClusterLoadAssignment c7 " in line)
                    told_again = [line for line in watch.seen[told:] if " ACKED " in line]
                    print(f"all of it: {full} bytes; after the restart, with one endpoint changed: {received} bytes",
                          flush=True)
                    check(received < 2000 < full, f"{received} bytes")
                    check(len(told_again) == 1, f"only what changed is told: {told_again[:5]}")


main(test_nothing_unchanged_is_sent_again)
