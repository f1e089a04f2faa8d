"""Man pages, from what --help prints: one source for both."""

import re


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def flags(lines):
    """Entries indented by two, with their description behind them or, indented by eight, below. The variable of a flag,
    which help shows behind it or below, is a line of its own."""
    out = []
    for line in lines:
        entry = re.match(r"  (\S.*?)(?: {3,}(.*))?$", line)
        text = entry.group(2) if entry else line.strip()
        if entry:
            out += [".TP", ".B " + escaped(entry.group(1))]
        if text:
            out += [escaped(text), *([".br"] if re.fullmatch(r"\$[A-Z_]+", text) else [])]
    return out


def body(text):
    """The rest of a help text: paragraphs, and sections whose heading ends in a colon."""
    out, paragraphs = [], re.split(r"\n\n+", text.strip("\n"))
    for paragraph in paragraphs:
        lines = paragraph.split("\n")
        heading = re.fullmatch(r"([a-z ]+):", lines[0])
        if heading is None:
            out += [".PP", *(escaped(line) for line in lines)]
        elif heading.group(1) == "examples":
            out += [".SH EXAMPLES", ".nf", *(escaped(line.removeprefix("  ")) for line in lines[1:]), ".fi"]
        else:
            out += [".SH " + heading.group(1).upper(), *flags(lines[1:])]
    return out


def page(name, text, version, others):
    title, rest = text.split("\n", 1)
    purpose = title.split(": ", 1)[1]
    usage = re.search(r"^usage: (.*)$", rest, re.M).group(1)
    rest = rest.replace("usage: " + usage, "", 1)
    lines = [f'.TH "{name.upper()}" 1 "" "hubferry {version}" "hubferry"', ".SH NAME", f"{escaped(name)} \\- {escaped(purpose)}",
             ".SH SYNOPSIS", ".B " + escaped(usage), ".SH DESCRIPTION", *body(rest), ".SH SEE ALSO",
             ", ".join(f"{escaped(other)}(1)" for other in others)]
    return "\n".join(lines) + "\n"


def pages(output_of, version):
    """`output_of` runs the binary with arguments. Returns the pages by file name."""
    text = output_of("--help")
    commands = re.findall(r"^  ([a-z]+) ", text.split("commands:")[1].split("\n\n")[0], re.M)
    names = ["hubferry", *(f"hubferry-{command}" for command in commands)]
    texts = [text, *(output_of(command, "--help") for command in commands)]
    return {f"{name}.1": page(name, help_text, version, [other for other in names if other != name])
            for name, help_text in zip(names, texts)}
