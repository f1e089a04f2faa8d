#include "hubferry/klusterlet/file_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <system_error>

#include "hubferry/kube/read_file.hpp"

namespace hubferry::klusterlet {

namespace fs = std::filesystem;

namespace {

constexpr auto poll_period = std::chrono::seconds{5};

// As in the volumes that kubelet mounts.
constexpr const char* current_link = "..data";
constexpr const char* next_link = "..data_tmp";
constexpr const char* version_prefix = "..version-";
constexpr const char* lock_file = "..lock";

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
      bootstraps_(read_bootstraps()),
      env_(std::move(env)) {}

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

void FileStore::prepare() {
  std::error_code failure;
  if (fs::create_directories(directory_, failure)) fs::permissions(directory_, fs::perms::owner_all, failure);
  if (failure) throw std::runtime_error(directory_.string() + ": cannot be created: " + failure.message());
  if (!fs::is_directory(directory_)) throw std::runtime_error(directory_.string() + ": is not a directory");
  if (::access(directory_.c_str(), R_OK | W_OK | X_OK) != 0)
    throw std::runtime_error(directory_.string() + ": is not readable and writable for this user");
  fs::permissions(directory_, fs::perms::owner_all, failure);
  if (failure)
    throw std::runtime_error(directory_.string() + ": cannot restrict its permissions: " + failure.message());
  if (lock_ >= 0) return;
  lock();
  std::error_code none;
  const auto current = fs::read_symlink(directory_ / current_link, none);
  fs::remove(directory_ / next_link, none);
  remove_other_versions(current);
}

std::vector<BootstrapConfig> FileStore::read_bootstraps() const {
  std::vector<BootstrapConfig> list;
  for (const auto& file : bootstrap_files_) {
    BootstrapConfig config{.name = file.string(), .kubeconfig = {}, .base = fs::absolute(file).parent_path()};
    try {
      config.kubeconfig = obs::Secret{kube::read_file(file)};
    } catch (const std::system_error& error) {
      config.unreadable = "cannot be read: " + error.code().message();
    }
    list.push_back(std::move(config));
  }
  return list;
}

Awaitable<> FileStore::run() {
  while (true) {
    co_await env_.clock.sleep_for(poll_period);
    auto list = read_bootstraps();
    // Unreadable now, perhaps because it is being replaced: keep the last content until there is a new one.
    for (std::size_t at = 0; at < list.size(); ++at)
      if (!list[at].unreadable.empty() && bootstraps_[at].unreadable.empty()) list[at] = bootstraps_[at];
    if (list == bootstraps_) continue;
    bootstraps_ = std::move(list);
    changed();
  }
}

std::optional<HubSecret> FileStore::read() const {
  // All files of one version, also while the next one is being published. Without the link: the plain files.
  std::error_code none;
  const auto version = fs::read_symlink(directory_ / current_link, none);
  const auto from = none ? directory_ : directory_ / version;
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
  fs::create_directory(directory_ / name);
  fs::permissions(directory_ / name, fs::perms::owner_all);
  const std::array<const std::string*, keys.size()> content{
      &secret.kubeconfig, &secret.certificate, &secret.key.reveal(), &secret.cluster_name, &secret.agent_name};
  for (std::size_t at = 0; at < keys.size(); ++at) write_file(directory_ / name / keys[at], *content[at]);
  sync_directory(directory_ / name);
  // From here on the new version is in effect, all of it.
  put_link(name, directory_ / current_link, directory_ / next_link);
  for (const auto* key : keys) {
    const auto target = fs::path{current_link} / key;
    std::error_code no_link;
    if (fs::read_symlink(directory_ / key, no_link) != target)
      put_link(target, directory_ / key, directory_ / next_link);
  }
  sync_directory(directory_);
  remove_other_versions(name);
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
