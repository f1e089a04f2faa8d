#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "hubferry/async/clock.hpp"
#include "kube/config/credential_source.hpp"

namespace hubferry::kube {

/// A bearer token in a file that another process, such as the kubelet, keeps up to date.
class TokenFileSource final : public CredentialSource {
 public:
  /// `fallback` is the token to use until the file can be read; it may be empty.
  TokenFileSource(std::filesystem::path file, const std::string& fallback, async::Clock& clock);

  async::Awaitable<Result<std::string>> authorization_header() override;
  [[nodiscard]] std::string_view last_header() const override { return header_; }
  void invalidate() override;

 private:
  /// Identifies a state of the file without reading it.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t modified_seconds = 0;
    std::int64_t modified_nanoseconds = 0;

    bool operator==(const Stamp&) const = default;
  };

  void refresh();
  /// Throws std::system_error, or ConfigError for content that is no token.
  void read();
  [[nodiscard]] Stamp stamp() const;

  std::filesystem::path file_;
  async::Clock& clock_;
  std::string header_;               // of the last good token; empty: there was none yet
  std::string failure_;              // why the last look did not give a token
  std::optional<Stamp> read_stamp_;  // of the state that header_ was read from
  async::TimePoint next_look_ = async::TimePoint::min();
  async::TimePoint next_read_ = async::TimePoint::min();  // read by then even if the stamp is the same
};

}  // namespace hubferry::kube
