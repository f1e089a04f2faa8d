#pragma once

#include <optional>
#include <string>

#include "hubagent/requests.hpp"

/// Which ManifestWorks of a cluster are copied: those of its users. On the target they adopt what they deployed before,
/// and the source's eviction deletes nothing.
namespace hubferry::hubagent {

/// Why this work is not copied; nullopt: it is.
std::optional<std::string> why_work_stays(const std::string& cluster, const Object& work);

/// True for the works of the klusterlet itself, of which every hub has its own.
bool is_klusterlet_work(const std::string& cluster, const Object& work);

}  // namespace hubferry::hubagent
