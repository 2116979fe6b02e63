"""Random messages of test/stubs, packed by Python's protobuf, through Torc's generated code (interop_stubs) and back:
equal. A message that lacks a required field is refused with the name of one that Python's protobuf misses, too.

usage: kinds.py PROGRAM FOLDER-OF-PB2 COUNT SEED. Prints "unequal: WHY" lines, "protobuf VERSION" and "messages N bytes
N unequal N"."""
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import kinds_pb2
import other_pb2
from google.protobuf.descriptor import FieldDescriptor as F
from random_messages import Messages, ask, conclude

PROGRAM, COUNT, SEED = sys.argv[1], int(sys.argv[3]), sys.argv[4]
TYPES = (kinds_pb2.Kinds, other_pb2.Old, other_pb2.Needs)


class Stubs(Messages):
    """Strings are without NUL, which Torc refuses: a C string ends there."""
    required = 0.97


def missing_in(message, path=""):
    """The paths of required fields that are not set; protobuf's own FindInitializationErrors crashes with some messages of upb's."""
    for field in message.DESCRIPTOR.fields:
        if field.is_required and not message.HasField(field.name):
            yield path + field.name
    for field, value in message.ListFields():
        if field.type == F.TYPE_MESSAGE:
            is_map = field.message_type.GetOptions().map_entry
            if is_map and field.message_type.fields_by_name["value"].type != F.TYPE_MESSAGE:
                continue
            for inner in value.values() if is_map else value if field.is_repeated else [value]:
                yield from missing_in(inner, path + field.name + ("[]." if is_map or field.is_repeated else ".") + ("value." if is_map else ""))


def main():
    total = unequal = refused = 0
    stubs = Stubs(SEED)
    with subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for i in range(COUNT):
            which = (0, 1, 2, 0)[i % 4]
            message = TYPES[which]()
            stubs.fill(message, stubs.rng.choice((0, 1, 1, 2)))
            packed = message.SerializePartialToString()
            missing = set(missing_in(message))
            if bool(missing) == message.IsInitialized():
                raise SystemExit(f"message {i} of seed {SEED}: protobuf does not miss {missing}")
            total += len(packed)
            kind, answer = ask(program, packed, which)
            back = TYPES[which].FromString(answer) if kind else None
            refusal = re.fullmatch(r"[\w.]+: field (.+): is required, and missing", answer.decode()) if not kind else None
            if refusal and re.sub(r"\[\d+\]", "[]", refusal[1]) in missing:
                refused += 1
                continue
            if not kind or missing or back.SerializePartialToString(deterministic=True) != message.SerializePartialToString(deterministic=True):
                unequal += 1
                print(f"unequal: message {i} of seed {SEED}: {answer if not kind else answer.hex()} of {packed.hex()}"[:2000])
                if unequal > 5:
                    break
        program.stdin.close()
    conclude(f"messages {COUNT} bytes {total} unequal {unequal}")
    if not COUNT // 100 < refused < COUNT // 2:
        raise SystemExit(f"{refused} of {COUNT} messages lacked a required field")
    return 1 if unequal or program.returncode else 0


sys.exit(main())
