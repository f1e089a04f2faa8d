#include "phase/kind_check.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

namespace hubferry::phase::test {
namespace {

using testing::HasSubstr;
using testing::Optional;

const kube::Resource backups{"example.com", "v1", "backups", "Backup"};

/// A definition with that status schema.
std::optional<std::string> problem_with(const std::string& status, bool subresource = true,
                                        const std::string& version = "v1") {
  const auto text = R"({"metadata": {"name": "backups.example.com"}, "spec": {"versions": [{"name": ")" + version +
                    R"(",)" + (subresource ? R"("subresources": {"status": {}},)" : "") +
                    R"("schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": )" + status +
                    "}}}}]}}";
  return status_problem(kube::Object{boost::json::parse(text).as_object()}, backups);
}

constexpr const char* sound =
    R"({"type": "object", "properties": {"phase": {"type": "string"},
        "state": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})";

TEST(KindCheck, ASoundDefinitionHasNoProblem) {
  EXPECT_EQ(problem_with(sound), std::nullopt);
  EXPECT_EQ(problem_with(R"({"type": "object", "x-kubernetes-preserve-unknown-fields": true})"), std::nullopt);
  EXPECT_EQ(problem_with(R"({"type": "object", "properties": {"phase": {"type": "string"}, "state": {"type": "object",
                             "additionalProperties": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}})"),
            std::nullopt);
}

TEST(KindCheck, AKindWhosePhaseIsDerivedNeedsNoFieldsForIt) {
  const auto text = R"({"spec": {"versions": [{"name": "v1", "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object"}}}]}})";
  const kube::Object foreign{boost::json::parse(text).as_object()};
  EXPECT_NE(status_problem(foreign, backups), std::nullopt);
  EXPECT_EQ(status_problem(foreign, backups, PhaseSource::derived), std::nullopt);
}

// An API server drops such a field from each write, and reports success.
TEST(KindCheck, AFieldThatAnOlderDefinitionPrunesIsNamed) {
  const auto text = std::string{R"({"metadata": {"name": "backups.example.com"}, "spec": {"versions": [{"name": "v1",
      "subresources": {"status": {}},
      "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": )"} +
                    sound + "}}}}]}}";
  const kube::Object definition{boost::json::parse(text).as_object()};
  EXPECT_EQ(status_problem(definition, backups, PhaseSource::status, {"phase"}), std::nullopt);
  EXPECT_THAT(status_problem(definition, backups, PhaseSource::status, {"phase", "proofTime"}),
              Optional(HasSubstr("prunes status.proofTime: apply the definition of this version")));
}

TEST(KindCheck, AMissingStatusSubresourceIsNamed) {
  EXPECT_THAT(
      problem_with(sound, false),
      Optional(HasSubstr("CustomResourceDefinition backups.example.com, version v1: it has no status subresource")));
}

TEST(KindCheck, ASchemaThatPrunesTheStateIsNamed) {
  EXPECT_THAT(problem_with(R"({"type": "object", "properties": {"phase": {"type": "string"}}})"),
              Optional(HasSubstr("prunes status.state")));
  EXPECT_THAT(
      problem_with(R"({"type": "object", "properties": {"phase": {"type": "string"}, "state": {"type": "object"}}})"),
      Optional(HasSubstr("prunes status.state")));
  EXPECT_THAT(problem_with(R"({"type": "object", "properties": {"phase": {"type": "string"}, "state": {"type": "object",
                               "additionalProperties": {"type": "object"}}}})"),
              Optional(HasSubstr("prunes status.state")));
}

TEST(KindCheck, ASchemaThatPrunesThePhaseIsNamed) {
  EXPECT_THAT(problem_with(R"({"type": "object"})"), Optional(HasSubstr("prunes status.phase")));
}

TEST(KindCheck, AVersionThatIsNotThereIsNamed) {
  EXPECT_THAT(problem_with(sound, true, "v2"), Optional(HasSubstr("version v1: it does not exist")));
}

}  // namespace
}  // namespace hubferry::phase::test
