#pragma once

#include <filesystem>
#include <memory>

#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

struct SentList;

/// Keeps the hub credential in a directory, and reads the bootstrap kubeconfigs from files.
///
/// The directory (0700) contains the files kubeconfig, tls.crt, tls.key, cluster-name and agent-name (0600), laid out
/// as in a mounted Secret: each is a symbolic link into one directory per version, and a new version is published by
/// renaming one link. Readers see either all old or all new files. It must be the agent's own: one that contains
/// anything else, or that all users share, as /tmp, is refused and not touched.
///
/// A bootstrap file that cannot be read or parsed stays in the list, and selection rejects it with that reason; once it
/// was readable, its last content stays in effect instead. A list that a hub sends is kept in the directory too.
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
  [[nodiscard]] bool takes_bootstraps() const override { return true; }
  Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout) override;
  [[nodiscard]] std::optional<Duration> connection_timeout() const override;
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;

  /// Synchronous variants of load() and save(). Throw std::system_error.
  [[nodiscard]] std::optional<HubSecret> read() const;
  void write(const HubSecret& secret);

 private:
  [[nodiscard]] std::vector<BootstrapConfig> read_bootstraps() const;
  void read_sent_list();
  void look_for_changes();
  /// True if all files are as they were when they were last read, and parsed. Parsing is most of what an idle agent
  /// would do otherwise.
  [[nodiscard]] bool is_unchanged() const;
  static std::optional<std::filesystem::path> authority_file(const BootstrapConfig& config);
  /// As /tmp is.
  [[nodiscard]] bool is_shared() const;
  /// Throws if the directory contains anything that is not ours.
  void check_content() const;
  /// What the link to the version in effect says; empty: there is none. Throws if that cannot be read: then nothing is
  /// known about the versions that are there.
  [[nodiscard]] std::filesystem::path current_version() const;
  void publish(const std::filesystem::path& version, const HubSecret& secret);
  void lock();
  void remove_other_versions(const std::filesystem::path& kept) const;

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> bootstrap_files_;
  std::vector<BootstrapConfig> configured_;                        // by the files
  std::vector<std::optional<std::filesystem::path>> authorities_;  // their CA files, empty for none; absent: unparsable
  std::unique_ptr<SentList> sent_;                                 // by a hub; null: none
  std::vector<BootstrapConfig> bootstraps_;                        // in effect
  kube::Env env_;
  std::map<std::string, std::string> unreadable_;  // by file: why, as last reported
  int lock_ = -1;                                  // the directory's, held for our lifetime
};

}  // namespace hubferry::klusterlet
