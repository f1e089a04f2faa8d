#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "app/cli/files.hpp"
#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/commands/commands.hpp"
#include "app/demo/demo_progress.hpp"
#include "app/demo/demo_world.hpp"
#include "app/demo/mysql/mysql_demo.hpp"
#include "app/demo/relocate_demo.hpp"
#include "app/service/service.hpp"
#include "app/status/migration_json.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/obs/log.hpp"
#include "hubferry/ui/console.hpp"

namespace hubferry::app {

using namespace std::chrono_literals;

namespace {

// A burst of events is drawn once.
constexpr auto min_redraw_interval = 100ms;
constexpr int failed = 1;
constexpr int interrupted = 130;
constexpr int relocate_demo_clusters = 20;
constexpr const char* log_name = "manager.log";

/// The manager's log file; closed with the object.
class LogFile {
 public:
  explicit LogFile(const std::filesystem::path& file)
      : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile() { ::close(fd_); }

  [[nodiscard]] obs::LogSink::Options sink_options() const {
    obs::LogSink::Options options;
    options.format = obs::LogFormat::text;
    options.fd = fd_;
    return options;
  }

 private:
  int fd_;
};

ui::ConsoleOptions demo_console_options(const DemoOptions& options, const kube::Env& env) {
  ui::ConsoleOptions console;
  console.address = options.ui.address;
  console.log = env.log.named("ui");
  console.describe = migration_json;
  console.version = obs::build_info().version;
  return console;
}

/// The demo from beginning to end, with its output.
class Demo {
 public:
  Demo(const DemoOptions& options, const TemporaryDirectory& directory, Observability& observability, kube::Env env,
       Terminal terminal, std::ostream& out)
      : options_(options),
        directory_(directory),
        observability_(observability),
        env_(env),
        terminal_(terminal),
        out_(out),
        area_(out, terminal),
        console_(observability.loop(), env.clock, env.metrics, demo_console_options(options, env)),
        world_(options, loops_, env),
        progress_(env.clock.now()),
        migrations_(world_.global(), migration::managed_cluster_migrations, {}, kube::object_decoder(), env) {
    console_.listen();
  }

  /// Returns the exit code.
  async::Awaitable<int> run(async::Event& stop) {
    auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
      scope.spawn(observability_.serve());
      if (console_.enabled()) scope.spawn(console_.run());
      scope.spawn(run_demo_steps(scope));
      scope.spawn(watch_for_closed_output(env_.clock, STDOUT_FILENO));
      co_await stop.wait();
      scope.stop();
    };
    co_await async::with_scope(body);
    co_return code_;
  }

 private:
  async::Awaitable<> run_demo_steps(async::TaskScope& scope) {
    say({"Starting a simulated global hub, two hubs and " +
         plural(static_cast<std::size_t>(options_.clusters), "cluster") + " on local sockets …"});
    co_await world_.build();
    scope.spawn(world_.world_run());
    write_kubeconfigs();
    co_await world_.wait_ready();
    say(introduction());
    scope.spawn(world_.manager_run(console_));
    scope.spawn(migrations_.run());
    progress_ = DemoProgress{env_.clock.now()};
    co_await world_.create_migrations();
    co_await follow();
    co_await conclude();
    say({""});
    say(where_to_look());
    if (options_.keep) co_await env_.clock.sleep_until(async::never);
    scope.stop();
  }

  /// Until all migrations have ended.
  async::Awaitable<> follow() {
    const auto subscription = migrations_.subscribe(
        [this](const kube::Key&, const auto&, const auto& now) {
          if (now == nullptr) return;
          const auto changes = progress_.observe(view_of(*now), env_.clock.now());
          if (!terminal_.interactive)
            for (const auto& line : changes) out_ << line << "\n";
          changed_.notify();
        },
        kube::Replay::existing);
    auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
      auto tick = [](async::Clock& clock, async::Notify& changed) -> async::Awaitable<> {
        for (;;) {
          co_await clock.sleep_for(250ms);
          changed.notify();
        }
      };
      if (terminal_.interactive) scope.spawn(tick(env_.clock, changed_));
      while (progress_.migrations() < static_cast<std::size_t>(options_.migrations) || !progress_.all_ended()) {
        co_await changed_.wait();
        flush(out_);
        draw();
        co_await env_.clock.sleep_for(min_redraw_interval);
      }
      draw();
      scope.stop();
    };
    co_await async::with_scope(body);
    area_.keep();
  }

  void draw() {
    if (!terminal_.interactive) return;
    terminal_ = Terminal::of(STDOUT_FILENO);  // the window may have been resized
    area_.resize(terminal_);
    constexpr std::size_t totals = 1;
    area_.draw(progress_.lines(env_.clock.now(), terminal_), totals);
  }

