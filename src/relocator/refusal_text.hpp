#pragma once

#include <string>

#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::relocator {

/// Why the destination refuses an object, for conditions, events and logs. Of a refused Secret only what quotes nothing
/// of it: a webhook or policy is named, but what it says is not repeated, as it may quote the Secret in any form; other
/// messages are left out if they share some characters with one of its values.
std::string refusal_text(const kube::Resource& resource, const kube::json::object& object, const kube::Error& error);

}  // namespace hubferry::relocator
