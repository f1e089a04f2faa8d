#!/usr/bin/env python3
"""Writes a C++ file that holds all YAML files of the given directories, and a depfile so that a new file is noticed."""

import pathlib
import sys

output, depfile, *directories = map(pathlib.Path, sys.argv[1:])
sources = sorted(path for directory in directories for path in directory.glob("*.yaml"))
with output.open("w") as out:
    out.write('#include "sim/crds/embedded.hpp"\n\nnamespace hubferry::sim {\n\n')
    out.write("const std::vector<EmbeddedFile>& embedded_crds() {\n")
    out.write("  static const std::vector<EmbeddedFile> files{\n")
    for source in sources:
        # Compilers need not take literals of more than 64 KiB: in pieces, which they put together again.
        text = source.read_text()
        pieces = [text[i : i + 8000] for i in range(0, len(text), 8000)] or [""]
        literals = "\n".join(f'R"_yaml_({piece})_yaml_"' for piece in pieces)
        out.write(f'      {{"{source.name}", {literals}}},\n')
    out.write("  };\n  return files;\n}\n\n}  // namespace hubferry::sim\n")
# A directory changes when a file is added or removed; one that does not exist yet appears in its parent.
watched = [directory if directory.exists() else directory.parent for directory in directories]
depfile.write_text(f"{output}: " + " ".join(str(path) for path in [*sources, *watched]) + "\n")
