#include "hubferry/klusterlet/file_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <system_error>

#include "hubferry/kube/read_file.hpp"
#include "klusterlet/sent_list.hpp"

namespace hubferry::klusterlet {

namespace fs = std::filesystem;

namespace {

constexpr auto poll_period = std::chrono::seconds{5};

// As in the volumes that kubelet mounts.
constexpr const char* current_link = "..data";
constexpr const char* next_link = "..data_tmp";
constexpr const char* version_prefix = "..version-";
constexpr const char* lock_file = "..lock";
constexpr const char* sent_file = "..sent-hubs";
constexpr const char* next_sent_file = "..sent-hubs_tmp";
constexpr const char* own_prefix = "..";

constexpr std::array<const char*, 5> keys{"kubeconfig", "tls.crt", "tls.key", "cluster-name", "agent-name"};

[[noreturn]] void fail(const fs::path& path, const char* what) {
  const std::error_code code{errno, std::generic_category()};
  throw std::system_error(code, path.string() + ": " + what);
}

/// Synced to disk when it returns.
void write_file(const fs::path& file, const std::string& content) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) fail(file, "cannot be created");
  std::size_t written = 0;
  while (written < content.size()) {
    const auto count = ::write(fd, content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      ::close(fd);
      fail(file, "cannot be written");
    }
    written += static_cast<std::size_t>(count);
  }
  if (::fsync(fd) != 0 || ::close(fd) != 0) fail(file, "cannot be written");
}

void sync_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

/// Replaces `link` atomically, whatever it is now.
void put_link(const fs::path& target, const fs::path& link, const fs::path& scratch) {
  fs::remove(scratch);
  fs::create_symlink(target, scratch);
  fs::rename(scratch, link);
}

std::string read_if_there(const fs::path& file) {
  try {
    return kube::read_file(file);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory) return {};
    throw;
  }
}

kube::Error to_error(const std::exception& failure) {
  kube::Error error;
  error.kind = kube::ErrorKind::retry_later;
  error.message = failure.what();
  return error;
}

}  // namespace

FileStore::FileStore(fs::path directory, std::vector<fs::path> bootstrap_files, kube::Env env)
    : directory_(std::move(directory)),
      bootstrap_files_(std::move(bootstrap_files)),
      configured_(read_bootstraps()),
      env_(std::move(env)) {
  for (const auto& config : configured_) authorities_.push_back(authority_file(config));
  read_sent_list();
}

FileStore::~FileStore() {
  if (lock_ >= 0) ::close(lock_);
}

void FileStore::lock() {
  const auto file = directory_ / lock_file;
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) fail(file, "cannot be created");
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int why = errno;
  if (why == EWOULDBLOCK) {
    ::close(std::exchange(lock_, -1));
    throw std::runtime_error(
        directory_.string() +
        ": is in use by another agent. Two agents with one identity would interfere with each other: "
        "give each its own directory");
  }
  // Some network filesystems do not support locks: the agent runs without one.
  env_.log.warn("cannot lock the directory against a second agent",
                {{"directory", directory_.string()}, {"error", std::generic_category().message(why)}});
}

void FileStore::remove_other_versions(const fs::path& kept) const {
  // Leftovers that cannot be removed do no harm.
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator{directory_})
    if (entry.path().filename().string().starts_with(version_prefix) && entry.path().filename() != kept)
      fs::remove_all(entry.path(), ignored);
}

fs::path FileStore::current_version() const {
  const auto link = directory_ / current_link;
  std::error_code failure;
  auto version = fs::read_symlink(link, failure);
  if (!failure || failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory)
    return version;
  throw std::system_error(failure, link.string() + ": cannot be read");
}

bool FileStore::is_shared() const {
  if ((fs::status(directory_).permissions() & fs::perms::sticky_bit) == fs::perms::none) return false;
  std::error_code none;
  for (const auto* known : {"/tmp", "/var/tmp", "/dev/shm"})
    if (fs::equivalent(directory_, known, none)) return true;
  // A new tmpfs looks the same, and may have been mounted for this agent.
  struct stat own{};
  struct stat parent{};
  return ::stat(directory_.c_str(), &own) != 0 || ::stat((directory_ / "..").c_str(), &parent) != 0 ||
         own.st_dev == parent.st_dev;
}

