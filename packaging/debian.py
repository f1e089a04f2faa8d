"""The Debian packages that the binary consists of, and the SBOM that lists them (SPDX 2.3)."""

import datetime
import json
import pathlib
import re
import subprocess
import uuid

# Of every Linux: what the C library brings is not bundled.
OF_THE_SYSTEM = re.compile(r"^(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv)\.so")
# Compiled into the binary from headers: no file of theirs shows it.
COMPILED_IN = ["libboost1.81-dev", "libcli11-dev"]
BUILT_WITH = ["clang-19", "lld-19"]


class Package:
    def __init__(self, name, relation):
        fields = subprocess.run(
            ["dpkg-query", "-W", "-f=${Version}\t${source:Package}\t${source:Version}\t${Architecture}", name],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\t")
        if len(fields) != 4:
            raise SystemExit(f"package: the Debian package {name} is not installed")
        self.name, self.relation, self.bundled = name.split(":")[0], relation, []
        self.version, self.source, self.source_version, self.architecture = fields

    @property
    def copyright(self):
        return pathlib.Path("/usr/share/doc") / self.name / "copyright"


def owner_of(library):
    """The package of a file. /lib is a link to /usr/lib, and dpkg knows a file by one of both names."""
    for path in {str(library), "/usr" + str(library), str(library).removeprefix("/usr")}:
        found = subprocess.run(["dpkg", "-S", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        if found:
            return found.split(": ")[0].split(",")[0]
    raise SystemExit(f"package: {library} is of no Debian package")


def packages_of(binary):
    listing = subprocess.run(["ldd", binary], check=True, stdout=subprocess.PIPE, text=True).stdout
    packages = {}
    for library in sorted(pathlib.Path(path) for path in re.findall(r"=> (/\S+)", listing)):
        name = owner_of(library)
        package = packages.setdefault(name, Package(name, "DYNAMIC_LINK"))
        if not OF_THE_SYSTEM.match(library.name):
            package.bundled.append(library)
    for names, relation in ((COMPILED_IN, "STATIC_LINK"), (BUILT_WITH, "BUILD_TOOL_OF")):
        for name in names:
            packages[name] = Package(name, relation)
    return [packages[name] for name in sorted(packages)]


def entry(package):
    purl = f"pkg:deb/debian/{package.name}@{package.version}?arch={package.architecture}&distro=debian-12"
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", package.name),
        "name": package.name,
        "versionInfo": package.version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from Debian's source package {package.source} {package.source_version}",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": purl.replace("+", "%2B")}],
    }


def sbom(packages, version, time):
    root = {
        "SPDXID": "SPDXRef-hubferry", "name": "hubferry", "versionInfo": version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
    }
    entries = [entry(package) for package in packages]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": root["SPDXID"]}]
    for package, described in zip(packages, entries):
        ends = [root["SPDXID"], described["SPDXID"]]
        if package.relation == "BUILD_TOOL_OF":
            ends.reverse()
        relations.append({"spdxElementId": ends[0], "relationshipType": package.relation, "relatedSpdxElement": ends[1]})
    content = json.dumps([entries, version], sort_keys=True)
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"hubferry-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/hubferry-{version}-{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: hubferry-packaging"],
        },
        "packages": [root, *entries],
        "relationships": relations,
    }
    return json.dumps(document, indent=2) + "\n"
