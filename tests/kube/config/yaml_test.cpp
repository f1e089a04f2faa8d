#include "hubferry/kube/yaml.hpp"

#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>
#include <stdexcept>

namespace hubferry::kube {
namespace {

using testing::HasSubstr;

std::string first(std::string_view text) {
  const auto documents = parse_yaml_documents(text, "x.yaml");
  return documents.empty() ? "none" : json::serialize(documents.front());
}

std::string failure(const std::string& text) {
  try {
    parse_yaml_documents(text, "x.yaml");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(Yaml, PlainScalarsHaveTheTypesOfTheCoreSchema) {
  EXPECT_EQ(first("[1, -2, 0.5, true, False, ~, null, text, 1.2.3]"),
            R"([1,-2,5E-1,true,false,null,null,"text","1.2.3"])");
}

TEST(Yaml, WhatIsQuotedIsAString) {
  EXPECT_EQ(first(R"(['1', "true", 'null'])"), R"(["1","true","null"])");
}

TEST(Yaml, EmptyDocumentsAreLeftOut) {
  EXPECT_EQ(parse_yaml_documents("---\na: 1\n---\n---\nb: 2\n", "x.yaml").size(), 2u);
  EXPECT_EQ(first(""), "none");
}

TEST(Yaml, AnErrorNamesTheFileAndTheLine) {
  EXPECT_THAT(failure("a: 1\nb: [\n"), HasSubstr("x.yaml, line "));
}

TEST(Yaml, AliasesThatMultiplyAreRefused) {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'i'; ++name) {
    const std::string alias = std::string{"*"} + static_cast<char>(name - 1);
    text += std::string{name} + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) text += (i > 0 ? ", " : "") + alias;
    text += "]\n";
  }
  EXPECT_THAT(failure(text), HasSubstr("too many values"));
}

}  // namespace
}  // namespace hubferry::kube