void FileStore::check_content() const {
  if (is_shared())
    throw std::runtime_error(directory_.string() + ": is shared by all users: give it a directory of its own");
  for (const auto& entry : fs::directory_iterator{directory_}) {
    const auto name = entry.path().filename().string();
    // What a filesystem's root always has.
    if (name.starts_with(own_prefix) || name == "lost+found") continue;
    std::error_code none;
    const auto is_key = std::ranges::find(keys, name) != keys.end();
    if (is_key && fs::read_symlink(entry.path(), none) == fs::path{current_link} / name) continue;
    throw std::runtime_error(directory_.string() + ": contains " + name +
                             ", which is not the agent's: give it a directory of its own");
  }
}

void FileStore::prepare() {
  std::error_code failure;
  fs::create_directories(directory_, failure);
  if (failure) throw std::runtime_error(directory_.string() + ": cannot be created: " + failure.message());
  if (!fs::is_directory(directory_)) throw std::runtime_error(directory_.string() + ": is not a directory");
  if (::access(directory_.c_str(), R_OK | W_OK | X_OK) != 0)
    throw std::runtime_error(directory_.string() + ": is not readable and writable for this user");
  check_content();
  fs::permissions(directory_, fs::perms::owner_all, failure);
  if (failure)
    throw std::runtime_error(directory_.string() + ": cannot restrict its permissions: " + failure.message());
  if (lock_ >= 0) return;
  lock();
  const auto current = current_version();
  std::error_code none;
  fs::remove(directory_ / next_link, none);
  remove_other_versions(current);
}

std::vector<BootstrapConfig> FileStore::read_bootstraps() const {
  std::vector<BootstrapConfig> list;
  for (const auto& file : bootstrap_files_) {
    BootstrapConfig config{.name = file.string(), .kubeconfig = {}, .base = fs::absolute(file).parent_path()};
    try {
      config.kubeconfig = obs::Secret{kube::read_file(file)};
      const auto parsed = config.parse();
      if (!parsed.ca_file.empty()) config.authority = parsed.ca_pem;
    } catch (const std::system_error& error) {
      config.unreadable = "cannot be read: " + error.code().message();
    } catch (const kube::ConfigError&) {
      // Selection says why.
    }
    list.push_back(std::move(config));
  }
  return list;
}

void FileStore::read_sent_list() {
  try {
    const auto text = read_if_there(directory_ / sent_file);
    auto list = text.empty() ? std::nullopt : parse_sent_list(text);
    if (!text.empty() && !list) env_.log.warn("the list of hubs that a hub sent cannot be parsed and is ignored");
    if (list) sent_ = std::make_unique<SentList>(std::move(*list));
  } catch (const std::system_error& error) {
    env_.log.warn("the list of hubs that a hub sent cannot be read", {{"error", error.what()}});
  }
  bootstraps_ = list_in_effect(sent_ ? std::optional{*sent_} : std::nullopt, configured_);
}

