"""A rolling restart: ten servers are stopped gracefully and started again, one after the other, while grpc-go makes 2,000 RPCs a
second through round_robin. No RPC fails."""
import contextlib
import json

from programs import Failure, Program

SERVERS = 10
RATE = 2000


def serve(paths, address):
    server = Program([paths.own("interop_server"), f"--listen={address}"])
    return server, server.word_after("listening")


def restart_all(paths, client, servers):
    for address in servers:
        tell_reached(client, address)
        servers[address].finish()
        servers[address], again = serve(paths, address)
        if again != address:
            raise Failure(f"{again}, not {address}")
        tell_reached(client, address)


def tell_reached(client, address):
    client.process.stdin.write(address + "\n")
    client.process.stdin.flush()
    if client.word_after("reached") != address:
        raise Failure("the client speaks of another server")


def run(paths, options):
    if options.peers and "go" not in options.peers:
        return
    command, _ = paths.go("rolling")
    with contextlib.ExitStack() as stack:
        servers = {}
        stack.callback(lambda: [server.__exit__() for server in servers.values()])
        for _ in range(SERVERS):
            server, address = serve(paths, "127.0.0.1:0")
            servers[address] = server
        client = stack.enter_context(Program([*command, f"-targets={','.join(servers)}", f"-rate={RATE}"]))
        restart_all(paths, client, servers)
        client.process.stdin.close()
        counts = json.loads(client.line())
        for server in servers.values():
            server.finish()
    why = [f"{counts['failed']} of {counts['calls']} RPCs failed, the first with {counts['first']}"] if counts["failed"] else []
    yield {"peer": "grpc-go", "version": paths.go_module("google.golang.org/grpc"), "cases": SERVERS,
           "passed": 0 if why else SERVERS, "failed": len(why) * SERVERS, "why": why,
           "notes": [f"{SERVERS} servers restarted, {counts['calls']} RPCs"]}
