#include "kube/config/exec_plugin_source.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <system_error>

#include "hubferry/async/wait_list.hpp"
#include "kube/config/exec_credential.hpp"
#include "kube/config/process.hpp"

namespace hubferry::kube {

namespace {

using namespace std::chrono_literals;

/// Long enough for a single sign-on, short enough for a controller to notice.
constexpr auto run_limit = 60s;
/// A person looks for a password, or for a second factor. At a terminal the user can end it.
constexpr auto run_limit_at_terminal = 10min;
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

/// The runs of the plugin and what they brought. A run in flight shares it with the source.
class ExecPluginSource::Runs {
 public:
  Runs(ClientConfig config, async::Clock& clock) : config_(std::move(config)), clock_(clock) {}

  static async::Awaitable<Result<std::string>> header(std::shared_ptr<Runs> runs) {
    if (!runs->running_ && runs->must_run()) start(runs, co_await async::asio::this_coro::executor);
    while (runs->running_) co_await runs->finished_.wait();
    const bool serves_on = runs->has_credential_ && !runs->invalidated_ && !runs->expires_within(0s);
    if (runs->failure_ && !serves_on) co_return *runs->failure_;
    co_return runs->header_;
  }

  [[nodiscard]] std::string_view last_header() const { return header_; }
  [[nodiscard]] std::optional<ClientCertificate> client_certificate() const { return credential_.certificate; }

  void invalidate() {
    // A run in flight brings a new credential anyway.
    if (!running_) invalidated_ = has_credential_;
  }
  /// Ends a run in flight: its process is killed and reaped.
  void abandon() {
    if (running_) stop_.emit(async::asio::cancellation_type::terminal);
  }

 private:
  static void start(const std::shared_ptr<Runs>& runs, const async::Executor& executor) {
    runs->running_ = true;
    auto on_end = [runs](const std::exception_ptr& error) {
      if (error && !async::is_cancellation(error)) runs->failure_ = runs->failure(async::describe(error));
      runs->running_ = false;
      runs->finished_.wake_all();
    };
    async::asio::co_spawn(executor, run(runs),
                          async::asio::bind_cancellation_slot(runs->stop_.slot(), std::move(on_end)));
  }

  /// Runs the plugin and keeps what it says, or why it said nothing.
  static async::Awaitable<> run(std::shared_ptr<Runs> runs) {
    if (runs->invalidated_) runs->forced_at_ = runs->clock_.now();
    try {
      runs->credential_ = co_await runs->ask();
      const auto& token = runs->credential_.token;
      runs->header_ = token.empty() ? std::string{} : "Bearer " + token;
      runs->has_credential_ = true;
      runs->invalidated_ = false;
      runs->failure_.reset();
    } catch (const ConfigError& e) {
      runs->failure_ = runs->failure(e.what());
    }
    runs->ran_at_ = runs->clock_.now();
  }

  [[nodiscard]] bool must_run() const {
    const auto now = clock_.now();
    if (!ran_at_) return true;
    if (invalidated_ && !failure_ && (!forced_at_ || now >= async::later(*forced_at_, shortest_interval))) return true;
    if (now < async::later(*ran_at_, shortest_interval)) return false;
    return failure_ || invalidated_ || expires_within(expiry_margin);
  }

  [[nodiscard]] bool expires_within(async::Duration span) const {
    return credential_.expires && *credential_.expires - span <= clock_.wall_now();
  }

  async::Awaitable<ExecCredential> ask() {
    const auto& plugin = *config_.exec;
    if (plugin.interaction == ExecPlugin::Interaction::always && !plugin.is_interactive())
      throw ConfigError("asks a person (interactiveMode: Always), but there is no terminal");
    ProcessRequest request;
    request.command = plugin.command;
    request.arguments = plugin.arguments;
    request.environment = plugin.environment;
    request.environment["KUBERNETES_EXEC_INFO"] = exec_info(config_);
    request.on_terminal = plugin.is_interactive();
    request.shows_errors = plugin.person != ExecPlugin::Person::none;
    const bool at_terminal = plugin.person == ExecPlugin::Person::has_terminal;
    const async::Duration limit = at_terminal ? async::Duration{run_limit_at_terminal} : run_limit;
    const auto deadline = async::later(clock_.now(), limit);
    ProcessResult result;
    try {
      result = co_await run_process(std::move(request), clock_, deadline);
    } catch (const OutputTooLong& e) {
      throw ConfigError(std::string{"was killed: "} + e.what());
    } catch (const boost::system::system_error&) {
      if (!async::is_timeout(std::current_exception())) throw;
      throw ConfigError("did not answer within " + async::format_duration(limit) + " and was killed");
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

  [[nodiscard]] Error failure(const std::string& message) const {
    auto text = config_.source + ": exec plugin " + config_.exec->command + " " + message;
    if (!config_.exec->install_hint.empty()) text += " (" + one_line(config_.exec->install_hint) + ")";
    return no_credential(std::move(text));
  }

  ClientConfig config_;
  async::Clock& clock_;

  bool running_ = false;
  async::asio::cancellation_signal stop_;      // of the run in flight
  async::WaitList finished_;                   // waiters for a run in flight
  std::optional<async::TimePoint> ran_at_;     // when the last run ended
  std::optional<async::TimePoint> forced_at_;  // when the last run began that invalidate() had asked for
  bool has_credential_ = false;
  bool invalidated_ = false;  // the server refused credential_
  ExecCredential credential_;
  std::string header_;
  std::optional<Error> failure_;  // of the last run
};

ExecPluginSource::ExecPluginSource(ClientConfig config, async::Clock& clock)
    : runs_(std::make_shared<Runs>(std::move(config), clock)) {}

ExecPluginSource::~ExecPluginSource() {
  runs_->abandon();
}

async::Awaitable<Result<std::string>> ExecPluginSource::authorization_header() {
  return Runs::header(runs_);
}

std::string_view ExecPluginSource::last_header() const {
  return runs_->last_header();
}

std::optional<ClientCertificate> ExecPluginSource::client_certificate() const {
  return runs_->client_certificate();
}

void ExecPluginSource::invalidate() {
  runs_->invalidate();
}

}  // namespace hubferry::kube
