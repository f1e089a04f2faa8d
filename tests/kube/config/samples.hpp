#pragma once

#include <string>

namespace hubferry::test {

inline const std::string certificate_pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
inline const std::string exec_v1 = "client.authentication.k8s.io/v1";
inline const std::string key_pem = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";

/// Shifts a block of YAML to the right.
inline std::string indented(const std::string& block) {
  std::string text = "    ";
  for (const char c : block) {
    text += c;
    if (c == '\n') text += "    ";
  }
  return text + "\n";
}

/// A kubeconfig with context main, cluster cluster-1 and user alice, whose fields are given as YAML.
inline std::string kubeconfig_with(const std::string& cluster, const std::string& user,
                                   const std::string& context = {}) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
         "clusters:\n- name: cluster-1\n  cluster:\n" +
         indented(cluster) + "users:\n- name: alice\n  user:\n" + indented(user) +
         "contexts:\n- name: main\n  context:\n" + indented("cluster: cluster-1\nuser: alice\n" + context);
}

}  // namespace hubferry::test
