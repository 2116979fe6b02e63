"""Completions of the command (scripts/completion): each option that the help of a subcommand names is in those of bash, zsh and fish;
bash, and fish where it is installed, offer them."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TORC_SOURCE_DIR"], "test"))
from support.kit import SOURCE, TORC, WAIT, check, main

BASH = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _torc; printf "%s\\n" "${COMPREPLY[@]}"'


def output(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=WAIT, check=False)
    check(done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def documented():
    """The long options by subcommand, as the help of each names them, and those that the help leaves to convention."""
    commands = re.findall(r"^  ([\w-]+) ", output(TORC, "--help"), re.M)
    for name in commands:
        lines = [line for line in output(TORC, name, "--help").splitlines() if re.match(r" +-", line)]
        yield name, {"--help", "--output" if name in ("call", "list", "describe", "xds", "bootstrap", "ring", "simulate", "bench", "demo") else "--verbose"} | {
            option for line in lines for option in re.findall(r"(?:^|[ ,\[])(--[\w-]+)", line.strip().split("  ")[0])}


def completions(folder):
    output(sys.executable, os.path.join(SOURCE, "scripts", "completion"), folder)
    return [os.path.join(folder, name) for name in ("torc", "_torc", "torc.fish")]


def test_each_option():
    with tempfile.TemporaryDirectory() as folder:
        bash, zsh, fish = completions(folder)
        with open(zsh, encoding="utf-8") as text:
            sections = dict(re.findall(r"^    ([\w-]+)\)\n(.*?);;", text.read(), re.M | re.S))
        with open(fish, encoding="utf-8") as text:
            fish_text = text.read()
        for name, options in documented():
            check(len(options) > 1, f"{name} has options")
            offered = {"bash": set(output("bash", "-c", BASH, bash, "torc", name, "--").split()),
                       "zsh": set(re.findall(r"'\*(--[\w-]+)\[", sections[name])),
                       "fish": {"--" + o for o in re.findall(rf"from {name}' -l ([\w-]+)", fish_text)}}
            if shutil.which("fish"):
                offered["fish itself"] = set(re.findall(r"^--[\w-]+", output("fish", "-c", f"source {fish}; complete -C 'torc {name} --'"), re.M))
            for shell, found in offered.items():
                check(options <= found, f"{shell}: torc {name} without {sorted(options - found)}")
        for shell, path in (("bash", bash), ("zsh", zsh), ("fish", fish)):
            if shutil.which(shell):
                output(shell, "-n", path)


def test_values():
    with tempfile.TemporaryDirectory() as folder:
        bash, _, _ = completions(folder)
        check("serve-xds" in output("bash", "-c", BASH, bash, "torc", "s").split(), "subcommands")
        check("bench" in output("bash", "-c", BASH, bash, "torc", "help", "b").split(), "subcommands of help")
        check(output("bash", "-c", BASH, bash, "torc", "call", "--creds", "").split() == ["insecure", "tls", "xds", "google_default"], "values")
        check(output("bash", "-c", BASH, bash, "torc", "call", "-d", "").strip() == "", "a value of any kind")


def test_man_page():
    """Each option of each subcommand's table is in torc(1)."""
    with open(os.path.join(SOURCE, "docs", "reference", "torc.1"), encoding="utf-8") as page, tempfile.TemporaryDirectory() as folder:
        text = page.read().replace("\\-", "-")
        _, zsh, _ = completions(folder)
        with open(zsh, encoding="utf-8") as completion:
            sections = re.findall(r"^    ([\w-]+)\)\n(.*?);;", completion.read(), re.M | re.S)
        for name, section in sections:
            check(f".SS torc {name}" in text, f"torc {name} is not in torc(1)")
            for option in set(re.findall(r"'\*(--[\w-]+)\[", section)) - {"--help", "--verbose", "--output"}:
                check(re.search(re.escape(option) + r"(?![\w-])", text), f"torc {name} {option} is not in torc(1)")


main(test_each_option, test_values, test_man_page)
