// What `./dev package` releases, built from the binary under test.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <regex>

#include "hubferry/kube/yaml.hpp"
#include "manifests/manifest_files.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

/// A release takes seconds to build, and on a busy machine longer than a step of another test may.
int end_of(Process& process) {
  for (int attempt = 1;; ++attempt) try {
      return process.wait();
    } catch (const std::exception&) {
      if (attempt == 5) throw;
    }
}

std::string output_of(const std::vector<std::string>& command) {
  Process process{command};
  EXPECT_EQ(end_of(process), 0) << command.at(0) << ": " << process.err();
  return process.out();
}

/// By kind and name.
using Objects = std::map<std::string, json::object>;

Objects parsed(const std::string& text) {
  Objects objects;
  for (const auto& document : kube::parse_yaml_documents(text, "objects")) {
    if (!document.is_object()) continue;
    const auto& object = document.as_object();
    objects[std::string{object.at("kind").as_string()} + " " +
            std::string{kube::string_at(object, {"metadata", "name"})}] = object;
  }
  return objects;
}

/// What kustomize builds, without what a chart has in other places: its namespace, and CRDs.
Objects built_without_namespace_and_crds(const std::string& directory) {
  auto objects = parsed(output_of({"kubectl", "kustomize", (manifests_directory() / directory).string()}));
  std::erase_if(objects, [](const auto& entry) {
    return entry.first.starts_with("Namespace ") || entry.first.starts_with("CustomResourceDefinition ");
  });
  return objects;
}

/// Since 1.21 kustomizations may name directories. Debian 12's kubectl is older.
bool kubectl_is_too_old() {
  Process probe{{"kubectl", "kustomize", (manifests_directory() / "base").string()}};
  return probe.wait() != 0 && probe.err().find("must be a file") != std::string::npos;
}

class Package : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (kubectl_is_too_old()) return;
    directory_ = new TemporaryDirectory;
    build("dist");
    // Unpacked once: tests only read it.
    for (const auto* archive : {"hubferry-0.1.0.tgz", "hubferry-0.1.0-linux-*.tar.gz"})
      output_of({"sh", "-c", "cd '" + directory_->path().string() + "' && tar xzf dist/" + archive});
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  void SetUp() override {
    if (directory_ == nullptr) GTEST_SKIP() << "needs kubectl 1.21";
  }

  static void build(const std::string& name) {
    output_of({(source_root() / "packaging/build").string(), "--binary", hubferry_binary(), "--output",
               directory_->file(name), "--compression", "1"});
  }
  static fs::path chart() { return directory_->path() / "hubferry"; }
  static fs::path release() {
    for (const auto& entry : fs::directory_iterator(directory_->path()))
      if (entry.path().filename().string().starts_with("hubferry-0.1.0-linux-")) return entry.path();
    throw std::runtime_error("there is no release");
  }

  /// As `helm template` does it, with changes to the default values.
  static Objects rendered(const std::function<void(json::object&)>& change, const std::string& ns = "hubferry-system") {
    auto values = kube::parse_yaml_documents(text_of(chart() / "values.yaml"), "values").at(0).as_object();
    change(values);
    const auto file = directory_->write("values.json", json::serialize(values));
    return parsed(output_of({(source_root() / "tests/docs/render-chart").string(), chart(), file, ns}));
  }

  static TemporaryDirectory* directory_;
};

TemporaryDirectory* Package::directory_ = nullptr;

TEST_F(Package, HasEveryFileWithItsChecksumAndIsTheSameTwice) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_->path() / "dist"))
    names.push_back(std::regex_replace(entry.path().filename().string(), std::regex{"linux-[a-z0-9]+"}, "linux-ARCH"));
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("install.yaml", "hubferry-0.1.0.tgz", "hubferry-0.1.0-linux-ARCH.tar.gz",
                                            "hubferry-0.1.0.spdx.json", "SHA256SUMS"));
  const auto checked =
      output_of({"sh", "-c", "cd '" + directory_->file("dist") + "' && sha256sum --check --strict SHA256SUMS"});
  EXPECT_EQ(std::ranges::count(checked, '\n'), 4) << checked;
  build("again");
  EXPECT_EQ(text_of(directory_->path() / "dist/SHA256SUMS"), text_of(directory_->path() / "again/SHA256SUMS"));
}

