"""weighted_round_robin against grpc-go's orca package: two servers, whose reports with RPCs give ten times the weight to the first, and
those out of band to the second. Its scheduler against stride_model.py."""
import collections
import json
import random
import subprocess
import zlib

import stride_model
from programs import WAIT, Program

CALLS, COUNTED = 600, 330
LISTS, PICKS = 2000, 400
# Lists of weights for which C-core and grpc-go differ, each with the CRC-32 of 10,000 picks by C-core's rule and by
# grpc-go's.
DIFFERENT = [([10, 100, 20, 200], 0x3ED56838, 0x8AEA9CCA), ([81] + [1] * 19, 0xFAF35975, 0x2263726C), ([100, 1e-10], 0x8D156914, 0xD1FD0566)]
CONFIG = {"blackoutPeriod": "0s", "weightUpdatePeriod": "0.1s"}


def calls_of_the_first(paths, addresses, out_of_band):
    """How many of the last COUNTED calls that succeeded, when the reports are in, went to the first server."""
    policy = {"weighted_round_robin": {**CONFIG, "enableOobLoadReport": out_of_band}}
    done = subprocess.run([paths.command(), "call", "ipv4:" + ",".join(addresses), "grpc.testing.TestService/EmptyCall", "--raw",
                           "-n", str(CALLS), "--rps", "200", "-o", "json", "--service-config",
                           json.dumps({"loadBalancingConfig": [policy]})],
                          capture_output=True, text=True, timeout=WAIT, check=True)
    calls = [json.loads(line).get("call") for line in done.stdout.splitlines()]
    peers = [call["peer"] for call in calls if call and call["code"] == 0]
    return collections.Counter(peers[-COUNTED:])[addresses[0]]


def random_list(rng):
    """A line for interop_stride: any order of magnitude, some weights unknown, and sequences that wrap."""
    spread = rng.choice((0.1, 1, 4, 12))
    weights = [0 if rng.random() < 0.1 else stride_model.float32(10 ** rng.uniform(-spread, spread)) for _ in range(rng.randint(0, 40))]
    return rng.choice((0, rng.randrange(1 << 32), (1 << 32) - 50)), weights


def scheduler_faults(paths, options):
    rng, why = random.Random(options.seed), []
    with Program([paths.own("interop_stride")]) as ours:
        for _ in range(LISTS):
            sequence, weights = random_list(rng)
            scaled = stride_model.scaled_as_core(weights)
            places, after = stride_model.picks(scaled, PICKS, sequence) if scaled else ([], sequence)
            ours.process.stdin.write(f"{sequence} {PICKS} {' '.join(map(repr, weights))}\n")
            ours.process.stdin.flush()
            if ours.line() != " ".join(map(str, [*places, after])):
                why.append(f"sequence {sequence}, weights {weights}")
    for weights, core, go in DIFFERENT:
        for wanted, rule in ((core, stride_model.scaled_as_core), (go, stride_model.scaled_as_go)):
            places = stride_model.picks(rule(weights), 10000)[0]
            if zlib.crc32(",".join(map(str, places)).encode()) != wanted:
                why.append(f"{rule.__name__} of {weights}")
    return why


def run(paths, options):
    why = scheduler_faults(paths, options)
    cases = LISTS + 2 * len(DIFFERENT)
    yield {"peer": "C-core's scheduler (stride_model.py)", "version": "", "cases": cases, "passed": cases - len(why), "failed": len(why), "why": why[:5]}
    if options.peers and "go" not in options.peers:
        return
    version, why = paths.go_module("google.golang.org/grpc"), []
    with Program(paths.go("loads")[0]) as servers:
        addresses = servers.word_after("listening").split()
        for out_of_band, share in ((False, 10), (True, 1)):
            first, wanted = calls_of_the_first(paths, addresses, out_of_band), COUNTED * share // 11
            if abs(first - wanted) > 3:
                why.append(f"out of band {out_of_band}: {first} of {COUNTED} calls, wanted {wanted}")
    yield {"peer": "grpc-go", "version": version, "cases": 2, "passed": 2 - len(why), "failed": len(why), "why": why}