  /// Checks the result on the hubs themselves.
  async::Awaitable<> conclude() {
    const auto there = co_await world_.count_available(DemoWorld::target);
    const auto here = co_await world_.count_available(DemoWorld::source);
    const bool is_failure_wanted = !options_.fail.empty();
    const auto& expected = is_failure_wanted ? here : there;
    const bool is_good = expected == world_.clusters() && progress_.all_succeeded() != is_failure_wanted;
    code_ = is_good ? 0 : failed;
    say({""});
    say(progress_.summary(terminal_));
    if (const auto failures = progress_.failures(terminal_); !failures.empty()) {
      say({""});
      say(failures);
    }
    say({""});
    for (const auto& line : wrapped(verdict(here, there, is_good), terminal_.width))
      say({painted(line, is_good ? Colour::green : Colour::red, terminal_.colour)});
  }

  [[nodiscard]] std::string verdict(std::size_t here, std::size_t there, bool is_good) const {
    const auto total = std::to_string(world_.clusters());
    const std::string counts = std::to_string(there) + " of " + total + " clusters are Available on " +
                               DemoWorld::target + ", " + std::to_string(here) + " on " + DemoWorld::source;
    const std::string time = " after " + demo_time(progress_.took());
    std::string text = (is_good ? "Success: " : "Failure: ") + counts + time;
    if (is_good && options_.fail.empty()) {
      const double rate = static_cast<double>(there) / std::chrono::duration<double>(progress_.took()).count();
      text += ", " + std::to_string(static_cast<int>(rate * 10) / 10) + "." +
              std::to_string(static_cast<int>(rate * 10) % 10) + " clusters per second";
    }
    if (is_good && options_.fail == "validating")
      text += ": the migrations were rejected in validation, and nothing was changed";
    else if (is_good && !options_.fail.empty())
      text += ": the clusters that failed in " + options_.fail + " were rolled back, and no cluster was lost";
    return text + ".";
  }

  void write_kubeconfigs() {
    for (const auto& server : world_.servers())
      write_private_file(directory_.path() / (server + ".kubeconfig"), world_.kubeconfig(server));
  }

  [[nodiscard]] std::vector<std::string> introduction() const {
    std::string text = "Moving " + plural(world_.clusters(), "cluster") + " from " + DemoWorld::source + " to " +
                       DemoWorld::target + " in " + plural(static_cast<std::size_t>(options_.migrations), "migration") +
                       ".";
    if (!options_.fail.empty()) text += "\nAs requested, they fail in " + options_.fail + " and are rolled back.";
    if (console_.enabled()) text += "\nWatch it in a browser:\n" + console_.url();
    text += "\nKubeconfigs and the manager's log, while the demo runs:\n" + directory_.path().string() + "\n\n";
    return wrapped(text, terminal_.width);
  }

  /// `./dev demo` puts nothing into $PATH.
  static std::string own_path() {
    std::error_code unknown;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", unknown);
    return unknown ? "hubferry" : path.string();
  }

  [[nodiscard]] std::vector<std::string> where_to_look() const {
    if (!options_.keep) return {"With --keep everything stays running, for you to explore."};
    const auto config = [&](const char* server) {
      return (directory_.path() / (std::string{server} + ".kubeconfig")).string();
    };
    const std::string address = "http://127.0.0.1:";
    std::vector<std::string> lines{"Everything stays running until Ctrl-C. Try in another terminal:"};
    if (console_.enabled()) lines.push_back("  xdg-open " + console_.url());
    const std::vector<std::string> commands{
        "  export KUBECONFIG=" + config(sim::global_hub),
        "  " + own_path() + " status",
        "  kubectl get mcm -A",
        "  kubectl describe mcm move-1",
        "  kubectl --kubeconfig " + config(DemoWorld::target) + " get mcl",
        "  curl " + address + std::to_string(observability_.metrics_port()) + "/metrics",
        "  curl '" + address + std::to_string(observability_.health_port()) + "/readyz?verbose'",
        "  less " + (directory_.path() / log_name).string()};
    lines.insert(lines.end(), commands.begin(), commands.end());
    return lines;
  }

  void say(const std::vector<std::string>& lines) {
    for (const auto& line : lines) out_ << line << "\n";
    flush(out_);
  }

  DemoOptions options_;
  const TemporaryDirectory& directory_;
  Observability& observability_;
  kube::Env env_;
  Terminal terminal_;
  std::ostream& out_;
  LiveArea area_;
  async::LoopPool loops_{3};
  ui::Console console_;
  DemoWorld world_;
  DemoProgress progress_;
  kube::Cache<kube::Object> migrations_;
  async::Notify changed_;
  int code_ = interrupted;
};

