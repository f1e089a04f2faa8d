#!/usr/bin/env python3
"""Writes a C++ file that holds the given files of the page."""

import pathlib
import sys

output, *sources = map(pathlib.Path, sys.argv[1:])
with output.open("w") as out:
    out.write('#include "ui/assets.hpp"\n\nnamespace hubferry::ui {\n\n')
    out.write("std::string_view page_file(std::string_view name) {\n")
    for source in sources:
        # Compilers need not take literals of more than 64 KiB: in pieces, which they put together again.
        text = source.read_text()
        pieces = [text[i : i + 8000] for i in range(0, len(text), 8000)] or [""]
        literals = "\n".join(f'R"_page_({piece})_page_"' for piece in pieces)
        out.write(f'  if (name == "{source.name}")\n    return {literals};\n')
    out.write("  return {};\n}\n\n}  // namespace hubferry::ui\n")
