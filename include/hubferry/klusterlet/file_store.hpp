#pragma once

#include <filesystem>

#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

/// Keeps the hub's credential in a folder, and takes the bootstrap kubeconfigs from files.
///
/// The folder (0700) shows the files kubeconfig, tls.crt, tls.key, cluster-name and agent-name (0600), as a mounted
/// Secret would: each is a link into one folder of that version, and a new version is put in place by renaming one
/// link. Whoever reads them sees all of the old or all of the new ones. A bootstrap file that cannot be read stays in
/// the list, and selection passes it over with that reason.
class FileStore final : public LocalStore {
 public:
  /// Reads the bootstrap files; touches nothing.
  FileStore(std::filesystem::path folder, std::vector<std::filesystem::path> bootstrap_files, kube::Env env);
  ~FileStore() override;

  /// Makes the folder where it is missing, keeps other agents out of it, and clears away what a crash has left. Throws
  /// std::runtime_error with a sentence why it cannot be used.
  void prepare();
  /// Looks for changed bootstrap files until cancelled: mounted Secrets change without a word.
  Awaitable<> run();

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return bootstraps_; }
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;

  /// The same, for those who cannot wait. Throws std::system_error.
  [[nodiscard]] std::optional<HubSecret> read() const;
  void write(const HubSecret& secret);

 private:
  [[nodiscard]] std::vector<BootstrapConfig> read_bootstraps() const;
  void lock();
  void remove_other_versions(const std::filesystem::path& kept) const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> bootstrap_files_;
  std::vector<BootstrapConfig> bootstraps_;
  kube::Env env_;
  int lock_ = -1;  // the folder's, held while we live
};

}  // namespace hubferry::klusterlet
