#pragma once

/// For a test that uses up the file descriptors of a process. UBSan needs some itself to look at a pointer, and takes
/// their lack for a broken object.
#if __has_feature(undefined_behavior_sanitizer)
#define HUBFERRY_SKIP_WHERE_DESCRIPTORS_ARE_NEEDED() GTEST_SKIP() << "the sanitizer needs descriptors itself"
#else
#define HUBFERRY_SKIP_WHERE_DESCRIPTORS_ARE_NEEDED() static_cast<void>(0)
#endif
