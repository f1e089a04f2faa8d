#include "kube/config/token_file_source.hpp"

#include <cerrno>
#include <system_error>

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/read_file.hpp"
#include "kube/config/credential_source.hpp"

namespace hubferry::kube {

namespace {

using namespace std::chrono_literals;

constexpr auto look_interval = 1s;
// A file system with coarse times can hide a change of equal size; client-go, too, reads once a minute.
constexpr auto read_interval = 1min;
constexpr std::size_t most_token_bytes = std::size_t{64} << 10;

}  // namespace

TokenFileSource::TokenFileSource(std::filesystem::path file, const std::string& fallback, async::Clock& clock)
    : file_(std::move(file)), clock_(clock), header_(fallback.empty() ? "" : "Bearer " + fallback) {}

async::Awaitable<Result<std::string>> TokenFileSource::authorization_header() {
  if (clock_.now() >= next_look_) refresh();
  if (header_.empty()) co_return no_credential("token file " + file_.string() + ": " + failure_);
  co_return header_;
}

void TokenFileSource::invalidate() {
  read_stamp_.reset();
  next_look_ = async::TimePoint::min();
}

void TokenFileSource::refresh() {
  const auto now = clock_.now();
  next_look_ = async::later(now, look_interval);
  try {
    const auto current = stamp();
    if (read_stamp_ == current && now < next_read_) return;
    read();
    // Taken before reading: a write in between shows as a new stamp at the next look.
    read_stamp_ = current;
    next_read_ = async::later(now, read_interval);
  } catch (const std::system_error& e) {
    failure_ = "cannot be read: " + e.code().message();
    read_stamp_.reset();
  } catch (const ConfigError& e) {
    failure_ = e.what();
    read_stamp_.reset();
  }
}

void TokenFileSource::read() {
  const auto token = trimmed(read_file(file_, most_token_bytes));
  // A writer that rewrites the file in place truncates it first.
  if (token.empty()) throw ConfigError("is empty");
  if (!fits_into_a_header(token)) throw ConfigError("holds characters that no token has");
  header_ = "Bearer " + token;
}

TokenFileSource::Stamp TokenFileSource::stamp() const {
  struct stat status{};
  if (::stat(file_.c_str(), &status) != 0) throw std::system_error(errno, std::generic_category());
  return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

}  // namespace hubferry::kube
