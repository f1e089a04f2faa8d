#pragma once

#include <functional>
#include <string>

#include "hubferry/phase/controller.hpp"

/// The custom resource, with its status to write into.
using Backup = hubferry::phase::KubeResource;

/// What the handlers need besides the resource.
struct BackupServices {
  std::function<hubferry::async::Awaitable<std::string>(std::string volume)> take_snapshot;
};

/// backup.cpp: phases, transitions and handlers.
void define(hubferry::phase::DefaultDefinition<BackupServices, Backup>& definition);

/// controller.cpp: runs until cancelled.
hubferry::async::Awaitable<> run_backup_controller(hubferry::kube::Api& api, BackupServices& services,
                                                   hubferry::kube::Env env);
