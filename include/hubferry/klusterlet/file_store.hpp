#pragma once

#include <filesystem>

#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

/// Keeps the hub credential in a directory, and reads the bootstrap kubeconfigs from files.
///
/// The directory (0700) contains the files kubeconfig, tls.crt, tls.key, cluster-name and agent-name (0600), laid out
/// as in a mounted Secret: each is a symbolic link into one directory per version, and a new version is published by
/// renaming one link. Readers see either all old or all new files. A bootstrap file that cannot be read stays in the
/// list, and selection rejects it with that reason.
class FileStore final : public LocalStore {
 public:
  /// Reads the bootstrap files; writes nothing.
  FileStore(std::filesystem::path directory, std::vector<std::filesystem::path> bootstrap_files, kube::Env env);
  ~FileStore() override;

  /// Creates the directory if it is missing, locks it against other agents, and removes what a crash left behind.
  /// Throws std::runtime_error that says why it cannot be used.
  void prepare();
  /// Polls for changed bootstrap files until cancelled: a mounted Secret changes without notification.
  Awaitable<> run();

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return bootstraps_; }
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;

  /// Synchronous variants of load() and save(). Throw std::system_error.
  [[nodiscard]] std::optional<HubSecret> read() const;
  void write(const HubSecret& secret);

 private:
  [[nodiscard]] std::vector<BootstrapConfig> read_bootstraps() const;
  void lock();
  void remove_other_versions(const std::filesystem::path& kept) const;

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> bootstrap_files_;
  std::vector<BootstrapConfig> bootstraps_;
  kube::Env env_;
  int lock_ = -1;  // the directory's, held for our lifetime
};

}  // namespace hubferry::klusterlet
