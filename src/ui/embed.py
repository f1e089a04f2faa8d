#!/usr/bin/env python3
"""Writes a C++ file that holds the given files of the page."""

import pathlib
import sys

output, *sources = map(pathlib.Path, sys.argv[1:])


def literals(text):
    """Compilers need not take literals of more than 64 KiB: in pieces, which they put together again."""
    pieces = [text[i : i + 8000] for i in range(0, len(text), 8000)] or [""]
    return "\n".join(f'R"_page_({piece})_page_"' for piece in pieces)


with output.open("w") as out:
    out.write('#include "ui/assets.hpp"\n\nnamespace hubferry::ui {\n\n')
    out.write("std::span<const PageFile> page_files() {\n  static constexpr PageFile files[] = {\n")
    for source in sources:
        out.write(f'    {{"{source.name}", {literals(source.read_text())}}},\n')
    out.write("  };\n  return files;\n}\n\n}  // namespace hubferry::ui\n")
