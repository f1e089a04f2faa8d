#pragma once

#include <optional>
#include <string>

#include "hubferry/phase/controller.hpp"

namespace hubferry::phase {

/// Why a phase machine cannot keep its status in resources of this kind: a message; nullopt: it can. `definition` is
/// its CustomResourceDefinition, `fields` are those that its status needs too.
std::optional<std::string> status_problem(const kube::Object& definition, const kube::Resource& kind,
                                          PhaseSource source = PhaseSource::status,
                                          const std::vector<std::string>& fields = {});

}  // namespace hubferry::phase
