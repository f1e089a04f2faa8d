#pragma once

#include "hubferry/phase/default_definition.hpp"
#include "mysql/cluster.hpp"

namespace hubferry::mysql {

/// A MySQLBackup with its status.
struct Backup : phase::KubeResource {
  explicit Backup(phase::KubeResource resource) : phase::KubeResource(std::move(resource)) {}
};

void declare(phase::DefaultDefinition<Services, Cluster>& definition);
void declare(phase::DefaultDefinition<Services, Backup>& definition);

}  // namespace hubferry::mysql
