#!/usr/bin/env python3
"""Torc against programs of other projects. Prints a table (suite, peer, version, cases, passed, failed, skipped).

usage: run.py --build DIR [--strict] [--peers torc,go,python,node,java,envoy,buf,h2spec,probes,published,protojson,descriptors,etcd,otlp] [--meshes N] [--keys N] [--messages N] [--seed S] [SUITE ...]

TORC_INTEROP_MESSAGES is the number of messages whatever --messages says, also for the tests of `make check`.
Exit 0 when all passed, 1 when a case failed (with --strict: or was skipped), 77 when everything was skipped."""
import argparse
import os
import sys
import traceback

sys.dont_write_bytecode = True

import build_peers  # noqa: E402
import programs  # noqa: E402
import suite_agreement  # noqa: E402
import suite_bench  # noqa: E402
import suite_buf  # noqa: E402
import suite_command  # noqa: E402
import suite_control_plane  # noqa: E402
import suite_corpora  # noqa: E402
import suite_csds  # noqa: E402
import suite_envoy  # noqa: E402
import suite_etcd  # noqa: E402
import suite_h2spec  # noqa: E402
import suite_health  # noqa: E402
import suite_json  # noqa: E402
import suite_loads  # noqa: E402
import suite_otlp  # noqa: E402
import suite_probes  # noqa: E402
import suite_protos  # noqa: E402
import suite_psm  # noqa: E402
import suite_published  # noqa: E402
import suite_rolling  # noqa: E402
import suite_rpc  # noqa: E402
import suite_serve  # noqa: E402
import suite_stubs  # noqa: E402
import suite_vectors  # noqa: E402

SUITES = {"published": suite_published.run, "vectors": suite_vectors.run, "protos": suite_protos.run, "rpc": suite_rpc.run, "serve": suite_serve.run, "probes": suite_probes.run_suite, "rolling": suite_rolling.run, "http2": suite_rpc.run_http2,
          "h2spec": suite_h2spec.run,
          "control_plane": suite_control_plane.run, "csds": suite_csds.run,
          "psm": suite_psm.run, "stubs": suite_stubs.run, "json": suite_json.run, "loads": suite_loads.run, "health": suite_health.run, "envoy": suite_envoy.run, "buf": suite_buf.run, "corpora": suite_corpora.run, "etcd": suite_etcd.run, "otlp": suite_otlp.run, "agreement": suite_agreement.run,
          "command": suite_command.run, "bench": suite_bench.run}
COLUMNS = ["suite", "peer", "version", "cases", "passed", "failed", "skipped"]


def rows_of(name, paths, options):
    try:
        for row in SUITES[name](paths, options):
            yield {"suite": name, "cases": 0, "passed": 0, "failed": 0, "skipped": 0, **row}
    except build_peers.Missing as missing:  # what all peers of the suite need
        yield {"suite": name, "peer": "-", "version": "", "cases": 0, "passed": 0, "failed": 0, "skipped": 1,
               "why": [str(missing)]}
    except Exception as error:  # a peer that does not build or start is a failure, and the other suites still run
        if not isinstance(error, (programs.Failure, RuntimeError)):
            traceback.print_exc()
        yield {"suite": name, "peer": "-", "version": "", "cases": 0, "passed": 0, "failed": 1, "skipped": 0,
               "why": [str(error)]}


def print_table(rows):
    widths = {c: max(len(c), *(len(str(row[c])) for row in rows)) for c in COLUMNS}
    for cells in [{c: c for c in COLUMNS}, *rows]:
        print("  ".join(str(cells[c]).ljust(widths[c]) for c in COLUMNS).rstrip())
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.environ.get("TORC_BINARY_DIR", "build"))
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--peers", type=lambda text: text.split(","))
    parser.add_argument("--meshes", type=int, default=200)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=100000)
    parser.add_argument("--seed", default="torc")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    options = parser.parse_args()
    options.messages = int(os.environ.get("TORC_INTEROP_MESSAGES", options.messages))
    if set(options.suites) - set(SUITES):
        parser.error(f"suites are {', '.join(SUITES)}")
    paths = programs.Paths(options.build)
    rows = []
    for name in options.suites or SUITES:
        for row in rows_of(name, paths, options):
            rows.append(row)
            for line in row.get("notes", []):
                print(f"{name}, {row['peer']}: {line}")
            for line in row.get("why", []):
                print(f"{name}, {row['peer']}: {'skipped' if row['skipped'] else 'FAILED'}: {line}", flush=True)
    print_table(rows)
    if any(row["failed"] for row in rows) or (options.strict and any(row["skipped"] for row in rows)):
        sys.exit(1)
    sys.exit(77 if all(row["skipped"] and not row["passed"] for row in rows) else 0)


main()
