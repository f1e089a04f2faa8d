#include <unistd.h>

#include <memory>
#include <ostream>

#include "app/cli/common_flags.hpp"
#include "app/cli/terminal.hpp"
#include "app/commands/commands.hpp"
#include "app/doctor/archive.hpp"
#include "app/doctor/diagnosis.hpp"
#include "app/verbs/migration_draft.hpp"

namespace hubferry::app {

namespace {

struct DoctorOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns = default_migration_namespace;
  std::string bundle;
};

int run_doctor(const DoctorOptions& options, std::ostream& out) {
  ServerClient client{kube::find_config(options.kubeconfig, options.context)};
  return run_interruptibly([&]() -> async::Awaitable<int> {
    const auto diagnosis = co_await diagnose(client, options.ns);
    if (diagnosis.findings.empty()) out << "Nothing looks wrong.\n";
    const auto width = Terminal::of(STDOUT_FILENO).width;
    for (const auto& finding : diagnosis.findings)
      for (const auto& line : wrapped(finding, width, "- ", "  ")) out << line << "\n";
    if (!options.bundle.empty()) {
      const auto now =
          std::chrono::duration_cast<std::chrono::seconds>(client.env().clock.wall_now().time_since_epoch());
      write_archive(options.bundle, diagnosis.files, now.count());
      out << "Written to " << options.bundle
          << ", without secrets. It names your hubs and clusters. The manager's logs are not "
          << "in it: kubectl -n " << options.ns << " logs deployment/hubferry-manager\n";
    }
    co_return diagnosis.findings.empty() ? 0 : 1;
  });
}

}  // namespace

void add_doctor_command(CommandLine& line, std::ostream& out) {
  auto& command = line.add("doctor", "look for problems, and write a support bundle without secrets");
  command.describe(
      "Looks at the manager, its Lease, all migrations, and each hub as hub check does, and prints what looks wrong. "
      "With "
      "--bundle it also writes what it has read, for those who help: migrations, ledgers, events, the manager's "
      "Deployment "
      "and pods, the results of the checks. Of Secrets, of environment variables and of what kubectl applied last "
      "nothing "
      "is in it but names.");
  command.exit_code("0", "nothing looks wrong");
  command.exit_code("1", "error, or something does");
  command.exit_code("130", "interrupted by Ctrl-C");
  const auto options = std::make_shared<DoctorOptions>();
  add_kubeconfig_flag(command, options->kubeconfig);
  add_context_flag(command, options->context);
  auto ns = namespace_flag(options->ns, "namespace", options->ns, "Where the manager runs.");
  ns.short_name = "n";
  command.add(std::move(ns));
  command.add_text(options->bundle, "bundle", "FILE",
                   "Write what was read to this file, a .tar.gz, which must not exist.");
  command.not_from_environment({"namespace", "bundle"});
  command.example("hubferry doctor", "what looks wrong");
  command.example("hubferry doctor --bundle support.tar.gz", "for an issue");
  command.on_run([options, &out] { return run_doctor(*options, out); });
}

}  // namespace hubferry::app
