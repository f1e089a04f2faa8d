#!/usr/bin/env python3
"""Writes a C++ file that holds the given manifests, as the documents of one YAML text."""

import pathlib
import sys

output, *sources = map(pathlib.Path, sys.argv[1:])
with output.open("w") as out:
    out.write('#include "hubferry/hubagent/hub_permissions.hpp"\n\nnamespace hubferry::hubagent {\n\n')
    out.write("std::string_view hub_rbac_manifests() {\n  return\n")
    for source in sources:
        # Compilers need not take literals of more than 64 KiB: in pieces, which they put together again.
        text = "---\n" + source.read_text()
        for i in range(0, len(text), 8000):
            out.write(f'R"_yaml_({text[i : i + 8000]})_yaml_"\n')
    out.write(";\n}\n\n}  // namespace hubferry::hubagent\n")
