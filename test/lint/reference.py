"""The public headers in the eyes of a generator (scripts/reference): Doxygen reads all of them without a warning, and finds each function,
struct and enum, with a text."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
    yield from re.findall(r"^TORC_(?:TESTING_|JSON_)?API\s[^;]*?\b(torc_\w+)\s*\(", text, re.M)
    yield from re.findall(r"^(?:struct|enum) (\w+) \{", text, re.M)


def described(folder):
    """The names that the generator has a text for."""
    for path in folder.glob("*.xml"):
        for element in ET.parse(path).iter():
            name = element.find("name" if element.tag == "memberdef" else "compoundname")
            texts = [element.find(part) for part in ("briefdescription", "detaileddescription")]
            if name is not None and any(text is not None and "".join(text.itertext()).strip() for text in texts):
                yield name.text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build")
    source = parser.parse_args().source
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, source / "scripts" / "reference", folder], check=False)
        if done.returncode == 77:
            return 77
        names = set(described(pathlib.Path(folder) / "xml"))
    headers = sorted((source / "include" / "torc").glob("*.h"))
    wanted = [(header.name, name) for header in headers for name in declared(header)]
    missing = [f"{header}: {name} is not in the reference" for header, name in wanted if name not in names]
    print("\n".join([*missing, f"{len(headers)} headers, {len(wanted)} names, {len(missing)} are missing"]))
    return 1 if missing or done.returncode or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
