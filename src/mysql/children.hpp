#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/object.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/obs/secret.hpp"

/// The objects of a cluster as they are wanted: functions of the spec, without I/O.
namespace hubferry::mysql {

/// Whose objects these are.
struct Owner {
  std::string name;
  std::string ns;
};

/// The server_id of the first server; each has the next one. start.sh sets it.
inline constexpr std::uint32_t first_server_id = 100;

json::object labels_of(const Owner& owner);

json::object wanted_secret(const Owner& owner, const std::string& name,
                           const std::vector<std::pair<std::string, obs::Secret>>& data);
json::object wanted_config(const Owner& owner, const ClusterSpec& spec);
json::object wanted_headless_service(const Owner& owner);
/// Without a selector: its endpoints are ours. Kubernetes would rewrite those of a Service with one.
json::object wanted_service(const Owner& owner, const std::string& name, const ClusterSpec& spec);

struct Endpoint {
  std::string address;
  std::string pod;
  std::string pod_uid;
};
json::object wanted_endpoints(const Owner& owner, const std::string& service, const std::vector<Endpoint>& endpoints);

/// What the StatefulSet needs beside the spec.
struct StatefulSetInputs {
  std::string root_secret;   // the Secret with the key `password`
  std::string content_hash;  // of what pods read only when they start
  std::string exporter_image;
};
/// The image of the servers that the spec wants.
std::string image_of(const ClusterSpec& spec);
/// The image of the container `mysql` among these.
std::string image_of(const json::value* containers);
/// The Secret with the root password that these containers use; that of a StatefulSet's servers.
std::string root_secret_of(const json::value* containers);
std::string root_secret_of(const kube::Object& set);
/// The size of the volumes that this StatefulSet makes.
std::string storage_of(const kube::Object& set);

/// How many servers this StatefulSet has.
std::size_t replicas_of(const kube::Object& set);

json::object wanted_stateful_set(const Owner& owner, const ClusterSpec& spec, const StatefulSetInputs& inputs);

/// What pods read only when they start, keyed by a secret: the hash of a password must not help to guess it.
std::string content_hash(const obs::Secret& key, const ClusterSpec& spec, const obs::Secret& root_password);

/// Puts every field of `wanted` into `object`; true if that changed it. Other fields stay, lists are replaced.
bool overlay(json::object& object, const json::object& wanted);

/// Letters and digits from the operating system's generator.
obs::Secret generate_password(std::size_t length);

}  // namespace hubferry::mysql
