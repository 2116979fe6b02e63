"""The runner of run.py finds what breaks older programs: a library that writes or reads behind an older struct, or that has
lost a function; and a release without programs. It finds nothing where the library has grown as it may."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import release_findings

HEADER = """
#include <stdint.h>
struct torc_fake_options { uint64_t size; int64_t level; };
int64_t torc_fake(const struct torc_fake_options *options);
void torc_fake_fill(struct torc_fake_options *options);
"""
PROGRAM = """
#include <torc/torc.h>
#include "poisoned.h"
int main(void)
{
    struct torc_fake_options *options = POISONED(torc_fake_options);
    options->size = sizeof(*options);
    torc_fake_fill(options);
    printf("%lld\\n", (long long)torc_fake(options));
    return poisoned_end();
}
"""
# The struct has grown by a field since the release.
LIBRARY = """
#include <stdint.h>
struct options { uint64_t size; int64_t level, more; };
int64_t torc_fake(const struct options *options) { return options->level + (READS ? options->more : 0); }
#if FILLS
void torc_fake_fill(struct options *options) { options->level = 7; if (WRITES) options->more = 0; }
#endif
"""
GROWN = "options->size >= sizeof(*options)"
# (what the library does, its macros, what the finding says; None: no finding)
LIBRARIES = [
    ("respects the size", {"READS": GROWN, "WRITES": GROWN, "FILLS": "1"}, None),
    ("writes behind the struct", {"READS": GROWN, "WRITES": "1", "FILLS": "1"}, "+written behind struct torc_fake_options, byte 16"),
    ("reads behind the struct", {"READS": "1", "WRITES": GROWN, "FILLS": "1"}, "-7\n+"),
    ("has lost a function", {"READS": GROWN, "WRITES": GROWN, "FILLS": "0"}, "torc_fake_fill"),
]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        release = folder / "0.1"
        (release / "include" / "torc").mkdir(parents=True)
        (release / "include" / "torc" / "torc.h").write_text(HEADER)
        if not any("no programs" in finding for finding in release_findings(release, folder, ["cc"])):
            sys.exit("a release without programs passes")
        (release / "program.c").write_text(PROGRAM)
        (release / "program.out").write_text("7\n")
        (folder / "library.c").write_text(LIBRARY)
        for what, macros, wanted in LIBRARIES:
            subprocess.run(["cc", "-shared", "-fPIC", *[f"-D{k}=({v})" for k, v in macros.items()], folder / "library.c", "-o",
                            folder / "libtorc.so"], check=True)
            found = release_findings(release, folder, ["cc"])
            if bool(found) != bool(wanted) or wanted and wanted not in found[0]:
                sys.exit(f"the library {what}: wanted {wanted}, found {found}")
            print(f"ok: {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