TEST_F(Package, InstallYamlIsTheBaseWithTheVersionOfThisRelease) {
  const auto objects = parsed(text_of(directory_->path() / "dist/install.yaml"));
  EXPECT_EQ(objects, parsed(output_of({"kubectl", "kustomize", (manifests_directory() / "base").string()})));
  EXPECT_EQ(
      objects.at("Deployment hubferry-manager").at("spec").at("template").at("spec").at("containers").at(0).at("image"),
      "hubferry:0.1.0");
  EXPECT_THAT(output_of({hubferry_binary(), "version"}), HasSubstr("hubferry 0.1.0 "));
}

TEST_F(Package, TheChartGivesTheObjectsOfKustomize) {
  EXPECT_EQ(rendered([](auto&) {}), built_without_namespace_and_crds("base"));
  EXPECT_EQ(rendered([](auto& values) { values["monitoring"].as_object()["enabled"] = true; }),
            built_without_namespace_and_crds("overlays/monitoring"));
  EXPECT_EQ(rendered([](auto& values) { values["ui"].as_object()["enabled"] = true; }),
            built_without_namespace_and_crds("overlays/ui"));
  // Where nobody is asked who they are, only those come in who may forward ports.
  EXPECT_THAT(json::serialize(built_without_namespace_and_crds("overlays/ui").at("Deployment hubferry-manager")),
              HasSubstr("\"--ui-bind-address=127.0.0.1:8082\""));
  Objects crds;
  for (const auto& entry : fs::directory_iterator(chart() / "crds")) crds.merge(parsed(text_of(entry.path())));
  EXPECT_EQ(crds, parsed(output_of({"kubectl", "kustomize", (manifests_directory() / "crds").string()})));
}

TEST_F(Package, TheValuesOfTheChartTakeEffect) {
  const auto objects = rendered(
      [](auto& values) {
        values["replicas"] = 1;
        values["image"] = json::object{{"repository", "registry/h"}, {"tag", "9"}, {"pullPolicy", "Always"}};
        values["resources"] = json::object{{"limits", json::object{{"memory", "2Gi"}}}};
        values["carriedResources"] = json::array{json::object{{"group", "example.com"}, {"kind", "Widget"}}};
        values["extraArgs"] = json::array{"--log-level=debug"};
        values["monitoring"] = json::object{{"enabled", true}, {"runbookBase", "https://docs.example.com/"}};
      },
      "elsewhere");
  const auto& spec = objects.at("Deployment hubferry-manager").at("spec");
  EXPECT_EQ(spec.at("replicas"), 1);
  const auto& pod = spec.at("template").at("spec");
  const auto& container = pod.at("containers").at(0);
  EXPECT_EQ(container.at("image"), "registry/h:9");
  EXPECT_EQ(container.at("imagePullPolicy"), "Always");
  EXPECT_EQ(container.at("resources"), (json::object{{"limits", json::object{{"memory", "2Gi"}}}}));
  EXPECT_THAT(container.at("args").as_array(), Contains("--log-level=debug"));
  EXPECT_THAT(container.at("args").as_array(), Contains("--carried-resources=/etc/hubferry/carried-resources.yaml"));
  EXPECT_EQ(container.at("volumeMounts").at(0).at("mountPath"), "/etc/hubferry");
  const std::string map{pod.at("volumes").at(0).at("configMap").at("name").as_string()};
  const auto file = objects.at("ConfigMap " + map).at("data").at("carried-resources.yaml").as_string();
  const auto carried = kube::parse_yaml_documents(std::string{file}, "the file").at(0);
  EXPECT_EQ(carried.at("carriedResources").at(0).at("kind"), "Widget");
  EXPECT_FALSE(objects.contains("PodDisruptionBudget hubferry-manager")) << "it would block the drain of a node";
  EXPECT_THAT(json::serialize(objects.at("PrometheusRule hubferry")),
              HasSubstr("https://docs.example.com/docs/runbook.md#hubferrynoleader"));
  for (const auto& [name, object] : objects)
    EXPECT_THAT(json::serialize(object), testing::Not(HasSubstr("\"namespace\":\"hubferry-system\""))) << name;
}

