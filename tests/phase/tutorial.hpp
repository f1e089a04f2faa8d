#pragma once

#include <functional>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/work_queue.hpp"

/// What the tutorial's handlers need besides the resource.
struct BackupServices {
  std::function<hubferry::async::Awaitable<std::string>(std::string volume)> take_snapshot;
};

hubferry::async::Awaitable<> run_backup_controller(hubferry::kube::Api& api, hubferry::kube::WorkQueue& queue,
                                                   BackupServices& services, hubferry::kube::Env env);
