"""One turn of the loop, in the order of src/io/loop_turn.c."""
from draw import Picture

p = Picture(880, 240)
STEPS = [("events", ["epoll: bytes in, connections", "made and lost"], "blue"),
         ("posts", ["what other threads asked for", "joins the serial queue"], "yellow"),
         ("timers that are due", ["deadlines, backoff, keepalive"], "blue"),
         ("the serial queue", ["results, pickers, picks;", "at most 10,000 tasks"], "green"),
         ("the end of the turn", ["one write a connection for", "all that the turn queued"], "blue")]
for i, (title, notes, fill) in enumerate(STEPS):
    p.box(14 + 174 * i, 60, 152, 84, title, notes, fill=fill)
    if i:
        p.arrow(14 + 174 * i - 22, 102, 12 + 174 * i, 102)
p.parts.append("<path d='M786,146 L786,196 L90,196 L90,148' fill='none' stroke='#57606a' stroke-width='1.5' marker-end='url(#head)'/>")
p.text(440, 216, "then the thread waits in epoll for the first event, post or timer", 12)
p.text(440, 34, "A turn of the loop", weight="bold")
p.write(__file__)