TEST_F(Package, TheProgramRunsWithTheLibrariesBesideIt) {
  const auto program = (release() / "bin/hubferry").string();
  EXPECT_THAT(output_of({program, "version"}), HasSubstr("hubferry 0.1.0 "));
  EXPECT_THAT(output_of({(release() / "bin/kubectl-hubferry").string(), "version"}), HasSubstr("hubferry 0.1.0 "));
  std::istringstream lines{output_of({"ldd", program})};
  // The C library's own files; the run-time library of a sanitizer needs more of them than the program.
  const std::regex of_the_system{
      R"(\s*(linux-vdso|/lib64/ld-linux|/lib/ld-linux|(libc|libm|libdl|librt|libpthread|libresolv)\.so).*)"};
  std::size_t bundled = 0;
  for (std::string line; std::getline(lines, line); ++bundled)
    if (!std::regex_match(line, of_the_system)) EXPECT_THAT(line, HasSubstr(release() / "bin/../lib/hubferry/"));
  EXPECT_GT(bundled, 5U);
}

TEST_F(Package, HasTheDocumentationWithItsPictures) {
  const std::regex picture{R"(!\[[^\]]*\]\(([^)]+)\))"};
  const auto documentation = release() / "share/doc/hubferry";
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(documentation)) {
    if (entry.path().extension() != ".md") continue;
    const auto text = text_of(entry.path());
    for (std::sregex_iterator match{text.begin(), text.end(), picture}, end; match != end; ++match, ++count)
      EXPECT_TRUE(fs::exists(entry.path().parent_path() / (*match)[1].str())) << entry.path() << (*match)[1];
  }
  EXPECT_GT(count, 1U);
}

TEST_F(Package, HasCompletionAndAManPageWithEveryFlagOfEachCommand) {
  EXPECT_THAT(text_of(release() / "share/bash-completion/completions/hubferry"), HasSubstr("complete"));
  EXPECT_THAT(text_of(release() / "share/zsh/site-functions/_hubferry"), HasSubstr("#compdef hubferry"));
  EXPECT_THAT(text_of(release() / "share/fish/vendor_completions.d/hubferry.fish"), HasSubstr("complete -c hubferry"));
  const std::regex flag{R"(\n  (?:-[a-z], )?(--[a-z-]+))"};
  std::istringstream commands{output_of({hubferry_binary(), "--help"})};
  std::size_t pages = 0;
  for (std::string line; std::getline(commands, line);) {
    std::smatch listed;
    if (!std::regex_match(line, listed, std::regex{"  ([a-z]+)  .*"})) continue;
    ++pages;
    const auto command = listed[1].str();
    const auto page = text_of(release() / "share/man/man1" / ("hubferry-" + command + ".1"));
    const auto help = output_of({hubferry_binary(), command, "--help"});
    std::size_t count = 0;
    for (std::sregex_iterator match{help.begin(), help.end(), flag}, end; match != end; ++match, ++count)
      EXPECT_THAT(page, HasSubstr(std::regex_replace((*match)[1].str(), std::regex{"-"}, "\\-"))) << command;
    if (command != "completion") EXPECT_GT(count, 0U) << command;
  }
  EXPECT_EQ(pages, 14U);
  EXPECT_THAT(text_of(release() / "share/man/man1/hubferry.1"), HasSubstr("hubferry\\-manager"));
}

// A library that is bundled without its licence may not be distributed.
TEST_F(Package, ListsThePackageOfEveryLibraryAndBringsItsLicence) {
  const auto document = json::parse(text_of(directory_->path() / "dist/hubferry-0.1.0.spdx.json"));
  EXPECT_EQ(document.at("spdxVersion"), "SPDX-2.3");
  std::set<std::string> ids{"SPDXRef-DOCUMENT"};
  std::vector<std::string> names;
  for (const auto& package : document.at("packages").as_array()) {
    EXPECT_TRUE(ids.insert(std::string{package.at("SPDXID").as_string()}).second);
    names.emplace_back(package.at("name").as_string());
    EXPECT_NE(package.at("versionInfo"), "");
    if (names.back() != "hubferry")
      EXPECT_THAT(text_of(release() / "share/doc/hubferry/licences" / names.back()), HasSubstr("opyright"));
  }
  for (const auto& relation : document.at("relationships").as_array())
    for (const auto* end : {"spdxElementId", "relatedSpdxElement"})
      EXPECT_TRUE(ids.contains(std::string{relation.at(end).as_string()}));
  for (const auto* expected :
       {"hubferry", "libssl3", "libstdc++6", "libyaml-cpp0.7", "libmariadb3", "libboost1.81-dev"})
    EXPECT_THAT(names, Contains(expected));
  EXPECT_TRUE(fs::exists(release() / "share/doc/hubferry/LICENSE"));
}

}  // namespace
}  // namespace hubferry::test
