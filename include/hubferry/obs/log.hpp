#pragma once

// Everything for logging: Logger for callers, LogSink for main, LogCapture for tests.
#include "hubferry/obs/log_sink.hpp"
#include "hubferry/obs/log_value.hpp"
#include "hubferry/obs/logger.hpp"
#include "hubferry/obs/secret.hpp"