int run_demo(const DemoOptions& options, std::ostream& out) {
  if (options.mysql) require_mysql_programs();
  TemporaryDirectory directory{"hubferry-demo-"};
  const LogFile log_file{directory.path() / log_name};
  obs::LogSink sink{log_file.sink_options()};
  const auto log = sink.logger().named("demo");
  async::RealClock clock;
  ServingFlags serving;
  serving.metrics_address = "127.0.0.1:0";
  serving.health_address = "127.0.0.1:0";
  Observability observability{clock, log, serving};
  observability.listen();
  auto random = async::Random::from_entropy();
  const kube::Env env{clock, random, observability.metrics(), log};
  const auto terminal = Terminal::of(STDOUT_FILENO);
  const auto body = [&](async::Event& stop) -> async::Awaitable<int> {
    if (options.relocate) co_return co_await run_relocate_demo(options.clusters, stop, env, out);
    if (options.mysql) co_return co_await run_mysql_demo(stop, env, out);
    Demo demo{options, directory, observability, env, terminal, out};
    co_return co_await demo.run(stop);
  };
  async::ShutdownPolicy policy;
  policy.grace = 5s;
  // The last chance to clean up: a second signal exits immediately.
  policy.say = [&](const std::string& message) {
    if (!message.starts_with("received")) directory.remove();
  };
  // After a failure the log is the only file that is kept.
  const auto keep_log = [&] {
    const auto kept = directory.keep(log_name);
    return kept.empty() ? std::string{} : "The manager's log was kept: " + kept.string();
  };
  try {
    const int code = async::run_main(body, policy);
    if (code == failed) out << "\n" << keep_log() << "\n";
    return code;
  } catch (const OutputClosed&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(message_of(error) + "\n" + keep_log());
  }
}

}  // namespace

void add_demo_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("demo", "run migrations between simulated hubs, in one process");
  command.describe(
      "Starts a simulated global hub, two hubs and managed clusters with their agents on local sockets, and runs the "
      "manager's controller to migrate the clusters. On a terminal the progress is updated in place, otherwise it is "
      "printed as a log. All files are deleted at the end; after a failure the manager's log is kept and its path "
      "printed.");
  command.exit_code("0", "success: all clusters are on the target or, with --fail, back on the source");
  command.exit_code("1", "failure");
  command.exit_code("130", "interrupted by Ctrl-C");
  const auto options = std::make_shared<DemoOptions>();
  command.add_integer(options->clusters, "clusters", 1, 10'000, "Number of clusters to migrate.");
  command.add_integer(options->migrations, "migrations", 1, 100,
                      "Number of concurrent migrations; the clusters are divided among them.");
  const std::string choices = join_choices(demo_failures());
  command.add({.name = "fail",
               .placeholder = "PHASE",
               .help = "Inject a failure in this phase: " + choices + ".",
               .default_text = "no failure",
               .apply = [options](const std::string& text) { options->fail = parse_choice(text, demo_failures()); },
               .short_name = "",
               .choices = demo_failures()});
  command.add_switch(options->keep, "keep", "Keep everything running at the end, until Ctrl-C.");
  command.add_integer(options->seed, "seed", 0, 1'000'000, "Random seed of the simulated clusters.");
  options->ui.add_address_to(command);
  command.add_switch(options->relocate, "relocate",
                     "Move ClusterDeployments of Hive by a ClusterRelocator instead, 20 unless --clusters is given.");
  command.add_switch(options->mysql, "mysql",
                     "Run three real MariaDB servers by the MySQL operator instead, and kill the primary under a "
                     "client that writes. Needs mariadb-server and prometheus-mysqld-exporter.");
  command.not_from_environment(
      {"clusters", "migrations", "fail", "keep", "seed", "relocate", "mysql", "ui-bind-address"});
  command.example("hubferry demo", "50 clusters in three migrations");
  command.example("hubferry demo --fail registering", "the target rejects the clusters, and they are rolled back");
  command.example("hubferry demo --clusters 500 --migrations 10 --keep", "a larger one, kept running to explore it");
  command.example("hubferry demo --relocate", "20 ClusterDeployments, from one Hive to another");
  command.example("hubferry demo --mysql", "a failover of real database servers");
  command.on_check([options] {
    if (options->mysql) {
      if (options->relocate || options->keep || !options->fail.empty())
        throw UsageError("--mysql cannot be combined with --relocate, --keep or --fail");
      return;
    }
    if (options->relocate) {
      if (options->keep || !options->fail.empty())
        throw UsageError("--relocate cannot be combined with --keep or --fail");
      // Not given: its default is for migrations.
      if (options->clusters == DemoOptions{}.clusters) options->clusters = relocate_demo_clusters;
      return;
    }
    if (options->migrations > options->clusters)
      throw UsageError("--migrations: each migration needs at least one cluster");
  });
  command.on_run([options, &out] { return run_demo(*options, out); });
}

}  // namespace hubferry::app
