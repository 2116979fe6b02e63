"""An application with protobuf messages of its own that bear the names of Torc's (google.rpc.Status) and have another layout. Linked
with libtorc.a, neither sees the other's: a resource is refused, which sends a NACK with Torc's google.rpc.Status."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import BUILD, bootstrap, check, cluster, listener, main, routes, running, write_resources

PROGRAM = os.path.join(BUILD, "test", "own_names_program")


def test_a_nack_beside_the_applications_status():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mesh.json")
        route = {"match": {"prefix": ""}, "route": {"cluster": "c"}}
        write_resources(path, "1", listener("svc", "r"), routes("r", route),
                        cluster("c", lb_policy="RING_HASH", ring_hash_lb_config={"hash_function": "MURMUR_HASH_2"}))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path, "--log", "json") as control_plane:
            env = bootstrap(control_plane.listening())
            with subprocess.Popen([PROGRAM, "xds:///svc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, **env}) as program:
                said = [program.stdout.readline(), program.stdout.readline()]
                if said[1]:
                    nack = json.loads(control_plane.wait_line(lambda line: "must be XX_HASH" in line))["ads"]
                    check("must be XX_HASH" in nack["error"], f"the NACK: {nack}")
                program.stdin.close()
                status = program.wait(timeout=60)
            check(status == 0, f"exit {status}: {said}")
            check(said[0].startswith("UNAVAILABLE: ") and "must be XX_HASH" in said[0], f"{said}")
            check(said[1] == "own status: kept\n", f"{said}")


main(test_a_nack_beside_the_applications_status)
