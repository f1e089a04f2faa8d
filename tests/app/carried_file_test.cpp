#include "app/cli/common_flags.hpp"

#include <gmock/gmock.h>

#include "app/cli/files.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CarriedFile : public testing::Test {
 protected:
  static std::string complaint(const std::string& file) {
    try {
      read_carried_resources(file);
    } catch (const kube::ConfigError& error) {
      return error.what();
    }
    return "none";
  }

  std::string write(const std::string& name, const std::string& content) const {
    write_private_file(directory_.path() / name, content);
    return (directory_.path() / name).string();
  }

  app::TemporaryDirectory directory_{"hubferry-carried-"};
};

TEST_F(CarriedFile, AddsToTheDefaultResources) {
  const auto file = write("good.yaml",
                          "carriedResources:\n"
                          "- group: example.com\n"
                          "  version: v1\n"
                          "  resource: widgets\n"
                          "  kind: Widget\n"
                          "  all: true\n");
  const auto carried = read_carried_resources(file);
  ASSERT_NE(carried, nullptr);
  EXPECT_EQ(carried->size(), hubagent::default_carried_resources().size() + 1);
}

TEST_F(CarriedFile, WithoutAFileTheDefaultIsUsed) {
  EXPECT_EQ(read_carried_resources(""), nullptr);
}

TEST_F(CarriedFile, AMissingFileIsNamedWithItsFlag) {
  EXPECT_EQ(complaint("/nowhere/carried.yaml"),
            "cannot read /nowhere/carried.yaml: No such file or directory (--carried-resources)");
}

TEST_F(CarriedFile, AMistakeIsNamedWithItsFileAndField) {
  const auto file = write("bad.yaml", "carriedResources:\n- version: v1\n  resource: widgets\n  all: true\n");
  EXPECT_THAT(complaint(file), AllOf(HasSubstr("bad.yaml"), HasSubstr("kind")));
  const auto garbage = write("garbage.yaml", "carriedResources: [\n");
  EXPECT_THAT(complaint(garbage), HasSubstr("garbage.yaml"));
}

// It would mean the default: fewer objects are copied than its author believes.
TEST_F(CarriedFile, AMisspelledKeyIsNamedNotIgnored) {
  const std::string widget = "- version: v1\n  resource: widgets\n  kind: Widget\n  all: true\n";
  EXPECT_THAT(complaint(write("a.yaml", "carriedResources:\n" + widget + "  withStatuses: true\n")),
              AllOf(HasSubstr("a.yaml"), HasSubstr("withStatuses"), HasSubstr("withStatus,")));
  EXPECT_THAT(complaint(write("b.yaml", "carriedResource:\n" + widget)), HasSubstr("carriedResource"));
  EXPECT_THAT(complaint(write("c.yaml", "carriedResources:\n" + widget +
                                            "  references:\n  - path: spec.x\n    version: v1\n    resource: secrets\n"
                                            "    kind: Secret\n    optional: true\n")),
              HasSubstr("optional"));
}

}  // namespace
}  // namespace hubferry::app
