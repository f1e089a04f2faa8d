#include <gmock/gmock.h>

#include <csignal>

int main(int argc, char** argv) {
  // The parent process may ignore signals, as nohup does, and children would inherit that.
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) std::signal(number, SIG_DFL);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
