"""The LB policies of one xds: channel with an aggregate cluster of two, and the folder of each."""
from draw import Picture

p = Picture(880, 520)
p.box(290, 10, 300, 44, "xds_cluster_manager", ["picks the cluster that the route chose"], fill="violet")
p.box(290, 84, 300, 44, "cds: cluster \"orders\"", ["an aggregate of orders-a, orders-b"], fill="violet")
p.box(290, 158, 300, 44, "priority", ["the first child that is not failing"], fill="green")
for x, name, last in ((40, "orders-a", "the locality of priority 0: READY"), (480, "orders-b", "IDLE: nobody has asked yet")):
    p.arrow(440, 202, x + 180, 232)
    p.box(x, 234, 360, 44, f"{name}: outlier_detection", ["ejects endpoints that fail"], fill="green")
    p.arrow(x + 180, 278, x + 180, 302)
    p.box(x, 304, 360, 44, "xds_cluster_impl, xds_override_host", ["circuit breaker, drops, load reports; sessions"],
          fill="violet")
    p.arrow(x + 180, 348, x + 180, 372)
    p.box(x, 374, 360, 44, "priority, ring_hash", [last], fill="green")
    for i in range(3):
        p.arrow(x + 180, 418, x + 60 + 120 * i, 442)
        p.box(x + 8 + 120 * i, 444, 104, 44, "pick_first", ["an endpoint"], fill="yellow")
p.arrow(440, 54, 440, 82)
p.arrow(440, 128, 440, 156)
p.text(440, 510, "violet: src/xds/lb    green, yellow: src/lb    each pick_first has one subchannel of the pool in src/subchannel", 12)
p.write(__file__)
