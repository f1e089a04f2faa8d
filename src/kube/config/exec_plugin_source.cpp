#include "kube/config/exec_plugin_source.hpp"

#include <system_error>

#include "kube/config/process.hpp"

namespace hubferry::kube {

namespace {

using namespace std::chrono_literals;

/// Long enough for a single sign-on, short enough for a controller to notice.
constexpr auto run_limit = 60s;
/// The credential must not expire while a request is in flight; clocks differ a little, too.
constexpr auto expiry_margin = 10s;
/// Between two runs, whatever the plugin or the server say.
constexpr auto shortest_interval = 1s;

std::string one_line(std::string text) {
  constexpr std::size_t most = 500;
  text.resize(std::min(text.size(), most));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

std::string describe_end(const ProcessResult& result, const ExecPlugin& plugin) {
  std::string text = result.signal != 0 ? "was ended by signal " + std::to_string(result.signal)
                                        : "ended with exit code " + std::to_string(result.exit_code);
  if (const auto line = last_error_line(result.errors, plugin.environment); !line.empty()) text += ": " + line;
  return text;
}

}  // namespace

ExecPluginSource::ExecPluginSource(ClientConfig config, async::Clock& clock)
    : config_(std::move(config)), clock_(clock) {}

async::Awaitable<Result<std::string>> ExecPluginSource::authorization_header() {
  while (running_) co_await finished_.wait();
  if (must_run()) co_await run();
  const bool serves_on = has_credential_ && !invalidated_ && !expires_within(0s);
  if (failure_ && !serves_on) co_return *failure_;
  co_return header_;
}

void ExecPluginSource::invalidate() {
  // A run in flight brings a new credential anyway.
  if (!running_) invalidated_ = has_credential_;
}

bool ExecPluginSource::must_run() const {
  const auto now = clock_.now();
  if (!ran_at_) return true;
  if (invalidated_ && !failure_ && (!forced_at_ || now >= async::later(*forced_at_, shortest_interval))) return true;
  if (now < async::later(*ran_at_, shortest_interval)) return false;
  return failure_ || invalidated_ || expires_within(expiry_margin);
}

bool ExecPluginSource::expires_within(async::Duration span) const {
  return credential_.expires && *credential_.expires - span <= clock_.wall_now();
}

async::Awaitable<> ExecPluginSource::run() {
  struct Running {
    ExecPluginSource& source;
    explicit Running(ExecPluginSource& s) : source(s) { source.running_ = true; }
    ~Running() {
      source.running_ = false;
      source.finished_.wake_all();
    }
  } running{*this};
  if (invalidated_) forced_at_ = clock_.now();
  try {
    credential_ = co_await ask();
    header_ = credential_.token.empty() ? std::string{} : "Bearer " + credential_.token;
    has_credential_ = true;
    invalidated_ = false;
    failure_.reset();
  } catch (const ConfigError& e) {
    failure_ = failure(e.what());
  }
  ran_at_ = clock_.now();
}

async::Awaitable<ExecCredential> ExecPluginSource::ask() {
  const auto& plugin = *config_.exec;
  ProcessRequest request;
  request.command = plugin.command;
  request.arguments = plugin.arguments;
  request.environment = plugin.environment;
  request.environment["KUBERNETES_EXEC_INFO"] = exec_info(config_);
  const auto deadline = async::later(clock_.now(), run_limit);
  ProcessResult result;
  try {
    result = co_await run_process(std::move(request), clock_, deadline);
  } catch (const OutputTooLong& e) {
    throw ConfigError(std::string{"was killed: "} + e.what());
  } catch (const boost::system::system_error&) {
    if (!async::is_timeout(std::current_exception())) throw;
    throw ConfigError("did not answer within " + async::format_duration(run_limit) + " and was killed");
  } catch (const std::system_error& e) {
    throw ConfigError("cannot be started: " + e.code().message());
  }
  if (result.signal != 0 || result.exit_code != 0) throw ConfigError(describe_end(result, plugin));
  try {
    co_return parse_exec_credential(result.output, plugin.api_version);
  } catch (const ConfigError& e) {
    throw ConfigError(std::string{"gave an invalid answer: "} + e.what());
  }
}

Error ExecPluginSource::failure(const std::string& message) const {
  auto text = config_.source + ": exec plugin " + config_.exec->command + " " + message;
  if (!config_.exec->install_hint.empty()) text += " (" + one_line(config_.exec->install_hint) + ")";
  return no_credential(std::move(text));
}

}  // namespace hubferry::kube
