"""TORC_LATE_LOADING. The shared library that loads OpenSSL, RE2 and libcurl itself says so in ELF notes (.note.dlopen), which name
exactly what it loads; the one that is linked against them has neither notes nor loads, and does the same work."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import (BUILD, WAIT, bootstrap, check, cluster, endpoints, free_address, listener, main, routes, running,
                         write_resources)
from support.pki import Pki

SANITIZED = bool(os.environ.get("TORC_SANITIZE"))
with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
    LATE = "TORC_LATE_LOADING:BOOL=ON" in cache.read()
LIBRARY = os.path.join(BUILD, "src", "libtorc.so.0.2")
LINKED = os.path.join(BUILD, "src", "linked") if LATE else os.path.join(BUILD, "src")
PROGRAM = os.path.join(BUILD, "test", "late_loading_program")
UNARY = os.path.join(BUILD, "examples", "unary")
NOTE_TYPE = 0x407C0C0A


def sections(path):
    """(byte order, name, type, flags, content) of each section of an ELF file of 64 bits."""
    with open(path, "rb") as file:
        data = file.read()
    check(data[:5] == b"\x7fELF\x02", f"{path} is an ELF file of 64 bits")
    order = "<" if data[5] == 1 else ">"
    table, = struct.unpack_from(order + "Q", data, 0x28)
    size, count, names_index = struct.unpack_from(order + "HHH", data, 0x3A)
    headers = [struct.unpack_from(order + "IIQQQQ", data, table + i * size) for i in range(count)]
    names = headers[names_index][4]
    for name, kind, flags, _, offset, length in headers:
        start = names + name
        yield order, data[start:data.index(b"\0", start)].decode(), kind, flags, data[offset:offset + length]


def notes(path):
    """The entries of every dlopen note of the file."""
    entries = []
    for order, name, kind, flags, content in sections(path):
        if name != ".note.dlopen":
            continue
        check(kind == 7 and flags == 2, f"an allocated, read-only section of notes: type {kind}, flags {flags}")
        while content:
            name_bytes, bytes_, note_type = struct.unpack_from(order + "III", content)
            owner, content = content[12:12 + name_bytes], content[12 + (name_bytes + 3) // 4 * 4:]
            text, content = content[:bytes_], content[(bytes_ + 3) // 4 * 4:]
            check(owner == b"FDO\0" and note_type == NOTE_TYPE, f"{owner} {note_type:#x}")
            check(text.endswith(b"\0"), f"a terminated string: {text}")
            entries += json.loads(text[:-1].decode())
    return entries


def run(*args, **env):
    return subprocess.run(args, capture_output=True, text=True, errors="replace", timeout=WAIT, check=False,
                          env={**os.environ, "LD_DEBUG": "files", "GCE_METADATA_HOST": free_address(), **env})


def loads(done):
    """The names of the files that libtorc.so asked the dynamic linker for, in order."""
    found = re.findall(r"file=(\S+) \[0\];\s+dynamically loaded by \S*/libtorc\.so\.[\d.]+ \[0\]", done.stderr)
    return [os.path.basename(name) for name in found]


def empty(folder, names):
    """Files that are not libraries: loading them fails and the next name is tried."""
    for name in names:
        with open(os.path.join(folder, name), "wb"):
            pass


def rpc_over_tls(folder, library_path):
    """The program's RPC to a TLS backend, while the metadata server is out of reach."""
    pki = Pki(folder)
    cert, key = pki.make("server", "IP:127.0.0.1")
    with running("backend", "--tls-cert", cert, "--tls-key", key) as backend:
        return run(PROGRAM, f"ipv4:{backend.listening()}", LD_LIBRARY_PATH=library_path, HOME=folder, CLOUDSDK_CONFIG=folder,
                   GOOGLE_APPLICATION_CREDENTIALS="", GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=pki.ca)


def rpc_with_regex(folder, library_path):
    """An RPC by a route that has a regex."""
    with running("backend", "--name", "b1") as backend:
        path = os.path.join(folder, "mesh.json")
        regex = {"safe_regex": {"regex": "/echo\\..*/S[a-z]y"}}
        write_resources(path, "1", listener("svc", "r"), routes("r", {"match": regex, "route": {"cluster": "c"}}), cluster("c"),
                        endpoints("c", backend.listening()))
        with running("serve-xds", "--listen", "127.0.0.1:0", "--resources", path) as control_plane:
            return run(UNARY, "xds:///svc", LD_LIBRARY_PATH=library_path, **bootstrap(control_plane.listening()))


def test_notes_name_what_is_loaded():
    if not LATE or SANITIZED:  # a sanitizer's dlopen stands between the two
        return
    entries = notes(LIBRARY)
    for entry in entries:
        check(set(entry) == {"soname", "feature", "description", "priority"}, f"{entry}")
        check(entry["priority"] in ("required", "recommended", "suggested"), f"{entry}")
    noted = {entry["feature"]: entry["soname"] for entry in entries}
    check(len(noted) == len(entries) == 3, f"one note a feature: {entries}")
    for feature, act, told in (("tls", rpc_over_tls, "OpenSSL cannot be loaded"),
                               ("google-default", rpc_over_tls, "libcurl cannot be loaded"),
                               ("xds-regex", rpc_with_regex, "Torc's library of regular expressions cannot be loaded")):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as libraries:
            shutil.copy(LIBRARY, libraries)
            empty(libraries, noted[feature])
            done = act(folder, libraries)
            check(told in done.stdout, f"{feature}: {done.stdout}{done.stderr[-500:]}")
            tried = [name for name in loads(done) if not any(name in noted[other] for other in noted if other != feature)]
            # Torc's own library is looked for beside libtorc.so and then as the dynamic linker finds it.
            check(list(dict.fromkeys(tried)) == noted[feature], f"{feature}: noted {noted[feature]}, loaded {tried}")


def test_what_is_linked_loads_nothing():
    if SANITIZED:
        return
    library = os.path.join(LINKED, "libtorc.so.0.2")
    check(notes(library) == [], f"{notes(library)}")
    dynamic = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    for name in ("libssl.so", "libcrypto.so", "libre2.so", "libcurl", "libstdc++.so"):
        check(any(n.startswith(name) for n in needed), f"{name} is not among {needed}")
    check(not any("libtorc-regex" in n for n in needed), f"{needed}")
    exported = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    check("torc_regex_engine" not in exported and "torc_unary" in exported, "the table of RE2's functions is not exported")
    with tempfile.TemporaryDirectory() as folder:
        done = rpc_with_regex(folder, LINKED)
        check(done.stdout.startswith("OK from") and not loads(done), done.stdout + str(loads(done)))
        done = rpc_over_tls(folder, LINKED)
        check(done.stdout.startswith("UNAVAILABLE: ") and "token" in done.stdout and "cannot be loaded" not in done.stdout, done.stdout)
        check(not loads(done), f"{loads(done)}")
        check(f"{LINKED}/libtorc.so.0.2" in done.stderr, "the program took the other library")


main(test_notes_name_what_is_loaded, test_what_is_linked_loads_nothing)
