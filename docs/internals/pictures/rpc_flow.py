"""How an RPC travels, and what may fail it on the way."""
from draw import Picture

p = Picture(960, 760)
p.text(190, 24, "the RPC", weight="bold")
p.text(645, 24, "what may fail it here, and how", weight="bold")
STEPS = [
    ("application", ["torc_call_*"], "plain", ["a bad argument: TORC_E* at once"]),
    ("api, channel/call", ["handed to the loop's thread"], "yellow", ["at every step: DEADLINE_EXCEEDED; CANCELLED (the channel is freed too);", "UNAVAILABLE when the runtime was shut down"]),
    ("config selector", ["route, cluster, hash, deadline"], "violet", ["no resource yet: the call waits; no route: UNAVAILABLE, with the xDS node id"]),
    ("HTTP filters", ["xds/filter, before the first pick"], "violet", ["an injected fault: the configured status"]),
    ("picker", ["the LB tree's; without a lock"], "green",
     ["QUEUE: the call waits for the next picker; FAIL: UNAVAILABLE with the last", "connection's error (wait-for-ready: the call waits); DROP: UNAVAILABLE"]),
    ("call credentials", ["of the channel and of the call"], "blue", ["no token: UNAVAILABLE or UNAUTHENTICATED; no TLS below: UNAUTHENTICATED"]),
    ("subchannel", ["a slot under MAX_CONCURRENT_STREAMS"], "green", ["GOAWAY, or the connection ends first: picked again (transparent retry)"]),
    ("http2 stream", ["frames, written at the end of the turn"], "blue",
     ["RST_STREAM: the code's status; lost connection: UNAVAILABLE;", "messages or headers too large: RESOURCE_EXHAUSTED"]),
    ("server", [], "plain", ["its own grpc-status, in the trailers"]),
]
y = 40
for i, (title, notes, fill, faults) in enumerate(STEPS):
    p.box(40, y, 300, 56, title, notes, fill)
    if i + 1 < len(STEPS):
        p.arrow(190, y + 56, 190, y + 76)
    p.arrow(340, y + 28, 385, y + 28, dashed=True)
    for k, fault in enumerate(faults):
        p.text(392, y + 32 - 8 * (len(faults) - 1) + 16 * k, fault, 12, anchor="start")
    y += 76
p.text(450, y + 14, "A retry policy (channel/retry) begins a failed attempt again at the picker; hedging runs several attempts side by side.", 12)
p.text(450, y + 32, "A status says which layer failed the RPC, which peer, and what was waited for.", 12)
p.write(__file__)
