"""The Helm chart, made from what kustomize builds: the same objects, with values in the places named here.

A replacement that does not find its place is an error, so the chart cannot fall behind the manifests unnoticed.
"""

import re

NAMESPACE = "hubferry-system"

# Not in the chart: the release's own namespace, and CRDs, which Helm wants beside the templates.
MONITORING = {"ServiceMonitor", "PrometheusRule", "ConfigMap"}

VALUES = """\
# Values of the chart; those here give what manifests/base gives.

image:
  repository: hubferry    # built by the Dockerfile of the sources
  tag: ""                 # the chart's appVersion
  pullPolicy: ""          # Kubernetes' default

# One leads, the others stand by.
replicas: 2

RESOURCES
# ServiceMonitor, alerts and Grafana dashboard for the Prometheus operator. The namespace of Prometheus needs the label
# metrics=enabled.
monitoring:
  enabled: false
  runbookBase: ""         # put before the alerts' runbook_url, such as https://docs.example.com/hubferry/

# The page that shows migrations live, on the pods' loopback interface: kubectl port-forward deployment/hubferry-manager 8082
ui:
  enabled: false

# Kinds that are copied with each cluster beside the default ones: see docs/migrations.md.
carriedResources: []

# Further flags of `hubferry manager`.
extraArgs: []
"""

SCHEMA = """\
{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "global": {"type": "object"},
    "image": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "repository": {"type": "string", "minLength": 1},
        "tag": {"type": "string"},
        "pullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]}
      }
    },
    "replicas": {"type": "integer", "minimum": 0},
    "resources": {"type": "object"},
    "monitoring": {
      "type": "object",
      "additionalProperties": false,
      "properties": {"enabled": {"type": "boolean"}, "runbookBase": {"type": "string"}}
    },
    "ui": {
      "type": "object",
      "additionalProperties": false,
      "properties": {"enabled": {"type": "boolean"}}
    },
    "carriedResources": {"type": "array", "items": {"type": "object"}},
    "extraArgs": {"type": "array", "items": {"type": "string", "pattern": "^--"}}
  }
}
"""

NOTES = """\
hubferry {{ .Chart.AppVersion }} is installed in namespace {{ .Release.Namespace }}. Next: register the hubs, docs/install.md step 2.

The manager meets the Pod Security profile "restricted"; to enforce it:
  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
"""

CARRIED = """\
{{- if .Values.carriedResources }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: hubferry-carried-resources
  namespace: {{ .Release.Namespace }}
  labels:
    app.kubernetes.io/name: hubferry
data:
  carried-resources.yaml: |
    carriedResources:
{{ toYaml .Values.carriedResources | indent 6 }}
{{- end }}
"""


def replaced(text, old, new):
    if text.count(old) != 1:
        raise SystemExit(f"package: the chart expects once, and found {text.count(old)} times:\n{old}")
    return text.replace(old, new)


def escaped(text):
    """Braces of alerts and panels are Prometheus' and Grafana's, not Helm's."""
    return re.sub(r"\{\{|\}\}", lambda braces: '{{ "%s" }}' % braces.group(0), text)


def deployment(text, version):
    resources = re.search(r"^        resources:\n((?:          .*\n)+)", text, re.M)
    text = replaced(text, resources.group(0), "        resources:\n{{ toYaml .Values.resources | indent 10 }}\n")
    text = replaced(text, "  replicas: 2\n", "  replicas: {{ .Values.replicas }}\n")
    text = replaced(text, f"        image: hubferry:{version}\n",
                    '        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"\n'
                    "{{- if .Values.image.pullPolicy }}\n"
                    "        imagePullPolicy: {{ .Values.image.pullPolicy }}\n"
                    "{{- end }}\n")
    text = replaced(text, "        - --log-format=json\n",
                    "        - --log-format=json\n"
                    "{{- if .Values.ui.enabled }}\n"
                    "        - --ui-bind-address=127.0.0.1:8082\n"
                    "{{- end }}\n"
                    "{{- if .Values.carriedResources }}\n"
                    "        - --carried-resources=/etc/hubferry/carried-resources.yaml\n"
                    "{{- end }}\n"
                    "{{- range .Values.extraArgs }}\n"
                    "        - {{ . | quote }}\n"
                    "{{- end }}\n")
    text = replaced(text, "          readOnlyRootFilesystem: true\n",
                    "          readOnlyRootFilesystem: true\n"
                    "{{- if .Values.carriedResources }}\n"
                    "        volumeMounts:\n"
                    "        - name: carried-resources\n"
                    "          mountPath: /etc/hubferry\n"
                    "          readOnly: true\n"
                    "      volumes:\n"
                    "      - name: carried-resources\n"
                    "        configMap:\n"
                    "          name: hubferry-carried-resources\n"
                    "{{- end }}\n")
    # The file is read at startup: new content needs new pods.
    text = replaced(text, "        kubectl.kubernetes.io/default-container: manager\n",
                    "        kubectl.kubernetes.io/default-container: manager\n"
                    "{{- if .Values.carriedResources }}\n"
                    "        checksum/carried-resources: {{ toYaml .Values.carriedResources | sha256sum }}\n"
                    "{{- end }}\n")
    values = "resources:\n" + re.sub(r"^        ", "", resources.group(1), flags=re.M)
    return text, values


def files(built, version):
    """The chart's files by path, from the output of kustomize for manifests/overlays/monitoring."""
    all_files = {"values.schema.json": SCHEMA, "templates/NOTES.txt": NOTES, "templates/carried-resources.yaml": CARRIED}
    values = None
    for text in built.split("\n---\n"):
        text = text.strip("\n") + "\n"
        kind = re.search(r"^kind: (\w+)$", text, re.M).group(1)
        name = re.search(r"^  name: (\S+)$", text, re.M).group(1)
        if kind == "Namespace":
            continue
        if kind == "CustomResourceDefinition":
            all_files[f"crds/{name}.yaml"] = text
            continue
        text = escaped(text)
        text = re.sub(r"^(\s*namespace: )%s$" % NAMESPACE, r"\1{{ .Release.Namespace }}", text, flags=re.M)
        if kind == "Deployment":
            text, values = deployment(text, version)
        elif kind == "PodDisruptionBudget":
            # With a single replica it would keep nodes from being drained.
            text = "{{- if gt (int .Values.replicas) 1 }}\n" + text + "{{- end }}\n"
        elif kind in MONITORING:
            text = re.sub(r"runbook_url: docs/", "runbook_url: {{ .Values.monitoring.runbookBase }}docs/", text)
            text = "{{- if .Values.monitoring.enabled }}\n" + text + "{{- end }}\n"
        all_files[f"templates/{kind.lower()}-{name}.yaml"] = text
    all_files["values.yaml"] = VALUES.replace("RESOURCES\n", values + "\n")
    all_files["Chart.yaml"] = f"""\
apiVersion: v2
name: hubferry
description: Migrates managed clusters between hubs of Open Cluster Management.
type: application
version: {version}
appVersion: "{version}"
kubeVersion: ">=1.21.0-0"
"""
    return all_files
