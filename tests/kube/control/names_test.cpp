#include "hubferry/kube/names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hubferry::kube {
namespace {

std::string letters(std::size_t count) {
  return std::string(count, 'a');
}

TEST(Names, ALabelIsLowerCaseWithDashesInside) {
  for (const auto& good :
       {std::string{"a"}, std::string{"0"}, std::string{"cluster-1"}, std::string{"a--b"}, letters(63)})
    EXPECT_TRUE(is_dns_label(good)) << good;
  for (const auto& bad : {std::string{}, std::string{"-a"}, std::string{"a-"}, std::string{"A"}, std::string{"a.b"},
                          std::string{"a_b"}, std::string{"ä"}, letters(64)})
    EXPECT_FALSE(is_dns_label(bad)) << bad;
}

TEST(Names, ASubdomainIsLabelsJoinedByDots) {
  for (const auto& good : {std::string{"a"}, std::string{"a.b"}, std::string{"hub-1.example.com"}, letters(253)})
    EXPECT_TRUE(is_dns_subdomain(good)) << good;
  for (const auto& bad : {std::string{}, std::string{"."}, std::string{"a."}, std::string{".a"}, std::string{"a..b"},
                          std::string{"a.-b"}, std::string{"a.B"}, letters(254)})
    EXPECT_FALSE(is_dns_subdomain(bad)) << bad;
}

TEST(Names, AKeyMayHaveAPrefix) {
  for (const auto* good : {"name", "Name_1.x", "example.com/name", "hubferry.io/hub-kubeconfig"})
    EXPECT_TRUE(is_qualified_name(good)) << good;
  for (const auto* bad : {"", "/", "/name", "example.com/", "a/b/c", "Example.com/name", "-name", "name-"})
    EXPECT_FALSE(is_qualified_name(bad)) << bad;
  EXPECT_FALSE(is_qualified_name(letters(64)));
}

TEST(Names, ALabelsValueMayBeEmpty) {
  for (const auto& good : {std::string{}, std::string{"true"}, std::string{"A_b.c-d"}, letters(63)})
    EXPECT_TRUE(is_label_value(good)) << good;
  for (const auto& bad : {std::string{"a b"}, std::string{"-a"}, std::string{"a/b"}, letters(64)})
    EXPECT_FALSE(is_label_value(bad)) << bad;
}

}  // namespace
}  // namespace hubferry::kube
