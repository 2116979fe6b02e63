"""Static stride scheduling of weighted_round_robin, written a second time: C-core's rule, which Torc follows, and
grpc-go's. No peer exports its scheduler, so both are written here after their descriptions."""
import math
import struct

MOST = 65535


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def rounded(x):
    return math.floor(x + 0.5)


def scaled_as_core(weights):
    """C-core: floats of 32 bits; at most ten times the mean, at least a hundredth of it. None: round robin."""
    weights = [float32(w) for w in weights]
    known = [w for w in weights if w > 0]
    if len(weights) < 2 or not known:
        return None
    mean = sum(known) / len(known)
    largest = float32(10 * mean) if max(known) / mean > 10 else max(known)
    scale = float32(MOST / largest)
    middle = rounded(scale * mean)
    least = max(1, rounded(middle * 0.01))
    return [max(rounded(min(w, largest) * scale), least) if w > 0 else middle for w in weights]


def scaled_as_go(weights):
    """grpc-go: doubles, with neither a ceiling nor a floor. None, for round robin, also with at most one known weight,
    or when all scaled weights are equal."""
    known = [w for w in weights if w > 0]
    if len(weights) < 2 or len(known) < 2:
        return None
    middle = rounded(MOST / max(known) * (sum(known) / len(known)))
    scaled = [rounded(MOST / max(known) * w) if w > 0 else middle for w in weights]
    return None if len(set(scaled)) == 1 else scaled


def picks(scaled, count, sequence=0):
    """The places that are picked, and the sequence after them."""
    places = []
    while len(places) < count:
        turn, place = divmod(sequence, len(scaled))
        sequence = (sequence + 1) % (1 << 32)
        if (scaled[place] * turn + place * (MOST // 2)) % MOST >= MOST - scaled[place]:
            places.append(place)
    return places, sequence