bool FileStore::is_unchanged() const {
  try {
    for (std::size_t at = 0; at < configured_.size(); ++at) {
      const auto& authority = authorities_[at];
      if (!authority || kube::read_file(bootstrap_files_[at]) != configured_[at].kubeconfig.reveal()) return false;
      if (!authority->empty() && kube::read_file(*authority) != configured_[at].authority) return false;
    }
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

std::optional<fs::path> FileStore::authority_file(const BootstrapConfig& config) {
  try {
    return config.parse().ca_file;
  } catch (const kube::ConfigError&) {
    return std::nullopt;
  }
}

void FileStore::look_for_changes() {
  if (is_unchanged()) {
    unreadable_.clear();
    return;
  }
  auto list = read_bootstraps();
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto why = why_unparsable(list[at]);
    const auto& known = configured_[at];
    auto& reported = unreadable_[known.name];
    // What it was when it was read counts: a kubeconfig refers to files, which may be missing now.
    if (!why || !authorities_[at]) {
      reported.clear();
      authorities_[at] = authority_file(list[at]);
      continue;
    }
    // Perhaps it is being replaced: the last content stays in effect until there is a new one.
    if (reported != *why)
      env_.log.warn("bootstrap kubeconfig cannot be read, keeping its last content", {{"error", *why}});
    reported = *why;
    list[at] = known;
  }
  configured_ = std::move(list);
  auto effective = list_in_effect(sent_ ? std::optional{*sent_} : std::nullopt, configured_);
  if (effective == bootstraps_) return;
  bootstraps_ = std::move(effective);
  changed();
}

Awaitable<> FileStore::run() {
  while (true) {
    co_await env_.clock.sleep_for(poll_period);
    look_for_changes();
  }
}

std::optional<Duration> FileStore::connection_timeout() const {
  return sent_ ? sent_->timeout : std::nullopt;
}

Awaitable<kube::Result<>> FileStore::put_bootstraps(std::vector<BootstrapConfig> list,
                                                    std::optional<Duration> timeout) {
  if (!timeout) timeout = connection_timeout();
  auto sent = make_sent_list(std::move(list), timeout, configured_);
  try {
    prepare();
    fs::remove(directory_ / next_sent_file);
    write_file(directory_ / next_sent_file, to_text(sent).reveal());
    fs::rename(directory_ / next_sent_file, directory_ / sent_file);
    sync_directory(directory_);
  } catch (const std::exception& error) {
    co_return to_error(error);
  }
  sent_ = std::make_unique<SentList>(std::move(sent));
  bootstraps_ = list_in_effect(*sent_, configured_);
  changed();
  co_return kube::Result<>{};
}

std::optional<HubSecret> FileStore::read() const {
  // All files of one version, also while the next one is being published.
  const auto version = current_version();
  if (version.empty()) return std::nullopt;
  const auto from = directory_ / version;
  std::array<std::string, keys.size()> content;
  for (std::size_t at = 0; at < keys.size(); ++at) content[at] = read_if_there(from / keys[at]);
  // Without a kubeconfig there may still be names to keep.
  if (content[0].empty() && content[3].empty() && content[4].empty()) return std::nullopt;
  return HubSecret{.kubeconfig = std::move(content[0]),
                   .certificate = std::move(content[1]),
                   .key = obs::Secret{std::move(content[2])},
                   .cluster_name = std::move(content[3]),
                   .agent_name = std::move(content[4])};
}

void FileStore::write(const HubSecret& secret) {
  prepare();
  const fs::path name = version_prefix + env_.random.suffix(10);
  try {
    publish(name, secret);
  } catch (const std::exception&) {
    // The disk is full: it must not get fuller with each attempt.
    std::error_code none;
    if (fs::read_symlink(directory_ / current_link, none) != name) fs::remove_all(directory_ / name, none);
    throw;
  }
  remove_other_versions(name);
}

void FileStore::publish(const fs::path& version, const HubSecret& secret) {
  fs::create_directory(directory_ / version);
  fs::permissions(directory_ / version, fs::perms::owner_all);
  const std::array<const std::string*, keys.size()> content{
      &secret.kubeconfig, &secret.certificate, &secret.key.reveal(), &secret.cluster_name, &secret.agent_name};
  for (std::size_t at = 0; at < keys.size(); ++at) write_file(directory_ / version / keys[at], *content[at]);
  sync_directory(directory_ / version);
  // From here on the new version is in effect, all of it.
  put_link(version, directory_ / current_link, directory_ / next_link);
  for (const auto* key : keys) {
    const auto target = fs::path{current_link} / key;
    std::error_code no_link;
    if (fs::read_symlink(directory_ / key, no_link) != target)
      put_link(target, directory_ / key, directory_ / next_link);
  }
  sync_directory(directory_);
}

Awaitable<kube::Result<std::optional<HubSecret>>> FileStore::load() {
  try {
    co_return read();
  } catch (const std::exception& error) {
    co_return to_error(error);
  }
}

Awaitable<kube::Result<>> FileStore::save(HubSecret secret) {
  try {
    write(secret);
    co_return kube::Result<>{};
  } catch (const std::exception& error) {
    co_return to_error(error);
  }
}

}  // namespace hubferry::klusterlet
