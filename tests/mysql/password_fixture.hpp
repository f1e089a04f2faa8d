#pragma once

#include "failover_fixture.hpp"
#include "hubferry/kube/base64.hpp"

namespace hubferry::mysql::test {

class PasswordTest : public FailoverTest {
 protected:
  [[nodiscard]] std::string password_in_secret(const char* key = "password") const {
    return kube::decode_base64(server.object(kube::resources::secrets, {"db", "demo-root"})->string_at({"data", key}))
        .value_or("");
  }
  void change_password(const std::string& password = "second") {
    patch(R"({"spec": {"rootPassword": ")" + password + R"("}})");
  }
  /// The primary and demo-1 have the second password; demo-2 does not apply what it receives.
  void given_half_done_change() {
    given_running(R"({"rootPassword": "first"})");
    mysql.at("demo-2").delay = 1;
    change_password();
    run_for(1min);
    ASSERT_EQ(mysql.at("demo-0").root_password, "second") << status_text();
    ASSERT_EQ(mysql.at("demo-2").root_password, "first");
    ASSERT_EQ(password_in_secret(), "first");
    ASSERT_EQ(password_in_secret("pendingPassword"), "second");
  }
  void expect_password(const std::string& password) {
    for (const auto& [name, one] : mysql.servers()) EXPECT_EQ(one.root_password, password) << name << status_text();
    EXPECT_EQ(password_in_secret(), password);
    EXPECT_EQ(password_in_secret("pendingPassword"), "");
    EXPECT_EQ(password_in_secret("revokedPassword"), "");
    EXPECT_EQ(condition("SpecAccepted"), "True SpecValid");
    EXPECT_THAT(condition("ReplicasHealthy"), testing::Not(testing::HasSubstr("PasswordMismatch"))) << status_text();
  }
};

}  // namespace hubferry::mysql::test
